// Rankers whose order is a key of the entry: LRU, LFU, FIFO and longest first; and S3-FIFO, two queues of such keys.
// Threads:   owned by the engine thread.
// Ownership: as Ranker.
// Invariant: an entry's key changes only while it is on no rung.
// Cost:      O(log candidates) per call; S3-FIFO moves an entry on at most four times per touch.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kv/eviction_heap.h"
#include "kv/eviction_ranker.h"

namespace cachalot::kv {

// The entry with the least key goes first.
using EntryKey = CandidateHeap::Key (*)(const Entry&);
CandidateHeap::Key LruKey(const Entry& entry);     // used longest ago
CandidateHeap::Key LfuKey(const Entry& entry);     // used least since it is there, then LRU
CandidateHeap::Key FifoKey(const Entry& entry);    // here for longest
CandidateHeap::Key LengthKey(const Entry& entry);  // farthest from the beginning, then LRU

class KeyedRanker final : public Ranker {
 public:
  KeyedRanker(const EntryTable& entries, EntryKey key);
  void Add(EntryId entry, Rung rung, Nanos now) override;
  void Remove(EntryId entry, Rung rung) override;
  EntryId Best(Rung rung, Nanos now) override;
  uint64_t steps() const override;

 private:
  const EntryTable& entries_;
  const EntryKey key_;
  std::vector<uint32_t> places_;
  std::vector<CandidateHeap> heaps_;  // by rung
};

// Yang et al., "FIFO queues are all you need for cache eviction" (SOSP 2023): newcomers wait in a small queue, and only
// those used again there, or soon after they left it, enter the main one.
class S3FifoRanker final : public Ranker {
 public:
  S3FifoRanker();
  void Inserted(EntryId entry) override;
  void Touched(EntryId entry) override;
  void Evicted(EntryId entry) override;
  void Forgotten(EntryId entry) override { states_[entry].left_small = 0; }
  void Add(EntryId entry, Rung rung, Nanos now) override;
  void Remove(EntryId entry, Rung rung) override;
  EntryId Best(Rung rung, Nanos now) override;
  uint64_t steps() const override;

 private:
  enum class Queue : uint8_t { kSmall, kMain };
  struct State {
    Queue queue = Queue::kSmall;
    uint8_t uses = 0;         // since it entered its queue, at most 3
    uint64_t arrived = 0;     // when it entered, by a count of arrivals
    uint64_t left_small = 0;  // when it was evicted out of the small queue, by a count of such; 0: never
  };
  CandidateHeap& HeapOf(Queue queue, Rung rung) { return heaps_[static_cast<size_t>(queue)][rung]; }
  void Enter(EntryId entry, Queue queue);
  // Moves the entry on, if it was used often enough to stay.
  bool Spare(EntryId entry, Rung rung);

  std::vector<State> states_;
  std::vector<uint32_t> places_;
  std::array<std::vector<CandidateHeap>, 2> heaps_;  // by queue and rung
  std::array<uint64_t, 2> residents_{};              // by queue
  uint64_t arrivals_ = 0;
  uint64_t left_small_ = 0;
};

}  // namespace cachalot::kv
