#include "sim/sim_server.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"

namespace cachalot::sim {
namespace {

constexpr Nanos kLeastStep = std::chrono::milliseconds(1);

class EndAfterTokens final : public StopCondition {
 public:
  explicit EndAfterTokens(uint32_t tokens) : left_(tokens) {}
  bool Push(TokenId) override { return --left_ == 0; }

 private:
  uint32_t left_;
};

}  // namespace

SimServer::SimServer(const exec::SimOptions& model, uint32_t slots, const SimTierOptions& tiers)
    : executor_(model, clock_), memory_(executor_.layout().slot_bytes, slots, tiers.link, clock_) {}

Result<std::unique_ptr<SimServer>> SimServer::Make(const engine::EngineOptions& options, const exec::SimOptions& model,
                                                   uint32_t slots, const SimTierOptions& tiers) {
  if (const auto problems = Problems(model, slots, tiers); !problems.empty()) {
    return Invalid(fmt::format("{}", fmt::join(problems, "; ")));
  }
  std::unique_ptr<SimServer> server(new SimServer(model, slots, tiers));
  CACHALOT_ASSIGN_OR_RETURN(server->tiers_, SimTiers::Make(tiers, server->executor_.layout(), server->clock_));
  engine::ModelFacts facts{.identity = {1}, .store = server->tiers_->store(), .host = server->tiers_->host()};
  if (facts.store != nullptr || facts.host != nullptr) facts.step_curve = model.curve;  // as if it had been calibrated
  if (tiers.link) facts.host_rate = {ToSeconds(tiers.link->latency), tiers.link->bytes_per_second};
  server->engine_.emplace(options, server->executor_, server->memory_, server->answers_, facts);
  return server;
}

engine::StepOutput SimServer::Step(engine::StepInput input) {
  const Nanos begun = clock_.Now(), stalled = engine_->stalled();
  input.now = begun;
  input.last_duration = last_duration_;
  input.last_stalled = last_stalled_;
  input.waited = std::exchange(waited_, Nanos(0));
  engine::StepOutput output = engine_->Step(std::move(input));
  last_duration_ = clock_.Now() - begun;
  last_stalled_ = engine_->stalled() - stalled;
  return output;
}

std::optional<engine::StepOutput> SimServer::Advance(engine::StepInput input, Nanos until) {
  const Nanos begun = clock_.Now();
  const bool nothing_new = input.arrivals.empty() && input.cancels.empty();
  if (nothing_new && (engine_->idle() || engine_->awaits_transfers())) {
    const Nanos due = std::min(until, engine_->next_due().value_or(Nanos::max()));
    CACHALOT_CHECK(due < Nanos::max());  // what is awaited comes some day
    if (due > begun) {
      WaitUntil(due);
      return std::nullopt;
    }
  }
  engine::StepOutput output = Step(std::move(input));
  // Whoever waits, waits for time to pass.
  if (nothing_new && !engine_->idle() && !engine_->awaits_transfers() && clock_.Now() == begun) {
    WaitUntil(begun + kLeastStep);
  }
  return output;
}

void SimServer::WaitUntil(Nanos moment) {
  const Nanos wait = moment - clock_.Now();
  (engine_->idle() ? idle_ : awaited_) += wait;
  waited_ += wait;
  clock_.SleepUntil(moment);
}

TimeSpent SimServer::time() const { return {executor_.computed(), awaited_ + memory_.waited(), idle_}; }

BytesMoved SimServer::moved() const {
  BytesMoved moved{.from_pool = memory_.bytes_out(), .to_pool = memory_.bytes_in()};
  if (const tier::KvStore* store = tiers_->store(); store != nullptr) {
    moved.disk_read = store->stats().loaded_bytes;
    moved.disk_written = store->stats().stored_bytes;
  }
  return moved;
}

std::vector<std::string> Problems(const exec::SimOptions& model, uint32_t slots, const SimTierOptions& tiers) {
  std::vector<std::string> problems;
  if (slots == 0) problems.push_back("the pool has no blocks");
  if (model.vocabulary == 0) problems.push_back("the vocabulary has no tokens");
  const Result<KvLayout> layout = PlanKvLayout(model.kv, model.context_tokens);
  if (!layout.ok()) {
    problems.push_back(layout.status().message());
    return problems;
  }
  for (std::string& problem : Problems(tiers, *layout)) problems.push_back(std::move(problem));
  return problems;
}

StopConditionFactory EndAfter(uint32_t tokens) {
  return [tokens] { return std::make_unique<EndAfterTokens>(tokens); };
}

}  // namespace cachalot::sim
