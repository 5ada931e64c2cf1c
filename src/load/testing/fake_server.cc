#include "load/testing/fake_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace cachalot::load {
namespace {

constexpr int kBacklog = 4096;

bool SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool SendReply(int socket, const FakeReply& reply) {
  const size_t piece = reply.piece_bytes == 0 ? std::max<size_t>(1, reply.bytes.size()) : reply.piece_bytes;
  for (size_t at = 0; at < reply.bytes.size(); at += piece) {
    if (!SendAll(socket, std::string_view(reply.bytes).substr(at, piece))) return false;
  }
  return true;
}

size_t BodyBytes(std::string_view head) {
  const size_t at = head.find("Content-Length: ");
  if (at == std::string_view::npos) return 0;
  size_t bytes = 0;
  std::from_chars(head.data() + at + 16, head.data() + head.size(), bytes);
  return bytes;
}

// Takes one request off the front of `received`, reading more as needed. False at the end of the connection.
bool ReadRequest(int socket, std::string* received, FakeRequest* request) {
  for (;;) {
    const size_t end = received->find("\r\n\r\n");
    if (end != std::string::npos) {
      const size_t body = BodyBytes(std::string_view(*received).substr(0, end));
      if (received->size() >= end + 4 + body) {
        request->head = received->substr(0, end);
        request->body = received->substr(end + 4, body);
        received->erase(0, end + 4 + body);
        return true;
      }
    }
    char bytes[16384];
    const ssize_t n = ::recv(socket, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    received->append(bytes, static_cast<size_t>(n));
  }
}

}  // namespace

FakeServer::FakeServer(Answer answer, uint64_t together) : answer_(std::move(answer)), together_(together) {
  listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  CACHALOT_CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CACHALOT_CHECK(::listen(listener_, kBacklog) == 0);
  CACHALOT_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
}

FakeServer::~FakeServer() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    for (int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    changed_.NotifyAll();
  }
  ::shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  for (std::thread& thread : serving_) thread.join();
  ::close(listener_);
}

std::string FakeServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

std::vector<FakeRequest> FakeServer::requests() {
  MutexLock lock(mutex_);
  return requests_;
}

uint64_t FakeServer::connections() {
  MutexLock lock(mutex_);
  return sockets_.size();
}

bool FakeServer::ended() {
  MutexLock lock(mutex_);
  return ended_;
}

void FakeServer::Accept() {
  for (;;) {
    const int socket = ::accept(listener_, nullptr, nullptr);
    if (socket < 0) return;
    MutexLock lock(mutex_);
    sockets_.push_back(socket);
    if (ended_) ::shutdown(socket, SHUT_RDWR);
    serving_.emplace_back([this, socket] { Serve(socket); });
  }
}

FakeReply FakeServer::Reply(FakeRequest request) {
  {
    MutexLock lock(mutex_);
    request.number = requests_.size();
    requests_.push_back(request);
    changed_.NotifyAll();
    while (!ended_ && requests_.size() < together_) changed_.Wait(mutex_);
  }
  return answer_(request);
}

void FakeServer::Serve(int socket) {
  std::string received;
  FakeRequest request;
  FakeReply reply;
  while (!ended() && ReadRequest(socket, &received, &request)) {
    reply = Reply(request);
    if (!SendReply(socket, reply) || reply.then == FakeReply::Then::kClose) break;
    if (reply.then == FakeReply::Then::kHang) {
      while (ReadRequest(socket, &received, &request)) {
      }
      break;
    }
  }
  MutexLock lock(mutex_);
  ::shutdown(socket, SHUT_RDWR);
  std::ranges::replace(sockets_, socket, -1);
  ::close(socket);
}

std::string JsonResponse(int status, const std::string& body) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
                     body.size(), body);
}

std::string ChunkedStream(const std::string& body) {
  return fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
      body.size(), body);
}

std::string PieceEvent(const std::string& text) {
  return fmt::format(R"(data: {{"choices":[{{"index":0,"delta":{{"content":"{}"}},"finish_reason":null}}]}})"
                     "\n\n",
                     text);
}

std::string StreamResponse(const std::vector<std::string>& pieces, uint64_t prompt_tokens, int64_t cached_tokens) {
  std::string body;
  for (const std::string& piece : pieces) body += PieceEvent(piece);
  body += "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
  const std::string cached =
      cached_tokens < 0 ? "" : fmt::format(R"(,"prompt_tokens_details":{{"cached_tokens":{}}})", cached_tokens);
  body += fmt::format(R"(data: {{"choices":[],"usage":{{"prompt_tokens":{},"completion_tokens":{}{}}}}})",
                      prompt_tokens, pieces.size(), cached);
  return ChunkedStream(body + "\n\ndata: [DONE]\n\n");
}

FakeReply GoodReply(const FakeRequest& request) {
  if (request.head.starts_with("GET "))
    return {JsonResponse(200, R"({"data":[{"id":"fake"}]})"), FakeReply::Then::kKeep, 0};
  const auto spaces = static_cast<uint64_t>(std::ranges::count(request.body, ' '));
  return {StreamResponse({"one", " two", " three"}, spaces, 0), FakeReply::Then::kKeep, 0};
}

}  // namespace cachalot::load
