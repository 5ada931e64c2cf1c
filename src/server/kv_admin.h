// KvAdmin answers the administration's questions about the KV: what is there, what a prompt would find, how was
// decided between loading and computing, and the order to let go of what nobody uses. It passes them on to the engine
// and writes down the answers.
// Threads:   I/O thread, except that probes are prepared on the text workers.
// Ownership: owns the exchanges that wait; borrows everything else.
// Invariant: who asks has been found to be the administration. Every question is answered once, unless its client goes.
// Cost:      a message to the engine each; a probe is tokenized besides.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "server/api_keys.h"
#include "server/generator.h"
#include "server/http_types.h"
#include "server/prompt.h"
#include "server/text_workers.h"

namespace cachalot::server {

class KvAdmin {
 public:
  struct Deps {
    Generator& generator;
    TextWorkers& workers;
    std::function<void(std::function<void()>)> post;  // to the I/O thread, from any thread
    const ApiKeys& keys;
    const Json& settings;  // that the program was started with
  };

  explicit KvAdmin(Deps deps) : deps_(std::move(deps)) {}

  void Snapshot(std::shared_ptr<Exchange> exchange);
  void Clear(std::shared_ptr<Exchange> exchange);
  void Decisions(std::shared_ptr<Exchange> exchange);
  // The body is that of a chat or a completion, and may name the "tenant" who would send it. The context's salt is
  // that of who names none.
  void Probe(const PrepareContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

  void OnAnswers(const std::vector<engine::Answer>& answers, const engine::EngineStats& stats);
  // Forgets all questions without answering them.
  void Forget() { waiting_.clear(); }

 private:
  engine::InquiryId Await(std::shared_ptr<Exchange> exchange);
  void AskProbe(engine::InquiryId id, ApiResult<PreparedRequest>& prepared);

  const Deps deps_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, std::shared_ptr<Exchange>> waiting_;  // by inquiry
};

}  // namespace cachalot::server
