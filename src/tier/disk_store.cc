#include "tier/disk_store.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "cost/tier_rates.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kLeastStaging = uint64_t{16} << 20;
constexpr uint64_t kStagedBlocks = 8;
constexpr uint32_t kReads = 4;  // at once: one that is checked and handed on leaves the disk with enough to do
constexpr Nanos kPatience = std::chrono::seconds(10);  // with a Clear

}  // namespace

// Lets whoever reads wait until that many bytes are due, all readers together.
class DiskStore::ReadPace {
 public:
  // 0: at once.
  ReadPace(Clock& clock, uint64_t bytes_per_second) : clock_(clock), bytes_per_second_(bytes_per_second) {}

  void Await(uint64_t bytes, const std::atomic<bool>& stop) {
    if (bytes_per_second_ == 0) return;
    constexpr Nanos kLook = std::chrono::milliseconds(20);  // for a stop
    const Nanos end = EndOf(bytes);
    while (!stop && clock_.Now() < end) clock_.SleepUntil(std::min(end, clock_.Now() + kLook));
  }

 private:
  Nanos EndOf(uint64_t bytes) {
    const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_second_);
    MutexLock lock(mutex_);
    free_at_ = std::max(free_at_, clock_.Now()) + Nanos(static_cast<Nanos::rep>(seconds * 1e9));
    return free_at_;
  }

  Clock& clock_;
  const uint64_t bytes_per_second_;
  Mutex mutex_;
  Nanos free_at_ CACHALOT_GUARDED_BY(mutex_){0};
};

// Reads all of a run, or says why not. Several run at once.
class DiskStore::LoadJob final : public TransferJob {
 public:
  LoadJob(RunStore& disk, ReadPace& pace, KvRun run, uint64_t bytes)
      : disk_(disk), pace_(pace), run_(std::move(run)), bytes_(bytes) {}

  Status Run(std::span<std::byte> staging, const std::atomic<bool>& stop) override {
    pace_.Await(bytes_, stop);
    if (stop) return Unavailable("nobody waits for it");
    CACHALOT_ASSIGN_OR_RETURN(const std::vector<ReadOutcome> outcomes, disk_.Read(run_, staging.first(bytes_)));
    for (const ReadOutcome outcome : outcomes) {
      if (outcome != ReadOutcome::kRead) return Status(CodeOf(outcome), NameOf(outcome));
    }
    return OkStatus();
  }

 private:
  RunStore& disk_;
  ReadPace& pace_;
  const KvRun run_;
  const uint64_t bytes_;
};

// Changes the disk tier, and brings along how that stood afterwards. Only one runs at a time.
class DiskStore::ChangeJob final : public TransferJob {
 public:
  using Change = std::function<Status(RunStore&, std::span<const std::byte>)>;
  ChangeJob(RunStore& disk, Change change) : disk_(disk), change_(std::move(change)) {}

  Status Run(std::span<std::byte> staging, const std::atomic<bool>& stop) override {
    if (stop) return Unavailable("nobody waits for it");
    Status status = change_(disk_, staging);
    disk_stats_ = disk_.stats();
    health_ = disk_.health();
    return status;
  }

  void Tell(KvStoreStats* stats) const {
    stats->disk = disk_stats_;
    stats->health = health_;
  }

 private:
  RunStore& disk_;
  const Change change_;
  DiskTierStats disk_stats_;
  Status health_;
};

DiskStore::DiskStore(std::unique_ptr<RunStore> disk, std::unique_ptr<TransferEngine> transfers, Clock& clock,
                     const TierRateTable& measured)
    : disk_(std::move(disk)),
      pace_(std::make_unique<ReadPace>(clock, 0)),
      transfers_(std::move(transfers)),
      clock_(clock),
      rates_(std::make_unique<cost::TierRates>(measured)) {
  stats_.disk = disk_->stats();
  stats_.health = disk_->health();
}

DiskStore::~DiskStore() = default;

uint32_t DiskStore::GroupsOf(const Digest& identity, const Digest& key) const {
  const std::optional<DiskBlock> found = disk_->Find(identity, key);
  return found ? found->groups : 0;
}

Result<TransferId> DiskStore::Submit(TransferRequest request) {
  Result<TransferId> id = transfers_->Submit(std::move(request));
  if (id.ok()) ++stats_.transfers;
  return id;
}

Result<TransferId> DiskStore::Load(KvRun run, uint64_t bytes, Nanos deadline, TransferPriority priority) {
  TransferRequest request{.priority = priority,
                          .link = TierId::kDisk,
                          .direction = Direction::kUp,
                          .bytes = bytes,
                          .staging_bytes = bytes,
                          .deadline = deadline,
                          .job = std::make_unique<LoadJob>(*disk_, *pace_, std::move(run), bytes)};
  Result<TransferId> id = Submit(std::move(request));
  if (!id.ok()) return id;
  uint64_t before = 0;
  for (const Loading& other : loading_) before += other.priority <= priority ? other.bytes : 0;
  PassThoseAfter(priority);
  loading_.push_back({.id = *id, .bytes = bytes, .priority = priority, .queued_bytes = before});
  loading_bytes_ += bytes;
  return id;
}

TierRate DiskStore::load_rate(Nanos now) const { return rates_->Rate(TierId::kDisk, Direction::kUp, now); }
void DiskStore::Cancel(TransferId id) { transfers_->Cancel(id); }

void DiskStore::PassThoseAfter(TransferPriority priority) {
  for (Loading& other : loading_) other.passed |= other.priority > priority;
}

// Whatever it passes, itself included, waits for others than was counted.
void DiskStore::Raise(TransferId id) {
  const auto loading = std::ranges::find(loading_, id, &Loading::id);
  if (loading == loading_.end()) return;
  PassThoseAfter(TransferPriority::kPromotion);
  loading->priority = TransferPriority::kPromotion;
  transfers_->Raise(id, TransferPriority::kPromotion);
}

std::optional<Staging> DiskStore::TakeStaging(uint64_t bytes) { return transfers_->TakeStaging(bytes); }
Nanos DiskStore::DeadlineOf(const Digest& key) const { return disk_->DeadlineOf(key); }

std::optional<Nanos> DiskStore::WakeAt() const {
  const std::optional<Nanos> transfer = transfers_->WakeAt(), expiry = expiry_ ? std::nullopt : disk_->NextExpiry();
  if (!transfer || !expiry) return transfer ? transfer : expiry;
  return std::min(*transfer, *expiry);
}

Result<TransferId> DiskStore::Store(KvRun run, Staging bytes) {
  const uint64_t size = bytes.bytes().size();
  TransferRequest request{.priority = TransferPriority::kWriteBack,
                          .link = TierId::kDisk,
                          .direction = Direction::kDown,
                          .bytes = size,
                          .staging = std::move(bytes),
                          .job = std::make_unique<ChangeJob>(*disk_, [run = std::move(run)](RunStore& disk, auto from) {
                            return disk.Put(run, from);
                          })};
  Result<TransferId> id = Submit(std::move(request));
  if (id.ok()) storing_.push_back(*id);
  return id;
}

Result<TransferId> DiskStore::SubmitChange(std::function<Status(RunStore&)> change) {
  return Submit({.priority = TransferPriority::kWriteBack,
                 .link = TierId::kDisk,
                 .direction = Direction::kDown,
                 .job = std::make_unique<ChangeJob>(
                     *disk_, [change = std::move(change)](RunStore& disk, auto) { return change(disk); })});
}

Result<TransferId> DiskStore::Sync() {
  return SubmitChange([](RunStore& disk) { return disk.Flush(); });
}

Result<TransferId> DiskStore::Erase(std::vector<Digest> keys) {
  return SubmitChange([keys = std::move(keys)](RunStore& disk) { return disk.Erase(keys); });
}

std::vector<DiskStore::Ended> DiskStore::Poll(Nanos now) {
  std::vector<Ended> all = std::exchange(ended_, {});
  for (TransferCompletion& completion : transfers_->Poll()) all.push_back(End(completion, now));
  EraseExpired(now);
  stats_.link = transfers_->meters().lanes[TierIndex(TierId::kDisk)];
  return all;
}

// In the background; until then nobody finds it either.
void DiskStore::EraseExpired(Nanos now) {
  const std::optional<Nanos> due = disk_->NextExpiry();
  if (expiry_ || !due || *due > now) return;
  const Result<TransferId> id = SubmitChange([](RunStore& disk) { return disk.EraseExpired(); });
  if (id.ok()) expiry_ = *id;
}

DiskStore::Ended DiskStore::End(TransferCompletion& completion, Nanos now) {
  --stats_.transfers;
  if (expiry_ == completion.id) expiry_.reset();
  if (const auto* change = dynamic_cast<ChangeJob*>(completion.job.get())) change->Tell(&stats_);
  stats_.disk.reads = disk_->reads();
  Ended ended{.id = completion.id, .status = std::move(completion.status)};
  const auto loading = std::ranges::find(loading_, completion.id, &Loading::id);
  ended.load = loading != loading_.end();
  if (ended.load) {
    EndLoad(*loading, completion, now, &ended);
    loading_.erase(loading);
  } else if (std::erase(storing_, completion.id) == 0) {
    return ended;  // another change
  } else if (completion.end == TransferEnd::kDone) {
    stats_.stored_bytes += completion.staging.bytes().size();
  } else if (completion.end != TransferEnd::kCancelled) {
    ++stats_.failed_stores;
  }
  return ended;
}

// What waits to be written must not come after; what is being written goes before, since one goes down at a time.
Status DiskStore::Clear() {
  for (const TransferId id : std::vector(storing_)) transfers_->Cancel(id);
  TransferRequest request{
      .link = TierId::kDisk,
      .direction = Direction::kDown,
      .deadline = clock_.Now() + kPatience,
      .job = std::make_unique<ChangeJob>(*disk_, [](RunStore& disk, auto) { return disk.Clear(); })};
  CACHALOT_ASSIGN_OR_RETURN(const TransferId id, Submit(std::move(request)));
  for (;; clock_.SleepUntil(clock_.Now() + std::chrono::milliseconds(1))) {
    std::optional<Status> cleared;
    for (TransferCompletion& completion : transfers_->Poll()) {
      Ended ended = End(completion, clock_.Now());
      if (ended.id == id) {
        cleared = std::move(ended.status);
      } else {
        ended_.push_back(std::move(ended));
      }
    }
    if (cleared) return *cleared;
  }
}

void DiskStore::EndLoad(const Loading& loading, TransferCompletion& completion, Nanos now, Ended* ended) {
  loading_bytes_ -= loading.bytes;
  const double seconds = ToSeconds(completion.waited + completion.ran);
  const cost::CompletedTransfer moved{loading.bytes, loading.queued_bytes, seconds};
  if (completion.end != TransferEnd::kDone) {
    stats_.failed_loads += completion.end != TransferEnd::kCancelled;
    if (completion.end == TransferEnd::kLate && !loading.passed)
      rates_->Observe(TierId::kDisk, Direction::kUp, moved, now);
    return;
  }
  ended->bytes = std::move(completion.staging);
  stats_.loaded_bytes += loading.bytes;
  if (!loading.passed) rates_->Observe(TierId::kDisk, Direction::kUp, moved, now);
}

Status DiskStore::Close() {
  while (stats_.transfers > 0) {
    Poll(clock_.Now());
    if (stats_.transfers > 0) clock_.SleepUntil(clock_.Now() + std::chrono::milliseconds(1));
  }
  return disk_->Seal();
}

Result<std::unique_ptr<DiskStore>> DiskStore::Open(FileSystem& files, Clock& clock, DiskTierOptions options,
                                                   uint64_t block_bytes, const TierRateTable& measured) {
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<DiskTier> disk, DiskTier::Open(files, clock, std::move(options)));
  const auto make = [&clock](std::span<std::byte> staging, const TransferOptions& transfers) {
    return MakeTransferEngine(staging, transfers, clock);
  };
  return Over(std::move(disk), clock, block_bytes, make, measured);
}

Result<std::unique_ptr<DiskStore>> DiskStore::Over(std::unique_ptr<RunStore> disk, Clock& clock, uint64_t block_bytes,
                                                   const TransferMaker& make, const TierRateTable& measured) {
  auto store = std::make_unique<DiskStore>(std::move(disk), nullptr, clock, measured);
  const uint64_t staging_bytes = std::max(kLeastStaging, kStagedBlocks * (block_bytes + kDiskPage));
  CACHALOT_ASSIGN_OR_RETURN(
      store->transfers_,
      make(store->staging_.Resize(staging_bytes),
           {.limits = {.in_flight_bytes = {staging_bytes, staging_bytes}, .running_jobs = {kReads, 1}},
            .threads = kReads + 1,
            .notify = store->listener_.notify()}));
  return store;
}

void DiskStore::SlowReads(uint64_t bytes_per_second) { pace_ = std::make_unique<ReadPace>(clock_, bytes_per_second); }

void DiskStore::OnEnd(std::function<void()> call) { listener_.Set(std::move(call)); }

}  // namespace cachalot::tier
