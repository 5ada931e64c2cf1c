#include "server/testing/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/check.h"

namespace cachalot::server {
namespace {

constexpr int kPatienceSeconds = 30;

}  // namespace

TestClient::TestClient(uint16_t port, int receive_bytes) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
  CACHALOT_CHECK(fd_ >= 0);
  const timeval limit{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (receive_bytes > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) Close();
}

TestClient::~TestClient() { Close(); }

TestClient::TestClient(TestClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), received_(std::move(other.received_)) {}

bool TestClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool TestClient::Fill() {
  char bytes[65536];
  const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
  if (n < 0 && errno == EAGAIN) ADD_FAILURE() << "the server sent nothing for " << kPatienceSeconds << " seconds";
  if (n <= 0) return false;
  received_.append(bytes, static_cast<size_t>(n));
  return true;
}

std::optional<std::string> TestClient::TakeLine() {
  size_t end;
  while ((end = received_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return std::nullopt;
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 2);
  return line;
}

std::string TestClient::TakeBytes(size_t count) {
  while (received_.size() < count && Fill()) {
  }
  std::string bytes = received_.substr(0, count);
  received_.erase(0, bytes.size());
  return bytes;
}

ClientResponse TestClient::Read() {
  ClientResponse response;
  const std::optional<std::string> first = TakeLine();
  if (!first || first->size() < 12) return response;
  response.status = std::stoi(first->substr(9, 3));
  while (const std::optional<std::string> line = TakeLine()) {
    if (line->empty()) break;
    std::string name = line->substr(0, line->find(':'));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    response.headers[name] = line->substr(std::min(line->size(), name.size() + 2));
  }
  if (response.status == 100) return Read();
  if (response.headers.contains("content-length")) {
    response.body = TakeBytes(std::stoul(response.headers["content-length"]));
  } else if (response.headers["transfer-encoding"] == "chunked") {
    while (const std::optional<std::string> size = TakeLine()) {
      const std::string chunk = TakeBytes(std::stoul(*size, nullptr, 16) + 2);
      if (chunk == "\r\n") break;
      response.body += chunk.substr(0, chunk.size() - 2);
    }
  } else if (response.status != 204) {
    response.body = ReadToEnd();
  }
  return response;
}

std::string TestClient::ReadUntil(std::string_view end) {
  size_t at;
  while ((at = received_.find(end)) == std::string::npos) {
    if (!Fill()) return std::exchange(received_, {});
  }
  return TakeBytes(at + end.size());
}

std::string TestClient::ReadToEnd() {
  while (Fill()) {
  }
  return std::exchange(received_, {});
}

void TestClient::Close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void TestClient::Reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  Close();
}

void TestClient::ShutdownWrite() { ::shutdown(fd_, SHUT_WR); }

ClientResponse TestClient::Get(std::string_view path) {
  Send(fmt::format("GET {} HTTP/1.1\r\nHost: test\r\n\r\n", path));
  return Read();
}

ClientResponse TestClient::Post(std::string_view path, std::string_view json) {
  Send(PostText(path, json));
  return Read();
}

std::string PostText(std::string_view path, std::string_view json, std::string_view more_headers) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}", path,
      json.size(), more_headers, json);
}

std::vector<std::string> EventsOf(std::string_view sse) {
  std::vector<std::string> events;
  while (!sse.empty()) {
    const size_t end = std::min(sse.find("\n\n"), sse.size());
    const std::string_view event = sse.substr(0, end);
    if (event.starts_with("data: ")) events.emplace_back(event.substr(6));
    sse.remove_prefix(std::min(end + 2, sse.size()));
  }
  return events;
}

}  // namespace cachalot::server
