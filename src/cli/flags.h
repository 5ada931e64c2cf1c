// FlagSet reads the flags of one subcommand into option structs. The only user of the command-line library.
// Threads:   main thread.
// Ownership: borrows the variables that it fills.
// Invariant: an unknown flag, a malformed value and an unknown key of --config are errors that name it.
// Cost:      start-up only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/units.h"

namespace cachalot::cli {

// "--name=value" (or "--name" / "--no-name") for one member of a JSON object of settings.
Result<std::string> FlagOf(const std::string& name, const Json& value);

class FlagSet {
 public:
  FlagSet(const std::string& command, const std::string& description);
  ~FlagSet();

  void Positional(const std::string& name, std::string* value, const std::string& help, bool required);

  void Add(std::string_view name, bool& value, std::string_view help);
  void Add(std::string_view name, uint32_t& value, std::string_view help);
  void Add(std::string_view name, uint64_t& value, std::string_view help);
  void Add(std::string_view name, float& value, std::string_view help);
  void Add(std::string_view name, double& value, std::string_view help);
  // Nothing where it is not given.
  void Add(std::string_view name, std::optional<uint64_t>& value, std::string_view help);
  void Add(std::string_view name, std::optional<double>& value, std::string_view help);
  void Add(std::string_view name, std::string& value, std::string_view help);
  void Add(std::string_view name, ByteSize& value, std::string_view help);
  void Add(std::string_view name, std::vector<uint32_t>& value, std::string_view help);
  // A one-letter form for a flag; call it before the flag is added.
  void Letter(std::string_view name, char letter);
  // That flag names a file that is written: Parse refuses one that another setting names too, or whose folder it names.
  void Output(std::string_view name);

  // Every setting of an option struct (base/options.h).
  template <class Options>
  void AddAll(Options& options) {
    options.Visit([this](std::string_view name, auto& field, std::string_view help) { this->Add(name, field, help); });
  }

  // False when --help was asked for and printed: nothing more is to be done.
  Result<bool> Parse(const std::vector<std::string>& arguments);
  // After Parse: names of what was given, on the command line or by --config; empty texts are not.
  std::set<std::string, std::less<>> Given() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachalot::cli
