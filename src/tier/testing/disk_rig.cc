#include "tier/testing/disk_rig.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"

namespace cachalot::tier {

Digest TestIdentity(uint64_t number) {
  Sha256 sha;
  sha.UpdateField("identity");
  sha.UpdateInt(number);
  return sha.Finish();
}

Digest TestKey(const ChainShape& shape, uint64_t chain, uint64_t block) {
  Sha256 sha;
  sha.UpdateField("key");
  for (const uint64_t part : {shape.identity, uint64_t{shape.block_tokens}, chain, block}) sha.UpdateInt(part);
  return sha.Finish();
}

KvRun TestRun(const ChainShape& shape, uint64_t chain, uint64_t first, uint64_t count) {
  KvRun run;
  run.identity = TestIdentity(shape.identity);
  if (first > 0) run.parent = TestKey(shape, chain, first - 1);
  run.first_position = first * shape.block_tokens;
  for (uint64_t block = first; block < first + count; ++block) {
    run.blocks.push_back({TestKey(shape, chain, block), shape.block_tokens, shape.groups});
    for (uint32_t i = 0; i < shape.block_tokens; ++i) {
      run.tokens.push_back(static_cast<TokenId>(chain * 1'000'003 + block * 101 + i));
    }
  }
  return run;
}

std::vector<std::byte> TestBlockBytes(const Digest& key, uint64_t bytes, uint64_t version) {
  uint64_t seed;
  std::memcpy(&seed, key.data(), sizeof(seed));
  SplitMix64 random(seed + version);
  const uint64_t mask = seed % 2 == 0 ? 0xff : 0x07;
  std::vector<std::byte> out(bytes);
  for (std::byte& b : out) b = static_cast<std::byte>(random() & mask);
  return out;
}

std::vector<std::byte> TestBytes(const KvRun& run, const ChainShape& shape, uint64_t version) {
  std::vector<std::byte> out;
  for (const KvRunBlock& block : run.blocks) {
    const std::vector<std::byte> bytes = TestBlockBytes(block.key, BlockBytes(block, shape.slot_bytes), version);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

DiskRig::DiskRig(uint64_t limit_bytes, uint64_t segment_bytes) {
  options.folder = kTestFolder;
  options.limit_bytes = limit_bytes;
  options.segment_bytes = segment_bytes;
  options.lock = false;
  options.entropy = [this] { return entropy(); };
}

Status DiskRig::Open() {
  tier.reset();
  Result<std::unique_ptr<DiskTier>> opened = DiskTier::Open(*files, clock, options);
  if (!opened.ok()) return opened.status();
  tier = std::move(opened).value();
  return OkStatus();
}

void DiskRig::LosePower(Unsynced unsynced, uint64_t seed) {
  tier.reset();
  files = files->AfterCrash(unsynced, seed);
}

Status DiskRig::Crash(Unsynced unsynced, uint64_t seed) {
  LosePower(unsynced, seed);
  return Open();
}

Status DiskRig::Put(const ChainShape& shape, uint64_t chain, uint64_t first, uint64_t count, uint64_t version) {
  const KvRun run = TestRun(shape, chain, first, count);
  return tier->Put(run, TestBytes(run, shape, version));
}

DiskRig::ReadBlock DiskRig::Read(const ChainShape& shape, uint64_t chain, uint64_t block) {
  const KvRun run = TestRun(shape, chain, block, 1);
  ReadBlock read{ReadOutcome::kMissing, std::vector<std::byte>(BlockBytes(run.blocks[0], shape.slot_bytes))};
  const Result<std::vector<ReadOutcome>> outcomes = tier->Read(run, read.bytes);
  CACHALOT_CHECK(outcomes.ok());
  read.outcome = outcomes->at(0);
  return read;
}

uint64_t DiskRig::Occupied() const {
  uint64_t bytes = 0;
  const Result<std::vector<std::string>> names = files->List(kTestFolder);
  CACHALOT_CHECK(names.ok());
  for (const std::string& name : *names) {
    const Result<uint64_t> occupied = files->Occupied(fmt::format("{}/{}", kTestFolder, name));
    CACHALOT_CHECK(occupied.ok());
    bytes += *occupied;
  }
  return bytes;
}

std::vector<std::string> DiskRig::Segments() const {
  std::vector<std::string> paths;
  const Result<std::vector<std::string>> names = files->List(kTestFolder);
  CACHALOT_CHECK(names.ok());
  for (const std::string& name : *names) {
    if (SequenceInName(name)) paths.push_back(fmt::format("{}/{}", kTestFolder, name));
  }
  return paths;
}

}  // namespace cachalot::tier
