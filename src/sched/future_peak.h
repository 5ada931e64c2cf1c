// FuturePeak estimates how much KV a batch will hold at most while its requests grow and end, and OutputLengths what
// they will still generate, from what others did (LightLLM's past-future scheduler).
// Threads:   owned by the engine thread.
// Ownership: none.
// Invariant: equal calls give equal results.
// Cost:      FuturePeak is O(n log n); With and Predict are O(log n).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cachalot::sched {

struct GrowthView {
  uint64_t current = 0;    // held now
  uint64_t remaining = 0;  // that it will still take, one per step, until it ends and gives back all
};

// Sorted by what remains, longest first, request i ends when those before it have grown by remaining_i each: then
// remaining_i * i + the sum of what the first i hold is in use. The largest of these.
uint64_t FuturePeak(std::span<const GrowthView> batch);

// The future peak of a batch and one more.
class FuturePeakWith {
 public:
  void SetBatch(std::span<const GrowthView> batch);
  uint64_t With(const GrowthView& one) const;

 private:
  std::vector<GrowthView> sorted_;
  std::vector<uint64_t> held_;    // [i]: what the first i hold
  std::vector<uint64_t> before_;  // [i]: the peak of the first i
  std::vector<uint64_t> after_;   // [i]: the peak from i on when each ends one later; 0 at the end
};

class OutputLengths {
 public:
  void Record(uint32_t tokens);
  // What a request that has generated `generated` of at most `limit` tokens will generate in all: exceeded by one in
  // five of those that came as far. `limit` when none did.
  uint32_t Predict(uint32_t generated, uint32_t limit) const;
  // Of those kept; nothing while there are none.
  std::optional<uint32_t> Mean() const;

 private:
  std::vector<uint32_t> lengths_;  // the latest
  std::vector<uint32_t> sorted_;   // the same
  size_t next_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace cachalot::sched
