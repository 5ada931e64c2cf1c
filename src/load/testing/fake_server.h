// FakeServer is a tiny HTTP server whose every byte the test chooses.
// Threads:   the constructor's caller; answers are made on threads of its own, one per connection.
// Ownership: owns its sockets and threads.
// Invariant: all threads have ended when the destructor returns.
// Cost:      irrelevant.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace cachalot::load {

struct FakeRequest {
  uint64_t number = 0;  // in the order of arrival
  std::string head;
  std::string body;
};

struct FakeReply {
  enum class Then : uint8_t {
    kKeep,   // the connection serves another request
    kClose,  // the connection ends
    kHang,   // nothing more is sent
  };
  std::string bytes;
  Then then = Then::kKeep;
  uint32_t piece_bytes = 0;  // sent in pieces of so many bytes; 0: at once
};

class FakeServer {
 public:
  using Answer = std::function<FakeReply(const FakeRequest&)>;
  // `together`: no reply is sent before so many requests have arrived.
  explicit FakeServer(Answer answer, uint64_t together = 0);
  ~FakeServer();

  uint16_t port() const { return port_; }
  std::string url() const;
  std::vector<FakeRequest> requests() CACHALOT_EXCLUDES(mutex_);
  uint64_t connections() CACHALOT_EXCLUDES(mutex_);

 private:
  void Accept();
  void Serve(int socket);
  FakeReply Reply(FakeRequest request) CACHALOT_EXCLUDES(mutex_);
  bool ended() CACHALOT_EXCLUDES(mutex_);

  const Answer answer_;
  const uint64_t together_;
  int listener_ = -1;
  uint16_t port_ = 0;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ CACHALOT_GUARDED_BY(mutex_) = false;
  std::vector<FakeRequest> requests_ CACHALOT_GUARDED_BY(mutex_);
  std::vector<int> sockets_ CACHALOT_GUARDED_BY(mutex_);
  std::vector<std::thread> serving_;  // the accepting thread's until it ends
  std::thread accepting_;
};

// The texts of well-behaved servers.
std::string JsonResponse(int status, const std::string& body);
// An event stream of the pieces, then usage, then [DONE]; chunked.
std::string StreamResponse(const std::vector<std::string>& pieces, uint64_t prompt_tokens, int64_t cached_tokens = -1);
std::string ChunkedStream(const std::string& body);
std::string PieceEvent(const std::string& text);
// One that answers everything well, three pieces each, with as many prompt tokens as the body has spaces.
FakeReply GoodReply(const FakeRequest& request);

}  // namespace cachalot::load
