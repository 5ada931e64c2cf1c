#include "tier/disk_tier.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace cachalot::tier {
namespace {

// Room that a segment needs when it holds nothing but this record.
uint64_t SegmentBytesFor(const RecordHeader& record) {
  return kDiskPage + RecordBytes(record) + FooterBytes(8 + HeaderBytes(record));
}

// Where a run stands while it is cut into records.
struct Cut {
  size_t block = 0;
  size_t token = 0;
  uint64_t byte = 0;
};

// The next record of the run: one block, and more while they fit.
RecordHeader NextRecord(const KvRun& run, const Cut& cut, uint64_t slot_bytes, uint64_t record_bytes) {
  RecordHeader record;
  record.identity = run.identity;
  record.parent = cut.block == 0 ? run.parent : run.blocks[cut.block - 1].key;
  record.first_position = run.first_position + cut.token;
  uint64_t bytes = 0, tokens = 0;
  for (const KvRunBlock& block : std::span(run.blocks).subspan(cut.block)) {
    bytes += BlockBytes(block, slot_bytes);
    tokens += block.tokens;
    const bool full = bytes > record_bytes || tokens > kMaxRecordTokens || record.blocks.size() == kMaxRecordBlocks;
    if (full && !record.blocks.empty()) break;
    record.blocks.push_back(
        {block.key, block.tokens, block.groups, static_cast<uint32_t>(BlockBytes(block, slot_bytes)), 0});
    record.tokens.resize(tokens);
  }
  std::copy_n(run.tokens.begin() + static_cast<ptrdiff_t>(cut.token), record.tokens.size(), record.tokens.begin());
  return record;
}

bool SameRecordNext(const FoundBlock& first, const FoundBlock& other, size_t distance) {
  return other.record == first.record && other.index == first.index + distance;
}

}  // namespace

Status DiskTier::Written(Status outcome) {
  if (!outcome.ok()) ++stats_.failed_writes;
  return health_.Note(std::move(outcome), clock_.Now());
}

Status DiskTier::Put(const KvRun& run, std::span<const std::byte> bytes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t slot_bytes, SlotBytesOf(run, bytes.size()));
  for (const KvRunBlock& block : run.blocks) {
    if (block.tokens > kMaxRecordTokens) return Invalid(fmt::format("block of {} tokens", block.tokens));
    RecordHeader alone;
    alone.blocks = {{block.key, block.tokens, block.groups, static_cast<uint32_t>(BlockBytes(block, slot_bytes)), 0}};
    alone.tokens.resize(block.tokens);
    if (SegmentBytesFor(alone) <= segment_bytes_) continue;
    return Invalid(
        fmt::format("a block of {} does not fit a segment of {}: the disk tier needs a larger size or segments",
                    FormatBytes(alone.blocks[0].bytes), FormatBytes(segment_bytes_)));
  }
  if (!health_.MayWrite(clock_.Now())) {
    ++stats_.refused_puts;
    return health();
  }
  return Written(AppendRun(run, bytes, slot_bytes));
}

Status DiskTier::AppendRun(const KvRun& run, std::span<const std::byte> bytes, uint64_t slot_bytes) {
  const uint64_t record_bytes = std::min(options_.record_bytes, segment_bytes_ / 2);
  for (Cut cut; cut.block < run.blocks.size();) {
    RecordHeader record = NextRecord(run, cut, slot_bytes, record_bytes);
    const std::span<const std::byte> payload = bytes.subspan(cut.byte, PayloadBytes(record));
    cut = {cut.block + record.blocks.size(), cut.token + record.tokens.size(), cut.byte + payload.size()};
    CACHALOT_RETURN_IF_ERROR(OpenSegmentFor(record));
    CACHALOT_RETURN_IF_ERROR(AppendRecord(std::move(record), payload));
    ++stats_.put_records;
    stats_.put_bytes += payload.size();
    CACHALOT_RETURN_IF_ERROR(PrepareRoom());
  }
  return OkStatus();
}

std::optional<DiskBlock> DiskTier::Find(const Digest& key) const {
  const std::optional<FoundBlock> found = index_.Find(key);
  if (!found) return std::nullopt;
  return found->block;
}

std::vector<DiskBlock> DiskTier::Match(const Digest& identity, std::span<const Digest> keys) const {
  std::vector<DiskBlock> leading;
  for (const Digest& key : keys) {
    const std::optional<FoundBlock> found = index_.Find(key);
    if (!found || found->identity != identity) break;
    leading.push_back(found->block);
  }
  return leading;
}

Result<std::vector<ReadOutcome>> DiskTier::Read(const KvRun& run, std::span<std::byte> into) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t slot_bytes, SlotBytesOf(run, into.size()));
  std::vector<ReadOutcome> outcomes(run.blocks.size(), ReadOutcome::kMissing);
  const auto find = [&](size_t i) -> std::optional<FoundBlock> {
    const KvRunBlock& wanted = run.blocks[i];
    const std::optional<FoundBlock> found = index_.Find(wanted.key);
    const DiskBlock facts{wanted.tokens, wanted.groups, static_cast<uint32_t>(BlockBytes(wanted, slot_bytes))};
    if (!found || found->block != facts) return std::nullopt;
    return found;
  };
  size_t token = 0;
  for (size_t i = 0, end = 0; i < run.blocks.size(); i = end) {
    const std::optional<FoundBlock> first = find(i);
    size_t tokens = 0;
    uint64_t bytes = 0;
    do {
      tokens += run.blocks[end].tokens;
      bytes += BlockBytes(run.blocks[end], slot_bytes);
      ++end;
      const std::optional<FoundBlock> next = first && end < run.blocks.size() ? find(end) : std::nullopt;
      if (!next || !SameRecordNext(*first, *next, end - i)) break;
    } while (true);
    if (first) {
      ReadPart({first->record, segments_.UuidOf(first->record.segment), first->index},
               {run.identity, std::span(run.blocks).subspan(i, end - i), std::span(run.tokens).subspan(token, tokens)},
               into.first(bytes), std::span(outcomes).subspan(i, end - i));
    } else {
      ++stats_.read_blocks[static_cast<size_t>(ReadOutcome::kMissing)];
    }
    token += tokens;
    into = into.subspan(bytes);
  }
  return outcomes;
}

void DiskTier::ReadPart(const PartOfRecord& part, const ExpectedBlocks& expected, std::span<std::byte> into,
                        std::span<ReadOutcome> outcomes) {
  const Result<std::shared_ptr<const File>> file = segments_.FileOf(part.record.segment);
  if (file.ok()) {
    std::ranges::copy(reader_.Read(**file, part, expected, into), outcomes.begin());
  } else {
    std::ranges::fill(outcomes, ReadOutcome::kUnreadable);
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    ++stats_.read_blocks[static_cast<size_t>(outcomes[i])];
    if (outcomes[i] == ReadOutcome::kRead) {
      index_.Touch(expected.blocks[i].key, appended_bytes_);
    } else {
      index_.Drop(expected.blocks[i].key);
    }
  }
  stats_.read_bytes += into.size();
}

Status DiskTier::Erase(std::span<const Digest> keys) {
  if (keys.empty()) return OkStatus();
  const uint64_t sequence = NextSequence();
  for (const Digest& key : keys) index_.Drop(key);
  deletions_.Add(keys, sequence);
  CACHALOT_RETURN_IF_ERROR(Written(StoreDeletions()));
  // The deletion stands; a file that cannot be removed now goes when room is needed.
  (void)RemoveEmptySegments();
  return OkStatus();
}

Status DiskTier::Clear() {
  if (open_ != nullptr) AbandonOpen();
  return Written(RemoveAll());
}

Status DiskTier::Flush() {
  const bool nothing = (open_ == nullptr || !open_->unsynced()) && segments_.names_synced() && !deletions_.unstored();
  return nothing ? OkStatus() : Written(SyncAll());
}

Status DiskTier::Seal() {
  if (open_ != nullptr) CACHALOT_RETURN_IF_ERROR(Written(SealOpen()));
  return Flush();
}

DiskTierStats DiskTier::stats() const {
  DiskTierStats stats = stats_;
  stats.segments = segments_.all().size();
  stats.occupied_bytes = segments_.occupied_bytes();
  stats.live_blocks = index_.live_blocks();
  stats.live_bytes = index_.live_bytes();
  stats.index_bytes = index_.MemoryBytes();
  stats.deletions = deletions_.size();
  return stats;
}

}  // namespace cachalot::tier
