#include "kv/eviction_keyed.h"

#include <algorithm>

namespace cachalot::kv {
namespace {

constexpr uint64_t kSmallShare = 10;  // the small queue may hold one in so many residents
constexpr uint8_t kMostUses = 3;
constexpr uint8_t kUsesToEnterMain = 2;

uint64_t StepsOf(const std::vector<CandidateHeap>& heaps) {
  uint64_t steps = 0;
  for (const CandidateHeap& heap : heaps) steps += heap.steps();
  return steps;
}

}  // namespace

CandidateHeap::Key LruKey(const Entry& entry) { return {entry.touched, 0}; }
CandidateHeap::Key LfuKey(const Entry& entry) { return {entry.touches, entry.touched}; }
CandidateHeap::Key FifoKey(const Entry& entry) { return {entry.inserted, 0}; }
CandidateHeap::Key LengthKey(const Entry& entry) { return {UINT64_MAX - entry.info.position, entry.touched}; }

KeyedRanker::KeyedRanker(const EntryTable& entries, EntryKey key)
    : entries_(entries), key_(key), heaps_(kRungs, CandidateHeap(&places_)) {}

void KeyedRanker::Add(EntryId entry, Rung rung, Nanos) { heaps_[rung].Push(entry, key_(entries_[entry])); }
void KeyedRanker::Remove(EntryId entry, Rung rung) { heaps_[rung].Erase(entry); }
EntryId KeyedRanker::Best(Rung rung, Nanos) { return heaps_[rung].Min(); }
uint64_t KeyedRanker::steps() const { return StepsOf(heaps_); }

S3FifoRanker::S3FifoRanker() {
  for (auto& heaps : heaps_) heaps.assign(kRungs, CandidateHeap(&places_));
}

void S3FifoRanker::Enter(EntryId entry, Queue queue) {
  State& state = states_[entry];
  state.queue = queue;
  state.uses = 0;
  state.arrived = ++arrivals_;
  ++residents_[static_cast<size_t>(queue)];
}

void S3FifoRanker::Inserted(EntryId entry) {
  if (entry >= states_.size()) states_.resize(entry + size_t{1});
  State& state = states_[entry];
  const uint64_t remembered = residents_[static_cast<size_t>(Queue::kMain)];
  const bool left_lately = state.left_small != 0 && left_small_ - state.left_small < remembered;
  state.left_small = 0;
  Enter(entry, left_lately ? Queue::kMain : Queue::kSmall);
}

void S3FifoRanker::Touched(EntryId entry) {
  uint8_t& uses = states_[entry].uses;
  uses = std::min<uint8_t>(kMostUses, static_cast<uint8_t>(uses + 1));
}

void S3FifoRanker::Evicted(EntryId entry) {
  State& state = states_[entry];
  --residents_[static_cast<size_t>(state.queue)];
  state.left_small = state.queue == Queue::kSmall ? ++left_small_ : 0;
}

void S3FifoRanker::Add(EntryId entry, Rung rung, Nanos) {
  HeapOf(states_[entry].queue, rung).Push(entry, {states_[entry].arrived, 0});
}
void S3FifoRanker::Remove(EntryId entry, Rung rung) { HeapOf(states_[entry].queue, rung).Erase(entry); }

bool S3FifoRanker::Spare(EntryId entry, Rung rung) {
  State& state = states_[entry];
  const bool stays = state.queue == Queue::kMain ? state.uses > 0 : state.uses >= kUsesToEnterMain;
  if (!stays) return false;
  const auto uses_left = static_cast<uint8_t>(state.queue == Queue::kMain ? state.uses - 1 : 0);
  HeapOf(state.queue, rung).Erase(entry);
  --residents_[static_cast<size_t>(state.queue)];
  Enter(entry, Queue::kMain);
  state.uses = uses_left;
  HeapOf(Queue::kMain, rung).Push(entry, {state.arrived, 0});
  return true;
}

EntryId S3FifoRanker::Best(Rung rung, Nanos) {
  const CandidateHeap& small = HeapOf(Queue::kSmall, rung);
  const CandidateHeap& main = HeapOf(Queue::kMain, rung);
  for (;;) {
    const bool small_is_full = residents_[0] * kSmallShare >= residents_[0] + residents_[1];
    const EntryId oldest = !small.empty() && (small_is_full || main.empty()) ? small.Min() : main.Min();
    if (!Spare(oldest, rung)) return oldest;
  }
}

uint64_t S3FifoRanker::steps() const { return StepsOf(heaps_[0]) + StepsOf(heaps_[1]); }

}  // namespace cachalot::kv
