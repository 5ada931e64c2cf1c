#include "sim/stack_distance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/random.h"

namespace cachalot::sim {
namespace {

// The order in which blocks were used last, as marks on a line: one mark per block, and counts of those after it.
class UseOrder {
 public:
  // The block is now the one used last.
  void Use(uint64_t id) {
    if (next_ == marks_.size()) Renumber();
    const auto [found, is_new] = place_of_.emplace(id, next_);
    if (!is_new) Mark(found->second, -1);
    found->second = next_;
    Mark(next_++, 1);
  }

  // How many blocks were used after this one was last; nothing if it never was.
  std::optional<uint64_t> DistanceOf(uint64_t id) const {
    const auto found = place_of_.find(id);
    if (found == place_of_.end()) return std::nullopt;
    return place_of_.size() - MarksUpTo(found->second);
  }

 private:
  // A Fenwick tree: marks_[i] sums a range that ends at i.
  void Mark(uint64_t place, int64_t by) {
    for (uint64_t i = place; i < marks_.size(); i |= i + 1) marks_[i] += by;
  }
  uint64_t MarksUpTo(uint64_t place) const {
    int64_t sum = 0;
    for (uint64_t i = place + 1; i > 0; i &= i - 1) sum += marks_[i - 1];
    return static_cast<uint64_t>(sum);
  }

  void Renumber() {
    constexpr uint64_t kLeast = 1024;
    std::vector<uint64_t*> places;
    places.reserve(place_of_.size());
    for (auto& [id, place] : place_of_) places.push_back(&place);
    std::ranges::sort(places, {}, [](const uint64_t* place) { return *place; });
    marks_.assign(std::max<uint64_t>(kLeast, 2 * places.size()), 0);
    for (uint64_t i = 0; i < places.size(); ++i) {
      *places[i] = i;
      Mark(i, 1);
    }
    next_ = places.size();
  }

  std::unordered_map<uint64_t, uint64_t> place_of_;  // by id
  std::vector<int64_t> marks_;
  uint64_t next_ = 0;  // place
};

bool IsSampled(uint64_t id, double share) {
  return share >= 1 || static_cast<double>(SplitMix64(id)()) < share * std::ldexp(1.0, 64);
}

}  // namespace

Result<StackDistances> MeasureStackDistances(const Trace& trace, const StackDistanceOptions& options) {
  if (!(options.sampled > 0 && options.sampled <= 1)) {
    return Invalid(fmt::format("a share of {} of the blocks: expected more than 0, at most 1", options.sampled));
  }
  CACHALOT_RETURN_IF_ERROR(CheckWarmUp(trace.requests.size(), options.warm_up_requests));
  StackDistances out;
  out.sampled_ = options.sampled;
  UseOrder order;
  for (size_t r = 0; r < trace.requests.size(); ++r) {
    const TraceRequest& request = trace.requests[r];
    for (size_t i = 0; i < request.blocks.size() && r >= options.warm_up_requests; ++i) {
      const uint64_t tokens = std::min<uint64_t>(trace.block_tokens, request.input_tokens - i * trace.block_tokens);
      const bool sampled = IsSampled(request.blocks[i], options.sampled);
      out.blocks_.Expect(1, sampled, options.sampled);
      out.tokens_.Expect(tokens, sampled, options.sampled);
      if (!sampled) continue;
      if (const std::optional<uint64_t> distance = order.DistanceOf(request.blocks[i])) {
        out.blocks_.Count(*distance, 1);
        out.tokens_.Count(*distance, tokens);
      }
    }
    for (size_t i = request.blocks.size(); i-- > 0;) {
      if (IsSampled(request.blocks[i], options.sampled)) order.Use(request.blocks[i]);
    }
  }
  if (out.blocks_.seen == 0 && out.blocks_.all > 0) {
    return Invalid(
        fmt::format("none of {:.0f} uses of blocks is of one that a share of {} looks at: expected a larger share",
                    out.blocks_.all / options.sampled, options.sampled));
  }
  for (StackDistances::Sums* sums : {&out.blocks_, &out.tokens_}) {
    std::partial_sum(sums->hits.begin(), sums->hits.end(), sums->hits.begin());
  }
  return out;
}

void StackDistances::Sums::Expect(uint64_t amount, bool sampled, double share) {
  all += share * static_cast<double>(amount);
  if (sampled) seen += amount;
}

void StackDistances::Sums::Count(uint64_t distance, uint64_t amount) {
  if (distance >= hits.size()) hits.resize(distance + 1);
  hits[distance] += amount;
}

double StackDistances::RateOf(const Sums& sums, uint64_t capacity) const {
  if (sums.hits.empty() || capacity == 0) return 0;
  const double reach = std::ceil(static_cast<double>(capacity) * sampled_);  // distances below it hit
  const auto at = static_cast<size_t>(std::min(reach, static_cast<double>(sums.hits.size())));
  // What the sample has too little or too much of is taken for uses of blocks that are always there.
  const double unseen = sums.all - static_cast<double>(sums.seen);
  return std::clamp((static_cast<double>(sums.hits[at - 1]) + unseen) / sums.all, 0.0, 1.0);
}

uint64_t StackDistances::largest_useful_capacity() const {
  return static_cast<uint64_t>(std::ceil(static_cast<double>(blocks_.hits.size()) / sampled_));
}

}  // namespace cachalot::sim
