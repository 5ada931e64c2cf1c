// Cake's split of a prompt between computing its front and loading its back, against sched::Meeting as the engine uses
// it, and both at once against the better single way.
#include <algorithm>
#include <cstdint>
#include <deque>

#include <fmt/format.h>

#include "cost/step_cost.h"
#include "cost/step_work.h"
#include "sched/load_or_recompute.h"
#include "sched/meeting.h"
#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

constexpr uint64_t kChunks = 32;
constexpr uint64_t kChunkTokens = 512;
constexpr uint32_t kBlockTokens = 16;
constexpr uint64_t kTokenBytes = 131'072;  // of KV, as Llama 3 8B in f16
constexpr uint64_t kParts = 16;            // that the loader makes of its share
constexpr size_t kUnderWay = 4;            // of them at once

// A model of about 8B parameters: 20,000 prompt tokens a second at first, 8,000 at 16,384.
class Machine {
 public:
  double Seconds(uint64_t first, uint64_t rows) const { return cost_.Predict(shape_.Rows(first, rows)); }
  double Chunk(uint64_t i) const { return Seconds(i * kChunkTokens, kChunkTokens); }
  double Chunks(uint64_t count) const {
    double seconds = 0;
    for (uint64_t i = 0; i < count; ++i) seconds += Chunk(i);
    return seconds;
  }
  const cost::WorkShape& shape() const { return shape_; }
  const cost::StepCost& cost() const { return cost_; }

 private:
  static constexpr uint32_t kWindows[] = {0};
  const cost::WorkShape shape_{kWindows};
  const cost::StepCost cost_{StepCurve{1e-3, 5e-5, 4e-9, 0, 0}};
};

// The largest m with a(0) + ... + a(m - 1) <= (N - m) l.
uint64_t CakeSplit(const Machine& machine, double chunk_load_seconds) {
  uint64_t m = 0;
  while (m < kChunks && machine.Chunks(m + 1) <= static_cast<double>(kChunks - m - 1) * chunk_load_seconds) ++m;
  return m;
}

struct Met {
  uint64_t computed_tokens = 0;
  double seconds = 0;
};

// Steps of the engine: what has ended is noted, what may be claimed is, the front takes over what it has come to, and a
// chunk is computed.
Met MeetAtOnce(const Machine& machine, double chunk_load_seconds, uint64_t part_blocks) {
  const double block_seconds = chunk_load_seconds * kBlockTokens / kChunkTokens;
  sched::Meeting meeting({.end_token = kChunks * kChunkTokens, .block_tokens = kBlockTokens, .first_read = {0}});
  struct Part {
    std::vector<sched::BlockLoad> blocks;
    double ends = 0;
  };
  std::deque<Part> under_way;
  double now = 0, link_free = 0;
  while (!meeting.done()) {
    while (!under_way.empty() && under_way.front().ends <= now) {
      for (const sched::BlockLoad& load : under_way.front().blocks) meeting.Loaded(load.block);
      under_way.pop_front();
    }
    while (under_way.size() < kUnderWay) {
      Part part{.blocks = meeting.NextLoads(part_blocks)};
      if (part.blocks.empty()) break;
      link_free = std::max(link_free, now) + static_cast<double>(part.blocks.size()) * block_seconds;
      part.ends = link_free;
      under_way.push_back(std::move(part));
    }
    const uint64_t front = meeting.front_token();
    if (front == meeting.low_token() && meeting.loading() > 0) {
      const uint64_t rows = meeting.loading() * kBlockTokens;
      meeting.TakeOver(sched::RowsToTakeOver(rows, machine.Seconds(front, rows), link_free - now, kChunkTokens));
    }
    const uint64_t rows = std::min(kChunkTokens, meeting.low_token() - front);
    if (rows > 0) {
      now += machine.Seconds(front, rows);
      meeting.Computed(rows);
    } else if (!under_way.empty()) {
      now = std::max(now, under_way.front().ends);
    }
  }
  return {.computed_tokens = meeting.front_token(), .seconds = now};
}

// What the engine thinks beforehand.
sched::ResumeEstimate Estimated(const Machine& machine, double chunk_load_seconds) {
  const uint64_t tokens = kChunks * kChunkTokens;
  sched::ResumeView view{.prompt_tokens = tokens + 1,
                         .spans = {{.tier = TierId::kDisk, .tokens = tokens, .full_bytes = tokens * kTokenBytes}},
                         .block_tokens = kBlockTokens,
                         .step_rows = kChunkTokens};
  view.links[TierIndex(TierId::kDisk)].rate = {.bytes_per_second = static_cast<double>(kChunkTokens * kTokenBytes) /
                                                                   chunk_load_seconds};
  const sched::Decision decision = sched::ChooseResume(view, machine.shape(), machine.cost());
  return *decision.estimates[static_cast<size_t>(sched::ResumeWay::kBoth)];
}

}  // namespace

Result<PaperResult> Cake(const PaperInput&) {
  const Machine machine;
  PaperResult result{
      .setting = fmt::format("a prompt of {} chunks of {} tokens; loading a chunk takes so many times as "
                             "long as computing the first ({:.1f} ms; the last takes {:.1f} ms)",
                             kChunks, kChunkTokens, machine.Chunk(0) * 1e3, machine.Chunk(kChunks - 1) * 1e3),
      .rows = {}};
  using enum FigureUnit;
  for (const double ratio : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    const double load = ratio * machine.Chunk(0);
    const auto split = static_cast<double>(CakeSplit(machine, load) * kChunkTokens);
    const sched::ResumeEstimate estimate = Estimated(machine, load);
    const uint64_t part_blocks = std::max<uint64_t>(estimate.load_bytes / kParts / (kTokenBytes * kBlockTokens), 1);
    const Met met = MeetAtOnce(machine, load, part_blocks);
    const double single = std::min(machine.Chunks(kChunks), static_cast<double>(kChunks) * load);
    result.rows.push_back(NearRow(fmt::format("load x {}: tokens computed, as estimated", ratio), kCount,
                                  static_cast<double>(estimate.meets_at), split, kChunkTokens));
    result.rows.push_back(NearRow(fmt::format("load x {}: tokens computed, as they met", ratio), kCount,
                                  static_cast<double>(met.computed_tokens), split, kChunkTokens));
    result.rows.push_back(ClaimRow(fmt::format("load x {}: time against the better single way", ratio), kTimes,
                                   met.seconds / single, "shorter", met.seconds < single));
  }
  return result;
}

}  // namespace cachalot::sim
