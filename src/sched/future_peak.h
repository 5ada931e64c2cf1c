// FuturePeak estimates how much KV a batch will hold at most while its requests grow and end, and OutputLengths what
// they will still generate, from what others did (LightLLM's past-future scheduler).
// Threads:   owned by the engine thread.
// Ownership: none.
// Invariant: equal calls give equal results.
// Cost:      FuturePeak is O(n log n); Predict is linear in the lengths kept.
#pragma once

#include <cstdint>
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

class OutputLengths {
 public:
  void Record(uint32_t tokens);
  // What a request that has generated `generated` of at most `limit` tokens will generate in all: exceeded by one in
  // five of those that came as far. `limit` when none did.
  uint32_t Predict(uint32_t generated, uint32_t limit) const;

 private:
  std::vector<uint32_t> lengths_;  // the latest
  size_t next_ = 0;
};

}  // namespace cachalot::sched
