// ApiService answers the API's requests: pages at once, generations by way of the text workers and the generator.
// Threads:   I/O thread, except that its jobs run on the text workers.
// Ownership: owns the requests in progress, with their exchanges; borrows everything else.
// Invariant: a client that goes away has its work cancelled; every request is answered once.
// Cost:      some microseconds per request and per token, besides what the workers do.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "server/api_keys.h"
#include "server/generation.h"
#include "server/generator.h"
#include "server/http_types.h"
#include "server/kv_admin.h"
#include "server/public_prefixes.h"
#include "server/router.h"
#include "server/served_model.h"
#include "server/server_options.h"
#include "server/session_api.h"
#include "server/text_workers.h"

namespace cachalot::server {

class ApiService final : public HttpHandler {
 public:
  struct Deps {
    const ServedModel& model;
    Generator& generator;
    const Clock& clock;
    Metrics& metrics;
    TextWorkers& workers;
    std::function<void(std::function<void()>)> post;  // to the I/O thread, from any thread
    uint64_t entropy = 0;                             // of ids and default seeds
    const ApiKeys& keys;
    const PublicPrefixes& public_prefixes;
    const Json& settings;
    std::string version;
  };

  ApiService(const ServerOptions& options, Deps deps);

  void Handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;
  void OnResponse(int status) override;
  void OnTick() override;

  // What the generator said since the last call, in order. A client gets all of it in one write.
  void OnSteps(const std::vector<engine::StepOutput>& outputs);

  // New generations are refused; those in progress go on.
  void Drain() { draining_ = true; }
  // Forgets all requests in progress without answering them.
  void Clear();

 private:
  // A request while the workers have it.
  struct Preparing {
    std::shared_ptr<Exchange> exchange;
    Nanos arrived;
    std::shared_ptr<std::atomic<bool>> gone;  // the worker need not begin
  };
  // A request while the generator has it.
  struct Running {
    std::unique_ptr<Generation> generation;
    std::vector<RequestId> ids;  // one per prompt
    bool touched = false;        // by the steps that are being handled
  };
  struct PromptRef {
    uint64_t key;
    size_t prompt;
  };

  // Nothing when the key does not open the path.
  std::optional<Sender> SenderFor(Access access, std::string_view authorization) const;
  void HandleAllowed(const RouteMatch& match, const Sender& sender, HttpRequest request,
                     std::shared_ptr<Exchange> exchange);
  void HandlePage(const RouteMatch& match, Exchange& exchange);
  void BeginPreparing(const PrepareContext& context, Endpoint endpoint, HttpRequest request,
                      std::shared_ptr<Exchange> exchange);
  void EndPreparing(uint64_t key, ApiResult<PreparedRequest>& result);
  void StartGeneration(uint64_t key, Preparing preparing, PreparedRequest prepared);
  void Forget(uint64_t key);
  void Remove(uint64_t key);
  void Deliver(const engine::StepOutput& output);
  template <class Event, class Consumer>
  void DeliverEach(const std::vector<Event>& events, Consumer consume);
  void UpdateMetrics(const engine::StepOutput& output);
  std::string NewId(std::string_view prefix);

  const ServerOptions options_;
  const Deps deps_;
  const int64_t started_unix_seconds_;
  KvAdmin admin_;
  SessionApi sessions_;
  SplitMix64 ids_;
  SplitMix64 seeds_;
  bool draining_ = false;
  uint64_t next_key_ = 1;
  uint64_t next_request_ = 1;
  std::unordered_map<uint64_t, Preparing> preparing_;  // by key
  std::unordered_map<uint64_t, Running> running_;      // by key
  std::unordered_map<uint64_t, PromptRef> prompts_;    // by request id
  std::vector<uint64_t> touched_;                      // keys
  engine::EngineStats seen_;                           // totals already counted
};

}  // namespace cachalot::server
