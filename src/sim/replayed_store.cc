#include "sim/replayed_store.h"

#include <algorithm>
#include <utility>

namespace cachalot::sim {
namespace {

Status Logged(bool well) { return well ? OkStatus() : Unavailable("so it was when it was logged"); }

}  // namespace

void ReplayedStore::Begin(engine::StoreAnswers answers) {
  asked_.groups.Begin(std::move(answers.groups));
  asked_.deadlines.Begin(std::move(answers.deadlines));
  asked_.load_rates.Begin(std::move(answers.load_rates));
  asked_.levels.Begin(std::move(answers.levels));
  asked_.refusals.Begin(std::move(answers.refusals));
  starts_ = std::move(answers.starts);
  started_ = 0;
  ends_ = std::move(answers.ends);
}

uint32_t ReplayedStore::GroupsOf(const Digest&, const Digest& key) const {
  return asked_.groups.Answer(engine::AnswerKey(key)) & static_cast<uint32_t>(groups_);
}

Nanos ReplayedStore::DeadlineOf(const Digest& key) const { return asked_.deadlines.Answer(engine::AnswerKey(key)); }
TierRate ReplayedStore::load_rate(Nanos) const { return asked_.load_rates.Answer(0); }

// What is not in the log is refused, as by a store that has too much to do.
Result<tier::TransferId> ReplayedStore::Start() {
  const tier::TransferId id(started_ < starts_.size() ? starts_[started_++] : 0);
  if (id <= last_) return Overloaded("it was not begun when it was logged");
  ++stats_.transfers;
  return last_ = id;
}

Result<tier::TransferId> ReplayedStore::Load(tier::KvRun, uint64_t bytes, Nanos, tier::TransferPriority) {
  CACHALOT_ASSIGN_OR_RETURN(const tier::TransferId id, Start());
  loads_.push_back({id, bytes});
  queued_load_bytes_ += bytes;
  return id;
}

Result<tier::TransferId> ReplayedStore::Store(tier::KvRun, tier::Staging) { return Start(); }
Result<tier::TransferId> ReplayedStore::Erase(std::vector<Digest>) { return Start(); }

std::optional<tier::Staging> ReplayedStore::TakeStaging(uint64_t bytes) {
  return Refused(engine::StoreConsent::kStaging) ? std::nullopt : Bytes(bytes);
}

Status ReplayedStore::Clear() {
  Status status = Logged(!Refused(engine::StoreConsent::kClear));
  TakeLevels();
  return status;
}

std::vector<tier::KvStore::Ended> ReplayedStore::Poll(Nanos) {
  std::vector<Ended> ended;
  for (const engine::StoreEnd& end : std::exchange(ends_, {})) {
    Ended& one = ended.emplace_back(Ended{.id = tier::TransferId(end.transfer), .status = Logged(end.well)});
    const auto load = std::ranges::find(loads_, one.id, &UnderWay::id);
    if (load == loads_.end()) continue;
    one.load = true;
    if (end.well) {
      std::optional<tier::Staging> bytes = Bytes(load->bytes);
      if (bytes) one.bytes = std::move(*bytes);
      if (!bytes) one.status = Unavailable("there are no addresses for it");
    }
    loads_.erase(load);
  }
  TakeLevels();
  return ended;
}

void ReplayedStore::TakeLevels() {
  const engine::StoreLevels levels = asked_.levels.Answer(0);
  stats_.health = Logged(levels.well);
  stats_.transfers = levels.transfers;
  queued_load_bytes_ = levels.queued_load_bytes;
}

// All have the same ones: what lies there is never looked at.
std::optional<tier::Staging> ReplayedStore::Bytes(uint64_t bytes) {
  if (addresses_.empty() || addresses_.back().bytes().size() < bytes) {
    Result<AddressRange> more = AddressRange::Reserve(std::max(bytes, run_bytes()));
    if (!more.ok()) return std::nullopt;
    addresses_.push_back(std::move(*more));
  }
  return tier::Staging(nullptr, addresses_.back().bytes().first(bytes));
}

}  // namespace cachalot::sim
