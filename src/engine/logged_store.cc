// What a store answers, as an input log hears it.
#include <memory>
#include <utility>

#include "engine/input_log.h"
#include "tier/kv_store.h"

namespace cachalot::engine {
namespace {

class LoggedStore final : public tier::KvStore {
 public:
  LoggedStore(tier::KvStore& store, InputLog& log) : store_(store), log_(log) {}

  uint32_t GroupsOf(const Digest& identity, const Digest& key) const override {
    const uint32_t groups = store_.GroupsOf(identity, key);
    if (StoreNotes* const notes = log_.store()) notes->asked.groups.Note(AnswerKey(key), groups);
    return groups;
  }
  void Touch(std::span<const Digest> keys) override { store_.Touch(keys); }
  Nanos DeadlineOf(const Digest& key) const override {
    const Nanos deadline = store_.DeadlineOf(key);
    if (StoreNotes* const notes = log_.store()) notes->asked.deadlines.Note(AnswerKey(key), deadline);
    return deadline;
  }
  TierRate load_rate(Nanos now) const override {
    const TierRate rate = store_.load_rate(now);
    if (StoreNotes* const notes = log_.store()) notes->asked.load_rates.Note(0, rate);
    return rate;
  }

  Result<tier::TransferId> Load(tier::KvRun run, uint64_t bytes, Nanos deadline,
                                tier::TransferPriority priority) override {
    return Started(store_.Load(std::move(run), bytes, deadline, priority));
  }
  void Cancel(tier::TransferId id) override { store_.Cancel(id); }
  void Raise(tier::TransferId id) override { store_.Raise(id); }
  std::optional<tier::Staging> TakeStaging(uint64_t bytes) override {
    std::optional<tier::Staging> staging = store_.TakeStaging(bytes);
    NoteConsent(StoreConsent::kStaging, staging.has_value());
    return staging;
  }
  Result<tier::TransferId> Store(tier::KvRun run, tier::Staging bytes) override {
    return Started(store_.Store(std::move(run), std::move(bytes)));
  }
  Result<tier::TransferId> Sync() override { return Started(store_.Sync()); }
  Result<tier::TransferId> Erase(std::vector<Digest> keys) override { return Started(store_.Erase(std::move(keys))); }
  Status Clear() override {
    Status status = store_.Clear();
    NoteConsent(StoreConsent::kClear, status.ok());
    NoteLevels();
    return status;
  }

  std::vector<Ended> Poll(Nanos now) override {
    std::vector<Ended> ended = store_.Poll(now);
    if (StoreNotes* const notes = log_.store()) {
      for (const Ended& end : ended) notes->ends.push_back({end.id.value, end.status.ok()});
    }
    NoteLevels();
    return ended;
  }
  void OnEnd(std::function<void()> call) override { store_.OnEnd(std::move(call)); }
  std::optional<Nanos> WakeAt() const override { return store_.WakeAt(); }

  uint64_t queued_load_bytes() const override { return store_.queued_load_bytes(); }
  const tier::KvStoreStats& stats() const override { return store_.stats(); }

 private:
  Result<tier::TransferId> Started(Result<tier::TransferId> id) {
    if (StoreNotes* const notes = log_.store()) notes->starts.push_back(id.ok() ? id->value : 0);
    return id;
  }
  void NoteConsent(StoreConsent what, bool given) {
    if (StoreNotes* const notes = log_.store()) notes->asked.refusals.Note(static_cast<uint64_t>(what), !given);
  }
  void NoteLevels() {
    const tier::KvStoreStats& stats = store_.stats();
    const StoreLevels levels{stats.health.ok(), stats.transfers, store_.queued_load_bytes()};
    if (StoreNotes* const notes = log_.store()) notes->asked.levels.Note(0, levels);
  }

  tier::KvStore& store_;
  InputLog& log_;
};

}  // namespace

std::optional<StoreAnswers> StoreNotes::Take() {
  StoreAnswers answers{.groups = asked.groups.Take(),
                       .deadlines = asked.deadlines.Take(),
                       .load_rates = asked.load_rates.Take(),
                       .levels = asked.levels.Take(),
                       .refusals = asked.refusals.Take(),
                       .starts = std::exchange(starts, {}),
                       .ends = std::exchange(ends, {})};
  return answers.empty() ? std::nullopt : std::optional(std::move(answers));
}

std::unique_ptr<tier::KvStore> MakeLoggedStore(tier::KvStore& store, InputLog& log) {
  return std::make_unique<LoggedStore>(store, log);
}

}  // namespace cachalot::engine
