// TestClient is a raw socket that speaks just enough HTTP to check a server, and no more politely than a test wants.
// Threads:   one.
// Ownership: owns the socket.
// Invariant: no call blocks for ever: a server that says nothing for long fails the test. What does not come is an
//            empty answer of status 0.
// Cost:      irrelevant.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cachalot::server {

struct ClientResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class TestClient {
 public:
  // `receive_bytes` is the size of the kernel's buffer; 0: the usual.
  explicit TestClient(uint16_t port, int receive_bytes = 0);
  ~TestClient();
  TestClient(TestClient&& other) noexcept;

  bool Send(std::string_view bytes);  // all of it
  // The next response; chunks are joined.
  ClientResponse Read();
  // Up to and with `end`; what there is when the connection ends first.
  std::string ReadUntil(std::string_view end);
  // Everything up to the end of the connection.
  std::string ReadToEnd();
  void Close();
  // Ends at once, with RST.
  void Reset();
  void ShutdownWrite();

  ClientResponse Get(std::string_view path);
  ClientResponse Post(std::string_view path, std::string_view json);

 private:
  bool Fill();
  std::optional<std::string> TakeLine();
  std::string TakeBytes(size_t count);

  int fd_ = -1;
  std::string received_;
};

std::string PostText(std::string_view path, std::string_view json, std::string_view more_headers = "");

// The payloads of the events of an SSE body, "[DONE]" included; comments are left out.
std::vector<std::string> EventsOf(std::string_view sse);

}  // namespace cachalot::server
