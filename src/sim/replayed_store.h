// ReplayedStore is the disk tier of a server as its input log tells of it: what it said then it says again.
// Threads:   one.
// Ownership: owns what is left of the log's answers.
// Invariant: the engine that asked then gets the answers that it got. Whatever a log says: groups are those of the
//            layout, a transfer begins under an id that no other had, and a load that ends well brings its bytes.
// Cost:      that of engine/changed_answers.h; addresses for the largest run, which nobody fills.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/store_answers.h"
#include "sim/address_range.h"
#include "tier/kv_store.h"

namespace cachalot::sim {

class ReplayedStore final : public tier::KvStore {
 public:
  explicit ReplayedStore(size_t groups) : groups_((uint64_t{1} << groups) - 1) {}

  // Of the next step.
  void Begin(engine::StoreAnswers answers);

  uint32_t GroupsOf(const Digest& identity, const Digest& key) const override;
  void Touch(std::span<const Digest>) override {}
  Nanos DeadlineOf(const Digest& key) const override;
  Result<tier::TransferId> Load(tier::KvRun run, uint64_t bytes, Nanos deadline,
                                tier::TransferPriority priority) override;
  void Cancel(tier::TransferId) override {}
  void Raise(tier::TransferId) override {}
  std::optional<tier::Staging> TakeStaging(uint64_t bytes) override;
  Result<tier::TransferId> Store(tier::KvRun run, tier::Staging bytes) override;
  Result<tier::TransferId> Sync() override { return Start(); }
  Result<tier::TransferId> Erase(std::vector<Digest> keys) override;
  Status Clear() override;
  std::vector<Ended> Poll(Nanos now) override;
  void OnEnd(std::function<void()>) override {}
  std::optional<Nanos> WakeAt() const override { return std::nullopt; }
  uint64_t queued_load_bytes() const override { return queued_load_bytes_; }
  TierRate load_rate(Nanos now) const override;
  const tier::KvStoreStats& stats() const override { return stats_; }

 private:
  struct UnderWay {
    tier::TransferId id;
    uint64_t bytes = 0;
  };

  Result<tier::TransferId> Start();
  void TakeLevels();
  bool Refused(engine::StoreConsent what) { return asked_.refusals.Answer(static_cast<uint64_t>(what)); }
  std::optional<tier::Staging> Bytes(uint64_t bytes);

  const uint64_t groups_;  // bits
  mutable engine::StoreQuestions<engine::AnswerReader> asked_;
  std::vector<uint64_t> starts_;
  size_t started_ = 0;  // of them
  std::vector<engine::StoreEnd> ends_;
  tier::TransferId last_{0};
  std::vector<UnderWay> loads_;
  uint64_t queued_load_bytes_ = 0;
  tier::KvStoreStats stats_;
  std::vector<AddressRange> addresses_;  // the last is the largest
};

}  // namespace cachalot::sim
