// Thrash in the middle phase: many agents, each of whose contexts grows, evict what the others come back for before
// running requests fill the pool. No control, CONCUR's, and the server's own.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "sim/papers/papers.h"
#include "sim/serving.h"

namespace cachalot::sim {
namespace {

constexpr uint32_t kAgents = 44;
constexpr Nanos kWindow = std::chrono::seconds(10);  // of hit rates, and of CONCUR's control

// On a model of about 8B parameters.
ServingOptions Setting(uint64_t seed) {
  ServingOptions options{.seed = seed};
  options.clients = {.clients = kAgents,
                     .system_tokens = 1024,
                     .first = {1000, 3000},
                     .next = {400, 2400},
                     .output = {50, 250},
                     .turns = {16, 32},
                     .max_tokens = 512,
                     .shortest_think = std::chrono::milliseconds(500),
                     .mean_think = std::chrono::milliseconds(1500)};
  options.model.curve = {0.01, 5e-5, 4e-9, 0, 2e-5};
  options.slots = 16384;
  options.engine.thrash_control = false;
  options.measured = std::chrono::hours(10);  // it ends with the last agent
  return options;
}

// How a stretch of time went.
struct Phase {
  double cached = 0, computed = 0;  // prompt tokens
  double in_use = 0;                // mean share of the pool that running requests hold
  double HitRate() const { return cached + computed > 0 ? cached / (cached + computed) : 1; }
};

// Of the windows [begin, end) together.
Phase Together(const std::vector<Phase>& windows, size_t begin, size_t end) {
  Phase all;
  for (size_t i = begin; i < end; ++i) {
    all.cached += windows[i].cached;
    all.computed += windows[i].computed;
    all.in_use += windows[i].in_use / static_cast<double>(end - begin);
  }
  return all;
}

class Watch {
 public:
  // Whether a window has ended with this step.
  bool Observe(Nanos now, const engine::EngineStats& stats) {
    in_use_ += static_cast<double>(stats.in_use_slots()) / stats.total_slots;
    ++steps_;
    if (now < ends_) return false;
    ends_ = now + kWindow;
    const auto cached = static_cast<double>(stats.prompt_tokens_cached - cached_);
    const auto computed = static_cast<double>(stats.prompt_tokens_computed - computed_);
    cached_ = stats.prompt_tokens_cached;
    computed_ = stats.prompt_tokens_computed;
    windows_.push_back({.cached = cached, .computed = computed, .in_use = in_use_ / steps_});
    in_use_ = steps_ = 0;
    return true;
  }
  const std::vector<Phase>& windows() const { return windows_; }

 private:
  Nanos ends_ = kWindow;
  double in_use_ = 0, steps_ = 0;
  uint64_t cached_ = 0, computed_ = 0;
  std::vector<Phase> windows_;
};

// So many agents may be active: more while little of the pool is in use, half while much is and little hits.
class ConcurControl {
 public:
  void Observe(const Phase& window) {
    if (window.in_use < 0.2) {
      most_ += 2;
    } else if (window.in_use > 0.5 && window.HitRate() < 0.2) {
      most_ = (most_ + 1) / 2;
    }
  }
  // An agent is active from its first step to its last; while too many are, who comes next waits behind all that wait.
  bool MayAsk(uint32_t agent) {
    const bool is_active = std::ranges::find(active_, agent) != active_.end();
    if (is_active && active_.size() <= most_) return true;
    End(agent);
    if (std::ranges::find(waiting_, agent) == waiting_.end()) waiting_.push_back(agent);
    const auto at = std::ranges::find(waiting_, agent);
    if (active_.size() + static_cast<size_t>(at - waiting_.begin()) >= most_) return false;
    waiting_.erase(at);
    active_.push_back(agent);
    return true;
  }
  void End(uint32_t agent) { std::erase(active_, agent); }

 private:
  uint32_t most_ = 2;
  std::vector<uint32_t> active_;
  std::deque<uint32_t> waiting_;
};

struct Served {
  std::vector<Phase> windows;
  double hit_rate = 0;
  double seconds = 0;  // until the last agent was done
};

// A batch: each agent has one conversation, and all begin at once. Without `control` none is held back.
Result<Served> Serve(ServingOptions options, ConcurControl* control) {
  Watch watch;
  options.observe = [&](Nanos now, const engine::EngineStats& stats) {
    if (watch.Observe(now, stats) && control != nullptr) control->Observe(watch.windows().back());
  };
  std::vector<bool> begun(options.clients.clients);
  options.may_ask = [&](uint32_t agent, bool begins) {
    const bool done = begins && begun[agent];
    if (done && control != nullptr) control->End(agent);
    if (done || (control != nullptr && !control->MayAsk(agent))) return false;
    begun[agent] = true;
    return true;
  };
  CACHALOT_ASSIGN_OR_RETURN(const ServingReport report, SimulateServing(options));
  Nanos end{0};
  for (const ServedRequest& request : report.requests) end = std::max(end, request.finish);
  const auto cached = static_cast<double>(report.last.prompt_tokens_cached);
  const auto computed = static_cast<double>(report.last.prompt_tokens_computed);
  return Served{.windows = watch.windows(), .hit_rate = cached / (cached + computed), .seconds = ToSeconds(end)};
}

}  // namespace

Result<PaperResult> Concur(const PaperInput& input) {
  ServingOptions setting = Setting(input.seed);
  CACHALOT_ASSIGN_OR_RETURN(const Served none, Serve(setting, nullptr));
  ConcurControl control;
  CACHALOT_ASSIGN_OR_RETURN(const Served concur, Serve(setting, &control));
  setting.engine.thrash_control = true;
  CACHALOT_ASSIGN_OR_RETURN(const Served ours, Serve(setting, nullptr));

  const size_t windows = none.windows.size();
  if (windows < 9) return Invalid("the batch was over before it had a middle");
  const Phase first = Together(none.windows, 0, 3), middle = Together(none.windows, windows / 3, windows * 2 / 3);
  const Phase last = Together(none.windows, windows - 3, windows);
  using enum FigureUnit;
  return PaperResult{
      .setting = fmt::format("a batch of {} agents of 16 to 32 steps, whose contexts grow from 3,000 to about 40,000 "
                             "tokens, on {} tokens of KV",
                             kAgents, FormatCount(uint64_t{setting.slots} * setting.model.kv.block_tokens)),
      .rows = {
          ShownRow("hit rate without control, first 30 s", kPercent, first.HitRate()),
          ClaimRow("hit rate without control, middle third", kPercent, middle.HitRate(),
                   "less than two thirds of before and after",
                   middle.HitRate() < std::min(first.HitRate(), last.HitRate()) * 2 / 3),
          ShownRow("hit rate without control, last 30 s", kPercent, last.HitRate()),
          ClaimRow("pool held by running requests, middle third", kPercent, middle.in_use, "less than 90 %",
                   middle.in_use < 0.9),
          ShownRow("hit rate without control", kPercent, none.hit_rate),
          ClaimRow("hit rate, CONCUR", kPercent, concur.hit_rate, "more than without", concur.hit_rate > none.hit_rate),
          ClaimRow("hit rate, the server's own control", kPercent, ours.hit_rate, "more than without",
                   ours.hit_rate > none.hit_rate),
          ShownRow("time of the batch without control", kSeconds, none.seconds),
          ClaimRow("speed-up, CONCUR", kTimes, none.seconds / concur.seconds, "more than 1",
                   concur.seconds < none.seconds, 4.09),
          ClaimRow("speed-up, the server's own control", kTimes, none.seconds / ours.seconds, "more than 1",
                   ours.seconds < none.seconds)}};
}

}  // namespace cachalot::sim
