#include "tier/disk_index.h"

#include <algorithm>

#include "tier/disk_reclaim.h"

namespace cachalot::tier {

RecordPlace DiskIndex::PlaceOf(uint64_t segment, const Record& record) {
  return {segment, record.offset, record.header_bytes, record.sequence};
}

uint32_t DiskIndex::IdentityNumber(const Digest& identity) {
  const auto found = std::ranges::find(identities_, identity);
  if (found != identities_.end()) return static_cast<uint32_t>(found - identities_.begin());
  identities_.push_back(identity);
  return static_cast<uint32_t>(identities_.size() - 1);
}

const DiskIndex::Record& DiskIndex::RecordOf(const Place& place) const {
  const Segment& segment = segments_.at(place.segment);
  return segment.records[segment.blocks[place.block].record];
}

void DiskIndex::Kill(const Place& place) {
  Segment& segment = segments_.at(place.segment);
  Block& block = segment.blocks[place.block];
  block.live = false;
  --segment.live_blocks;
  live_bytes_ -= block.facts.stored_bytes;
}

void DiskIndex::AddRecord(uint64_t segment_id, const FooterRecord& record, bool live, uint64_t now) {
  const MutexLock lock(mutex_);
  Segment& segment = segments_[segment_id];
  const auto record_index = static_cast<uint32_t>(segment.records.size());
  segment.records.push_back({record.offset, record.header.sequence, static_cast<uint32_t>(HeaderBytes(record.header)),
                             static_cast<uint32_t>(segment.blocks.size()), IdentityNumber(record.header.identity),
                             record.header.expires_unix_seconds});
  if (record.header.expires_unix_seconds != kNeverExpires) {
    expiries_.insert({record.header.expires_unix_seconds, segment_id, record_index});
  }
  uint32_t payload_offset = 0;
  for (const RecordBlock& block : record.header.blocks) {
    const Place place{segment_id, static_cast<uint32_t>(segment.blocks.size())};
    const DiskBlock facts{block.tokens, block.groups, block.bytes, block.stored_bytes};
    segment.blocks.push_back({block.key, facts, record_index, payload_offset, now, false, false});
    payload_offset += block.stored_bytes;
    ++physical_blocks_;
    if (!live) continue;
    const auto [at, added] = places_.try_emplace(block.key, place);
    if (!added) {
      if (RecordOf(at->second).sequence >= record.header.sequence) continue;
      Kill(at->second);
      at->second = place;
    }
    segment.blocks.back().live = true;
    ++segment.live_blocks;
    live_bytes_ += block.stored_bytes;
  }
}

std::optional<FoundBlock> DiskIndex::Find(const Digest& key) const {
  const MutexLock lock(mutex_);
  const auto found = places_.find(key);
  if (found == places_.end()) return std::nullopt;
  const Record& record = RecordOf(found->second);
  const Block& block = segments_.at(found->second.segment).blocks[found->second.block];
  return FoundBlock{
      block.facts,          PlaceOf(found->second.segment, record), found->second.block - record.first_block,
      block.payload_offset, identities_[record.identity],           record.expires_unix_seconds};
}

void DiskIndex::Drop(Places::iterator found) {
  Kill(found->second);
  places_.erase(found);
}

void DiskIndex::Drop(const Digest& key) {
  const MutexLock lock(mutex_);
  if (const auto found = places_.find(key); found != places_.end()) Drop(found);
}

void DiskIndex::DropBefore(const Digest& key, uint64_t sequence) {
  const MutexLock lock(mutex_);
  const auto found = places_.find(key);
  if (found != places_.end() && RecordOf(found->second).sequence < sequence) Drop(found);
}

void DiskIndex::Touch(std::span<const Digest> keys, uint64_t now) {
  const MutexLock lock(mutex_);
  for (const Digest& key : keys) {
    const auto found = places_.find(key);
    if (found == places_.end()) continue;
    Block& block = segments_.at(found->second.segment).blocks[found->second.block];
    block.read = true;
    block.last_use = now;
  }
}

std::optional<int64_t> DiskIndex::NextExpiry() const {
  const MutexLock lock(mutex_);
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->unix_seconds;
}

std::vector<Digest> DiskIndex::TakeExpired(int64_t unix_seconds) {
  const MutexLock lock(mutex_);
  std::vector<Digest> keys;
  while (!expiries_.empty() && expiries_.begin()->unix_seconds <= unix_seconds) {
    const Expiry expiry = *expiries_.begin();
    expiries_.erase(expiries_.begin());
    const Segment& segment = segments_.at(expiry.segment);
    for (uint32_t i = segment.records[expiry.record].first_block; i < segment.blocks.size(); ++i) {
      const Block& block = segment.blocks[i];
      if (block.record != expiry.record) break;
      if (block.live) keys.push_back(block.key);
    }
  }
  return keys;
}

uint64_t DiskIndex::DropBlocks(uint64_t segment_id, const Segment& segment) {
  const uint64_t live = segment.live_blocks;
  for (uint32_t i = 0; i < segment.blocks.size(); ++i) {
    const Block& block = segment.blocks[i];
    if (!block.live) continue;
    places_.erase(block.key);
    Kill({segment_id, i});
  }
  return live;
}

uint64_t DiskIndex::DropSegment(uint64_t segment_id) {
  const MutexLock lock(mutex_);
  const auto segment = segments_.find(segment_id);
  return segment == segments_.end() ? 0 : DropBlocks(segment_id, segment->second);
}

void DiskIndex::ForgetSegment(uint64_t segment_id) {
  const MutexLock lock(mutex_);
  const auto segment = segments_.find(segment_id);
  if (segment == segments_.end()) return;
  DropBlocks(segment_id, segment->second);
  for (uint32_t i = 0; i < segment->second.records.size(); ++i) {
    expiries_.erase({segment->second.records[i].expires_unix_seconds, segment_id, i});
  }
  physical_blocks_ -= segment->second.blocks.size();
  segments_.erase(segment);
}

uint64_t DiskIndex::LiveBlocksOf(uint64_t segment_id) const {
  const MutexLock lock(mutex_);
  const auto segment = segments_.find(segment_id);
  return segment == segments_.end() ? 0 : segment->second.live_blocks;
}

double DiskIndex::ValueOf(uint64_t segment_id, uint64_t now, uint64_t turnover_bytes) const {
  const MutexLock lock(mutex_);
  const auto segment = segments_.find(segment_id);
  double value = 0;
  if (segment == segments_.end()) return value;
  for (const Block& block : segment->second.blocks) {
    if (block.live) value += tier::ValueOf({block.facts.stored_bytes, block.last_use, block.read}, now, turnover_bytes);
  }
  return value;
}

std::vector<BlocksOfRecord> DiskIndex::ReadBlocks(uint64_t segment_id) const {
  const MutexLock lock(mutex_);
  std::vector<BlocksOfRecord> out;
  const auto segment = segments_.find(segment_id);
  if (segment == segments_.end()) return out;
  for (uint32_t i = 0; i < segment->second.blocks.size(); ++i) {
    const Block& block = segment->second.blocks[i];
    if (!block.live || !block.read) continue;
    const Record& record = segment->second.records[block.record];
    const RecordPlace place = PlaceOf(segment_id, record);
    if (out.empty() || out.back().record != place) out.push_back({place, {}});
    out.back().blocks.push_back(i - record.first_block);
  }
  return out;
}

void DiskIndex::ForEachLive(FunctionRef<void(uint64_t, const Digest&, const DiskBlock&)> call) const {
  const MutexLock lock(mutex_);
  for (const auto& [id, segment] : segments_) {
    for (const Block& block : segment.blocks) {
      if (block.live) call(id, identities_[segment.records[block.record].identity], block.facts);
    }
  }
}

void DiskIndex::ForEachKey(FunctionRef<void(const Digest&, uint64_t)> call) const {
  const MutexLock lock(mutex_);
  for (const auto& [id, segment] : segments_) {
    for (const Block& block : segment.blocks) call(block.key, segment.records[block.record].sequence);
  }
}

uint64_t DiskIndex::live_blocks() const {
  const MutexLock lock(mutex_);
  return places_.size();
}

uint64_t DiskIndex::live_bytes() const {
  const MutexLock lock(mutex_);
  return live_bytes_;
}

uint64_t DiskIndex::physical_blocks() const {
  const MutexLock lock(mutex_);
  return physical_blocks_;
}

uint64_t DiskIndex::MemoryBytes() const {
  const MutexLock lock(mutex_);
  constexpr uint64_t kNodeBytes = 32;  // links, hash and the allocator's own, per node
  uint64_t bytes = places_.bucket_count() * sizeof(void*) + identities_.capacity() * sizeof(Digest);
  bytes += places_.size() * (sizeof(Places::value_type) + kNodeBytes);
  bytes += expiries_.size() * (sizeof(Expiry) + kNodeBytes);
  for (const auto& [id, segment] : segments_) {
    bytes += sizeof(Segment) + 2 * kNodeBytes + segment.records.capacity() * sizeof(Record);
    bytes += segment.blocks.capacity() * sizeof(Block);
  }
  return bytes;
}

}  // namespace cachalot::tier
