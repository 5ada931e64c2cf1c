#include "tier/testing/disk_model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cachalot::tier {

DiskModel::DiskModel(const DiskModelOptions& options)
    : options_(options), random_(options.seed), rig_(options.limit_bytes, options.segment_bytes) {
  rig_.options.record_bytes = 16 << 10;
  EXPECT_TRUE(rig_.Open().ok());
}

ChainShape DiskModel::ShapeOf(uint64_t chain) const {
  constexpr uint32_t kSlotBytes[] = {100, 512, 1024, 4096};
  return {.identity = chain % 3, .slot_bytes = kSlotBytes[chain % 4], .groups = chain % 5 == 0 ? 0b11U : 0b1U};
}

DiskModel::BlockId DiskModel::AnyBlock() {
  return {random_.Below(options_.chains), random_.Below(options_.chain_blocks)};
}

bool DiskModel::MayMiss() const { return damaged_ || reclaimed_ || rig_.tier->stats().reclaimed_blocks > 0; }

void DiskModel::Put() {
  const BlockId first = AnyBlock();
  const uint64_t count = 1 + random_.Below(options_.chain_blocks - first.block);
  const Status status = rig_.Put(ShapeOf(first.chain), first.chain, first.block, count);
  EXPECT_TRUE(status.ok() || damaged_) << status.message();
  for (uint64_t block = first.block; block < first.block + count; ++block) {
    deleted_.erase({first.chain, block});  // also after a failure: some of it may be there
    if (status.ok()) put_.insert({first.chain, block});
  }
}

void DiskModel::CheckBlock(const BlockId& id) {
  const bool found = rig_.tier->Find(KeyOf(id)).has_value();
  EXPECT_FALSE(found && deleted_.contains(id)) << "step " << step_ << ": a deleted block is back";
  if (!MayMiss()) {
    EXPECT_TRUE(found || !put_.contains(id)) << "step " << step_ << ": a block is missing";
  }
  const DiskRig::ReadBlock read = rig_.Read(ShapeOf(id.chain), id.chain, id.block);
  EXPECT_TRUE(found || read.outcome == ReadOutcome::kMissing) << "step " << step_;
  EXPECT_TRUE(damaged_ || found == (read.outcome == ReadOutcome::kRead)) << "step " << step_;
  if (read.outcome != ReadOutcome::kRead) return;
  ++read_blocks_;
  EXPECT_EQ(read.bytes, TestBlockBytes(KeyOf(id), read.bytes.size())) << "step " << step_ << ": wrong bytes";
}

void DiskModel::Read() {
  const BlockId first = AnyBlock();
  if (random_.Below(4) == 0) return CheckBlock(first);
  const uint64_t count = 1 + random_.Below(options_.chain_blocks - first.block);
  const ChainShape shape = ShapeOf(first.chain);
  const KvRun run = TestRun(shape, first.chain, first.block, count);
  const std::vector<std::byte> expected = TestBytes(run, shape);
  std::vector<std::byte> into(expected.size());
  const std::vector<ReadOutcome> outcomes = rig_.tier->Read(run, into).value();
  for (uint64_t i = 0, begin = 0; i < count; ++i) {
    const uint64_t bytes = BlockBytes(run.blocks[i], shape.slot_bytes);
    if (outcomes[i] == ReadOutcome::kRead) {
      ++read_blocks_;
      EXPECT_TRUE(std::equal(into.begin() + begin, into.begin() + begin + bytes, expected.begin() + begin))
          << "step " << step_ << ": wrong bytes";
      EXPECT_FALSE(deleted_.contains({first.chain, first.block + i})) << "step " << step_;
    }
    begin += bytes;
  }
}

void DiskModel::Erase() {
  std::vector<BlockId> ids;
  const uint64_t count = 1 + random_.Below(random_.Below(10) == 0 ? 200 : 6);
  for (uint64_t i = 0; i < count; ++i) ids.push_back(AnyBlock());
  std::vector<Digest> keys;
  for (const BlockId& id : ids) keys.push_back(KeyOf(id));
  const Status status = rig_.tier->Erase(keys);
  for (const BlockId& id : ids) {
    put_.erase(id);
    durable_.erase(id);
    EXPECT_FALSE(rig_.tier->Find(KeyOf(id))) << "step " << step_;
    if (status.ok()) deleted_.insert(id);
  }
}

void DiskModel::Clear() {
  const Status status = rig_.tier->Clear();
  EXPECT_TRUE(status.ok() || damaged_) << status.message();
  put_.clear();
  durable_.clear();
  if (!status.ok()) return;
  for (uint64_t chain = 0; chain < options_.chains; ++chain) {
    for (uint64_t block = 0; block < options_.chain_blocks; ++block) deleted_.insert({chain, block});
  }
}

void DiskModel::Flush() {
  const Status status = random_.Below(5) == 0 ? rig_.tier->Seal() : rig_.tier->Flush();
  EXPECT_TRUE(status.ok() || damaged_) << status.message();
  if (status.ok()) durable_ = put_;
}

void DiskModel::Reopen() {
  const uint64_t kind = random_.Below(4);
  reclaimed_ = reclaimed_ || rig_.tier->stats().reclaimed_blocks > 0;
  rig_.files->Heal();
  rig_.options.packed_element_bytes = random_.Below(2) == 0 ? 0 : 2;  // a folder may hold both
  if (kind == 0) {
    EXPECT_TRUE(rig_.Open().ok());
  } else {
    ++crashes_;
    rig_.LosePower(kind == 1 ? Unsynced::kKept : kind == 2 ? Unsynced::kLost : Unsynced::kMixed, random_());
    EXPECT_LE(rig_.Occupied(), options_.limit_bytes) << "step " << step_;
    const Status status = rig_.Open();
    ASSERT_TRUE(status.ok()) << status.message();
    put_ = durable_;
  }
  CheckAll();
}

void DiskModel::CheckAll() {
  for (uint64_t chain = 0; chain < options_.chains; ++chain) {
    for (uint64_t block = 0; block < options_.chain_blocks; ++block) {
      const BlockId id{chain, block};
      const bool found = rig_.tier->Find(KeyOf(id)).has_value();
      EXPECT_FALSE(found && deleted_.contains(id)) << "step " << step_ << ": a deleted block is back";
      if (!MayMiss()) {
        EXPECT_TRUE(found || !put_.contains(id)) << "step " << step_ << ": a durable block is missing";
      }
    }
  }
}

void DiskModel::FlipBit() {
  const std::vector<std::string> segments = rig_.Segments();
  if (segments.empty()) return;
  const std::string& path = segments[random_.Below(segments.size())];
  const uint64_t bytes = rig_.files->Contents(path).size();
  if (bytes == 0) return;
  damaged_ = true;
  rig_.files->FlipBit(path, random_.Below(bytes * 8));
}

void DiskModel::Step() {
  ++step_;
  if (random_.Uniform() < options_.flips) FlipBit();
  if (random_.Uniform() < options_.faults) {
    damaged_ = true;
    rig_.files->Fail({.op = FileOp::kAny, .nth = 1 + random_.Below(20)});
  }
  const uint64_t what = random_.Below(100);
  if (random_.Uniform() < options_.crashes) {
    Reopen();
  } else if (what < 45) {
    Put();
  } else if (what < 80) {
    Read();
  } else if (what < 92) {
    random_.Below(100) == 0 ? Clear() : Erase();
  } else {
    Flush();
  }
  rig_.clock.Advance(std::chrono::seconds(1));
  rig_.files->Heal();
  EXPECT_LE(rig_.Occupied(), options_.limit_bytes) << "step " << step_;
}

}  // namespace cachalot::tier
