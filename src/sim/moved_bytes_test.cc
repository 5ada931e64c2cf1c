// Bytes that the engine decides to move, call by call, against what the simulated link and disk count.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/engine.h"
#include "exec/sim/sim_executor.h"
#include "exec/sim/sim_memory.h"
#include "sim/sim_tiers.h"
#include "tier/kv_store.h"

namespace cachalot::sim {
namespace {

bool Holds(std::span<const std::byte> memory, std::span<const std::byte> part) {
  return std::less_equal()(memory.data(), part.data()) &&
         std::less_equal()(part.data() + part.size(), memory.data() + memory.size());
}

// What of each kind was decided.
struct Decided {
  uint64_t to_host = 0, to_staging = 0, from_host = 0, from_staging = 0;  // over the link
  uint64_t staged = 0;                                                    // for runs of the disk
  uint64_t stored = 0, loaded = 0;                                        // runs of the disk that ended well
};

// Memory that writes down where each copy goes.
class WatchedMemory final : public exec::DeviceMemory {
 public:
  WatchedMemory(exec::SimMemory& memory, Decided* decided) : memory_(memory), decided_(decided) {}

  void SetHost(std::span<const std::byte> host) { host_ = host; }

  const char* name() const override { return memory_.name(); }
  std::byte* arena() override { return memory_.arena(); }
  uint64_t slot_bytes() const override { return memory_.slot_bytes(); }
  uint32_t slots() const override { return memory_.slots(); }
  exec::CopyTicket CopyWithin(std::span<const BlockCopy> copies) override { return memory_.CopyWithin(copies); }
  exec::CopyTicket CopyOut(SlotId from, std::span<std::byte> to) override {
    (Holds(host_, to) ? decided_->to_host : decided_->to_staging) += slot_bytes();
    return memory_.CopyOut(from, to);
  }
  exec::CopyTicket CopyIn(std::span<const exec::SlotFill> fills) override {
    for (const exec::SlotFill& fill : fills) {
      (Holds(host_, fill.host) ? decided_->from_host : decided_->from_staging) += fill.host.size();
    }
    return memory_.CopyIn(fills);
  }
  bool Done(exec::CopyTicket ticket) override { return memory_.Done(ticket); }
  Status Wait(exec::CopyTicket ticket) override { return memory_.Wait(ticket); }
  std::optional<Nanos> NextDone() const override { return memory_.NextDone(); }
  Nanos waited() const override { return memory_.waited(); }
  bool asynchronous() const override { return memory_.asynchronous(); }

 private:
  exec::SimMemory& memory_;
  Decided* const decided_;
  std::span<const std::byte> host_;
};

// The disk's store, which writes down what becomes of each run.
class WatchedStore final : public tier::KvStore {
 public:
  WatchedStore(tier::KvStore& store, uint64_t slot_bytes, Decided* decided)
      : store_(store), slot_bytes_(slot_bytes), decided_(decided) {}

  uint32_t GroupsOf(const Digest& identity, const Digest& key) const override { return store_.GroupsOf(identity, key); }
  void Touch(std::span<const Digest> keys) override { store_.Touch(keys); }
  Nanos DeadlineOf(const Digest& key) const override { return store_.DeadlineOf(key); }
  Result<tier::TransferId> Load(tier::KvRun run, uint64_t bytes, Nanos deadline,
                                tier::TransferPriority priority) override {
    EXPECT_EQ(bytes, BytesOf(run));
    return Note(store_.Load(std::move(run), bytes, deadline, priority), bytes);
  }
  void Cancel(tier::TransferId id) override { store_.Cancel(id); }
  void Raise(tier::TransferId id) override { store_.Raise(id); }
  std::optional<tier::Staging> TakeStaging(uint64_t bytes) override {
    std::optional<tier::Staging> staging = store_.TakeStaging(bytes);
    if (staging) decided_->staged += bytes;
    return staging;
  }
  Result<tier::TransferId> Store(tier::KvRun run, tier::Staging staging) override {
    const uint64_t bytes = BytesOf(run);
    return Note(store_.Store(std::move(run), std::move(staging)), bytes);
  }
  Result<tier::TransferId> Sync() override { return store_.Sync(); }
  Result<tier::TransferId> Erase(std::vector<Digest> keys) override { return store_.Erase(std::move(keys)); }
  Status Clear() override { return store_.Clear(); }
  std::vector<Ended> Poll(Nanos now) override {
    std::vector<Ended> ended = store_.Poll(now);
    for (const Ended& end : ended) {
      const auto begun = begun_.find(end.id.value);
      if (begun != begun_.end() && end.status.ok()) (end.load ? decided_->loaded : decided_->stored) += begun->second;
      begun_.erase(end.id.value);
    }
    return ended;
  }
  void OnEnd(std::function<void()> call) override { store_.OnEnd(std::move(call)); }
  std::optional<Nanos> WakeAt() const override { return store_.WakeAt(); }
  uint64_t queued_load_bytes() const override { return store_.queued_load_bytes(); }
  TierRate load_rate(Nanos now) const override { return store_.load_rate(now); }
  const tier::KvStoreStats& stats() const override { return store_.stats(); }

 private:
  uint64_t BytesOf(const tier::KvRun& run) const {
    uint64_t bytes = 0;
    for (const tier::KvRunBlock& block : run.blocks) bytes += tier::BlockBytes(block, slot_bytes_);
    return bytes;
  }
  Result<tier::TransferId> Note(Result<tier::TransferId> id, uint64_t bytes) {
    if (id.ok()) begun_[id->value] = bytes;
    return id;
  }

  tier::KvStore& store_;
  const uint64_t slot_bytes_;
  Decided* const decided_;
  std::map<uint64_t, uint64_t> begun_;  // bytes, by transfer
};

struct Below {
  const char* name;
  uint32_t host_blocks;
  uint64_t disk_blocks;
};

class MovedBytes : public testing::TestWithParam<Below> {};

// Conversations about documents that a pool does not keep.
std::vector<TokenId> PromptOf(SplitMix64& random) {
  SplitMix64 text(random.Below(12));
  std::vector<TokenId> prompt;
  for (int i = 0; i < 1200; ++i) prompt.push_back(static_cast<TokenId>(text.Below(4096)));
  for (int i = 0; i < 40; ++i) prompt.push_back(static_cast<TokenId>(random.Below(4096)));
  return prompt;
}

TEST_P(MovedBytes, AreTheSumOfWhatWasDecided) {
  ManualClock clock;
  exec::SimOptions model{.vocabulary = 4096, .curve = {0.01, 1e-4, 1e-9, 0, 2e-5}};
  model.kv.layers = {{.kv_heads = 1024, .k_dim = 2}};
  exec::SimExecutor executor(model, clock);
  const uint64_t slot_bytes = executor.layout().slot_bytes;
  exec::SimMemory memory(slot_bytes, 300, exec::LinkSpec{.bytes_per_second = 1e9}, clock);
  SimTierOptions options{.link = exec::LinkSpec{.bytes_per_second = 1e9}};
  options.host_blocks = GetParam().host_blocks;
  options.disk_blocks = GetParam().disk_blocks;
  const std::unique_ptr<SimTiers> tiers = SimTiers::Make(options, executor.layout(), clock).value();
  Decided decided;
  WatchedMemory watched(memory, &decided);
  std::optional<WatchedStore> store;
  if (tiers->store() != nullptr) store.emplace(*tiers->store(), slot_bytes, &decided);
  watched.SetHost(tiers->host_bytes());
  exec::Sampler sampler = exec::SimSampler();
  engine::Engine engine({}, executor, watched, sampler,
                        {.identity = {1},
                         .step_curve = model.curve,
                         .host_rate = TierRate{1e-5, 1e9},
                         .store = store ? &*store : nullptr,
                         .host = tiers->host()});
  SplitMix64 random(7);
  engine::StepOutput last;
  constexpr int kSettled = 50;  // steps, after which copies to host memory have ended too
  int quiet = 0;
  for (uint64_t i = 1; i <= 150 || quiet < kSettled;) {
    engine::StepInput input{.now = clock.Now()};
    quiet = engine.idle() && !engine.writes_pending() ? quiet + 1 : 0;
    if (i <= 150 && quiet == kSettled) {
      engine::GenerateRequest request{.id = RequestId(i++), .prompt = PromptOf(random), .max_tokens = 4};
      input.arrivals.push_back(std::move(request));
    }
    last = engine.Step(std::move(input));
    clock.Advance(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(memory.bytes_out(), decided.to_host + decided.to_staging);
  EXPECT_EQ(memory.bytes_in(), decided.from_host + decided.from_staging);
  if (tiers->host() != nullptr) {
    EXPECT_EQ(last.stats.tiers.host_stored_bytes, tiers->host()->counts().committed * slot_bytes);
    EXPECT_LE(last.stats.tiers.host_stored_bytes, decided.to_host);  // what was wanted again meanwhile is not kept
    EXPECT_GT(last.stats.tiers.host_stored_bytes, decided.to_host * 9 / 10);
  }
  EXPECT_EQ(decided.to_host > 0, GetParam().host_blocks > 0);
  EXPECT_EQ(decided.from_host > 0, GetParam().host_blocks > 0);
  if (!store) return;
  EXPECT_EQ(tiers->store()->stats().stored_bytes, decided.stored);
  EXPECT_EQ(tiers->store()->stats().loaded_bytes, decided.loaded);
  EXPECT_EQ(decided.staged, decided.stored);        // nothing was given up
  EXPECT_LE(decided.to_staging, decided.staged);    // the rest lay in host memory
  EXPECT_LE(decided.from_staging, decided.loaded);  // the rest came too late
  EXPECT_GT(decided.from_staging, 0u);
  if (GetParam().host_blocks == 0) {
    EXPECT_EQ(decided.to_staging, decided.stored);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, MovedBytes,
                         testing::Values(Below{"Host", 4096, 0}, Below{"Disk", 0, 16384}, Below{"Both", 800, 16384}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cachalot::sim
