#include "tier/staging.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace cachalot::tier {
namespace {

uint64_t WholePages(uint64_t bytes) {
  return (bytes + StagingPool::kPage - 1) / StagingPool::kPage * StagingPool::kPage;
}

}  // namespace

StagingPool::StagingPool(std::span<std::byte> memory) : memory_(memory.first(memory.size() / kPage * kPage)) {
  CACHALOT_CHECK(reinterpret_cast<uintptr_t>(memory.data()) % kPage == 0);
  if (!memory_.empty()) free_[0] = memory_.size();
}

std::map<uint64_t, uint64_t>::const_iterator StagingPool::FirstFit(uint64_t bytes) const {
  if (bytes > memory_.size()) return free_.end();
  return std::ranges::find_if(free_, [&](const auto& part) { return part.second >= WholePages(bytes); });
}

bool StagingPool::Fits(uint64_t bytes) const { return FirstFit(bytes) != free_.end(); }

std::optional<std::span<std::byte>> StagingPool::Take(uint64_t bytes) {
  CACHALOT_CHECK(bytes > 0);
  const auto fit = FirstFit(bytes);
  if (fit == free_.end()) return std::nullopt;
  const uint64_t offset = fit->first;
  const uint64_t rest = fit->second - WholePages(bytes);
  free_.erase(fit);
  if (rest > 0) free_[offset + WholePages(bytes)] = rest;
  taken_bytes_ += WholePages(bytes);
  return memory_.subspan(offset, bytes);
}

void StagingPool::GiveBack(std::span<std::byte> part) {
  uint64_t offset = part.data() - memory_.data();
  uint64_t bytes = WholePages(part.size());
  taken_bytes_ -= bytes;
  auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    CACHALOT_CHECK(before->first + before->second <= offset);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end() && after->first == offset + bytes) {
    bytes += after->second;
    free_.erase(after);
  }
  free_[offset] = bytes;
}

}  // namespace cachalot::tier
