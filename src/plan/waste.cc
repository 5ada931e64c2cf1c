#include "plan/waste.h"

#include <algorithm>
#include <bit>

namespace cachalot::plan {
namespace {

Allocation Of(std::string_view way, uint64_t live, uint64_t allocated, std::string_view note) {
  const double waste = allocated == 0 ? 0 : 1 - static_cast<double>(live) / static_cast<double>(allocated);
  return {way, allocated, waste, note};
}

}  // namespace

uint64_t FragmentedBytes(uint64_t bytes) {
  return bytes + static_cast<uint64_t>(static_cast<double>(bytes) * kHeapFragmentation);
}

std::vector<Allocation> CompareAllocations(const KvSizes& sizes, uint64_t tokens, uint64_t most_tokens) {
  const uint64_t live = LiveBytes(sizes, tokens);
  const uint64_t power = std::min<uint64_t>(std::bit_ceil(tokens), std::max(tokens, most_tokens));
  return {Of("contiguous, longest", live, LiveBytes(sizes, std::max(tokens, most_tokens)),
             "one piece for the longest answer allowed"),
          Of("contiguous, powers of two", live, LiveBytes(sizes, power), "grown by doubling"),
          Of("contiguous, exact", live, FragmentedBytes(live), "the length known before; a fifth lost between pieces"),
          Of("paged, this length", live, PagedBytes(sizes, tokens), "whole blocks, and padding of layer groups"),
          Of("paged, any length", live, live + (sizes.geometry.block_tokens - 1) * sizes.token_bytes / 2,
             "(B - 1) / 2 tokens on average in blocks of B")};
}

}  // namespace cachalot::plan
