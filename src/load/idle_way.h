// IdleWay is how a kind of server is told to let go of a conversation between two turns, and to have it back.
// Threads:   one thread.
// Ownership: borrows the asker.
// Invariant: none.
// Cost:      a request or two per call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "load/asker.h"
#include "load/resume_options.h"
#include "load/url.h"

namespace cachalot::load {

class IdleWay {
 public:
  virtual ~IdleWay() = default;
  virtual std::string name() const = 0;
  // Members of the bodies of a conversation's requests, besides those that all servers know.
  virtual std::string Members(uint64_t conversation) const = 0;
  // Its KV leaves the memory that attention reads, and is kept elsewhere.
  virtual Status Suspend(uint64_t conversation) = 0;
  // Asks for what a client must have back before it goes on, which is part of its wait; false: for nothing.
  virtual Result<bool> Restore(uint64_t conversation) = 0;
  // Where the server says that most of its KV is, e.g. "disk"; empty: it does not say.
  virtual Result<std::string> Where(uint64_t conversation) = 0;
};

// The way that the options name. `url` is the API's.
Result<std::unique_ptr<IdleWay>> MakeIdleWay(const ResumeOptions& options, const Url& url, Asker* asker);

}  // namespace cachalot::load
