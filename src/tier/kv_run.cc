#include "tier/kv_run.h"

#include <fmt/format.h>

namespace cachalot::tier {

Result<uint64_t> SlotBytesOf(const KvRun& run, uint64_t run_bytes) {
  uint64_t slots = 0, tokens = 0;
  for (const KvRunBlock& block : run.blocks) {
    if (block.tokens == 0 || block.groups == 0) return Invalid("run with an empty block");
    slots += BlockBytes(block, 1);
    tokens += block.tokens;
  }
  if (tokens != run.tokens.size() || slots == 0) {
    return Invalid(
        fmt::format("run of {} blocks with {} tokens; they say {}", run.blocks.size(), run.tokens.size(), tokens));
  }
  if (run_bytes == 0 || run_bytes % slots != 0) {
    return Invalid(fmt::format("run of {} bytes; its {} slots are of equal size", run_bytes, slots));
  }
  const uint64_t slot_bytes = run_bytes / slots;
  for (const KvRunBlock& block : run.blocks) {
    if (BlockBytes(block, slot_bytes) > UINT32_MAX) return Invalid("run with a block of 4 GiB or more");
  }
  return slot_bytes;
}

}  // namespace cachalot::tier
