// LiveServer reads what a running Cachalot shows of itself: its metrics, and who it is.
// Threads:   one thread.
// Ownership: owns its connections; borrows the clock and what `go_on` refers to.
// Invariant: each request has its deadline. Errors name the address, and what to do about a key.
// Cost:      a request or two per call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/json.h"
#include "base/scrape.h"
#include "base/status.h"
#include "load/asker.h"
#include "load/http_client.h"
#include "load/url.h"

namespace cachalot::load {

struct ServerKeys {
  std::string api;    // of clients; empty: none
  std::string admin;  // of the administration; empty: what only that may see is not asked for
};

// What does not change while it runs.
struct ServerIdentity {
  std::string model;            // empty: the server tells it to those with a key only
  uint64_t context_tokens = 0;  // 0: likewise
  Json kv;                      // of GET /v1/kv; null without the administration's key
};

class LiveServer {
 public:
  // `url`: http://HOST:PORT, as for `bench serve`. `go_on`: false ends what is under way.
  static Result<std::unique_ptr<LiveServer>> Open(const std::string& url, ServerKeys keys, const Clock& clock,
                                                  FunctionRef<bool()> go_on);

  // kUnavailable when nothing answers, kInvalid when it is no Cachalot of this version.
  Result<Scrape> ReadMetrics();
  // kInvalid when a key that was given is not taken.
  Result<ServerIdentity> ReadIdentity();
  // Does nothing for so long.
  void Wait(Nanos time) { asker_.Wait(time); }

  std::string address() const { return "http://" + root_.Authority(); }

 private:
  LiveServer(Url root, ServerKeys keys, std::unique_ptr<HttpClient> client, const Clock& clock,
             FunctionRef<bool()> go_on);
  Result<ShortAnswer> Get(const std::string& key, const std::string& target);
  Status ReadModel(ServerIdentity* identity);
  Status ReadKv(ServerIdentity* identity);

  const Url root_;  // that /metrics is under
  const ServerKeys keys_;
  const std::unique_ptr<HttpClient> client_;
  Asker asker_;
};

}  // namespace cachalot::load
