#include "tier/run_records.h"

#include <algorithm>

namespace cachalot::tier {

std::vector<RecordHeader> RecordsOf(const KvRun& run, uint64_t slot_bytes, uint64_t record_bytes) {
  std::vector<RecordHeader> records;
  uint64_t bytes = 0, tokens = 0, position = 0;  // of the last record; of all
  for (size_t i = 0; i < run.blocks.size(); ++i) {
    const KvRunBlock& block = run.blocks[i];
    const auto block_bytes = static_cast<uint32_t>(BlockBytes(block, slot_bytes));
    const bool full = records.empty() || bytes + block_bytes > record_bytes ||
                      tokens + block.tokens > kMaxRecordTokens || records.back().blocks.size() == kMaxRecordBlocks;
    if (full) {
      RecordHeader& record = records.emplace_back();
      record.identity = run.identity;
      record.parent = i == 0 ? run.parent : run.blocks[i - 1].key;
      record.first_position = run.first_position + position;
      bytes = tokens = 0;
    }
    RecordHeader& record = records.back();
    record.blocks.push_back({block.key, block.tokens, block.groups, block_bytes, block_bytes, 0});
    const auto first = run.tokens.begin() + static_cast<ptrdiff_t>(position);
    record.tokens.insert(record.tokens.end(), first, first + block.tokens);
    bytes += block_bytes;
    tokens += block.tokens;
    position += block.tokens;
  }
  return records;
}

}  // namespace cachalot::tier
