#include "sched/meeting.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cachalot::sched {

Meeting::Meeting(const MeetingView& view)
    : block_tokens_(view.block_tokens),
      first_block_(view.first_token / view.block_tokens),
      end_token_(view.end_token),
      end_block_((view.end_token + view.block_tokens - 1) / view.block_tokens),
      first_read_(view.first_read),
      front_token_(view.first_token),
      low_block_(end_block_) {
  CACHALOT_CHECK(view.first_token <= end_token_ && first_read_.size() <= 32);
  fates_.resize(end_block_ - std::min(first_block_, end_block_));
}

uint64_t Meeting::low_token() const { return std::min(low_block_ * block_tokens_, end_token_); }

uint32_t Meeting::GroupsOf(uint64_t block) const {
  uint32_t groups = 0;
  for (size_t g = 0; g < first_read_.size(); ++g) groups |= block >= first_read_[g] ? uint32_t{1} << g : 0;
  return groups;
}

std::vector<BlockLoad> Meeting::NextLoads(uint64_t most) {
  std::vector<BlockLoad> loads;
  while (!loader_stopped_ && low_block_ > FrontBlocks()) {
    const BlockLoad load{.block = low_block_ - 1, .groups = GroupsOf(low_block_ - 1)};
    if (load.groups != 0 && loads.size() >= most) break;
    --low_block_;
    At(load.block) = load.groups == 0 ? BlockFate::kLoaded : BlockFate::kLoading;
    if (load.groups != 0) loads.push_back(load);
  }
  loading_ += loads.size();
  return loads;
}

std::vector<uint64_t> Meeting::TakeOver(uint64_t most_rows) {
  std::vector<uint64_t> taken;
  if (front_token_ != low_token()) return taken;
  while (low_block_ < end_block_ && low_token() - front_token_ < most_rows && At(low_block_) == BlockFate::kLoading) {
    taken.push_back(low_block_);
    At(low_block_++) = BlockFate::kOpen;
  }
  loading_ -= taken.size();
  loader_stopped_ |= !taken.empty();  // its blocks are not loaded a second time
  return taken;
}

void Meeting::Computed(uint64_t rows) {
  CACHALOT_CHECK(rows <= low_token() - front_token_);
  front_token_ += rows;
}

bool Meeting::Loaded(uint64_t block) {
  if (FateOf(block) != BlockFate::kLoading) return false;
  At(block) = BlockFate::kLoaded;
  --loading_;
  return true;
}

LostBlocks Meeting::Failed(uint64_t block) {
  LostBlocks lost;
  if (FateOf(block) != BlockFate::kLoading) return lost;
  for (; low_block_ <= block; ++low_block_) {
    const bool loading = At(low_block_) == BlockFate::kLoading;
    loading_ -= loading ? 1 : 0;
    At(low_block_) = BlockFate::kOpen;
    if (low_block_ == block || GroupsOf(low_block_) == 0) continue;
    (loading ? lost.cancelled : lost.dropped).push_back(low_block_);
  }
  loader_stopped_ = true;
  return lost;
}

BlockFate Meeting::FateOf(uint64_t block) const {
  if (block < FrontBlocks()) return BlockFate::kFront;
  if (block < low_block_ || block >= end_block_) return BlockFate::kOpen;
  return fates_[block - first_block_];
}

uint64_t RowsToTakeOver(uint64_t rows, double compute_seconds, double load_seconds, uint64_t most) {
  const double both = compute_seconds + load_seconds;
  const double share = both > 0 ? load_seconds / both : 1;
  const auto fair = static_cast<uint64_t>(std::ceil(share * static_cast<double>(rows)));
  return std::clamp<uint64_t>(fair, 1, most);
}

}  // namespace cachalot::sched
