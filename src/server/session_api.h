// SessionApi lets clients see, move and end their sessions, and fetch KV before they need it: it hands the engine what
// they ask, and them what it says.
// Threads:   I/O thread, except that prefetches are prepared on the text workers.
// Ownership: owns the exchanges that wait; borrows everything else.
// Invariant: a client reaches its own tenant's sessions only; the administration reaches all. Every command is answered
//            once, unless its client goes; what it asked for is done all the same.
// Cost:      a message to the engine each; a prompt is tokenized besides.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/session.h"
#include "server/api_keys.h"
#include "server/generator.h"
#include "server/http_types.h"
#include "server/prompt.h"
#include "server/router.h"
#include "server/text_workers.h"

namespace cachalot::server {

class SessionApi {
 public:
  struct Deps {
    Generator& generator;
    TextWorkers& workers;
    std::function<void(std::function<void()>)> post;  // to the I/O thread, from any thread
    const ApiKeys& keys;
  };

  explicit SessionApi(Deps deps) : deps_(std::move(deps)) {}

  // `by`: who asks, found to be allowed to. The context is that of their requests.
  void Handle(const RouteMatch& match, const Sender& by, const PrepareContext& context, HttpRequest request,
              std::shared_ptr<Exchange> exchange);

  void OnAnswers(const std::vector<engine::SessionAnswer>& answers);
  // Forgets all commands without answering them.
  void Forget() { waiting_.clear(); }

 private:
  struct Waiting {
    std::shared_ptr<Exchange> exchange;
    engine::SessionCommand command;  // without its prompt
  };

  uint64_t Await(std::shared_ptr<Exchange> exchange);
  void Prefetch(const PrepareContext& context, std::string owner, HttpRequest request,
                std::shared_ptr<Exchange> exchange);
  // Passes on what was read for a waiting exchange, or answers it with what is wrong with it.
  void Submit(uint64_t id, const std::string& owner, ApiResult<engine::SessionCommand> command);

  const Deps deps_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, Waiting> waiting_;  // by the command's id
};

}  // namespace cachalot::server
