#include "text/pair_merger.h"

#include <algorithm>

namespace cachalot::text {
namespace {

constexpr uint32_t kNoRank = ~uint32_t{0};
constexpr uint32_t kEnd = ~uint32_t{0};

// Few symbols: look at all pairs for each merge.
void ScanAndMerge(const MergeTable& table, MergeScratch* scratch) {
  std::vector<Symbol>& symbols = scratch->symbols;
  std::vector<PairMerge>& merges = scratch->merges;
  size_t pairs = symbols.size() - 1;
  merges.resize(pairs);
  for (size_t i = 0; i < pairs; ++i) merges[i] = table.Find(symbols[i], symbols[i + 1]);
  while (pairs > 0) {
    size_t best = 0;
    for (size_t i = 1; i < pairs; ++i)
      if (merges[i].rank < merges[best].rank) best = i;
    scratch->steps += pairs;
    if (merges[best].rank == kNoRank) break;
    symbols[best] = merges[best].result;
    std::copy(symbols.begin() + best + 2, symbols.begin() + pairs + 1, symbols.begin() + best + 1);
    std::copy(merges.begin() + best + 1, merges.begin() + pairs, merges.begin() + best);
    --pairs;
    if (best > 0) merges[best - 1] = table.Find(symbols[best - 1], symbols[best]);
    if (best < pairs) merges[best] = table.Find(symbols[best], symbols[best + 1]);
  }
  symbols.resize(pairs + 1);
}

using Candidate = MergeScratch::Candidate;

bool ComesLater(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

// Many symbols, at scratch->symbols[begin, end): a heap of candidate pairs over a linked list. A candidate whose
// symbols have changed since is dropped when it is popped. Absorbed symbols become kEnd links and are left for the
// caller.
class HeapMerge {
 public:
  HeapMerge(const MergeTable& table, MergeScratch* scratch, size_t begin, size_t end)
      : table_(table), scratch_(*scratch), symbols_(scratch->symbols.data() + begin) {
    const auto count = static_cast<uint32_t>(end - begin);
    scratch_.heap.clear();
    scratch_.previous.resize(count);
    scratch_.next.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      scratch_.previous[i] = i == 0 ? kEnd : i - 1;
      scratch_.next[i] = i + 1 == count ? kEnd : i + 1;
      AddCandidate(i);
    }
    std::make_heap(scratch_.heap.begin(), scratch_.heap.end(), ComesLater);
  }

  void Run() {
    std::vector<Candidate>& heap = scratch_.heap;
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), ComesLater);
      const Candidate best = heap.back();
      heap.pop_back();
      ++scratch_.steps;
      const uint32_t right = scratch_.next[best.position];
      if (right == kEnd || symbols_[best.position] != best.left || symbols_[right] != best.right) continue;
      Absorb(best.position, right, best.result);
      for (uint32_t position : {scratch_.previous[best.position], best.position})
        if (position != kEnd && AddCandidate(position)) std::push_heap(heap.begin(), heap.end(), ComesLater);
    }
  }

  // Writes the symbols that are left to the front; returns how many.
  size_t Compact() {
    size_t kept = 0;
    for (uint32_t i = 0; i != kEnd; i = scratch_.next[i]) symbols_[kept++] = symbols_[i];
    return kept;
  }

 private:
  bool AddCandidate(uint32_t position) {
    const uint32_t right = scratch_.next[position];
    if (right == kEnd) return false;
    const PairMerge merge = table_.Find(symbols_[position], symbols_[right]);
    if (merge.rank == kNoRank) return false;
    scratch_.heap.push_back({merge.rank, position, symbols_[position], symbols_[right], merge.result});
    return true;
  }

  void Absorb(uint32_t left, uint32_t right, Symbol result) {
    symbols_[left] = result;
    symbols_[right] = kNoSymbol;  // a candidate that begins there no longer holds
    const uint32_t after = scratch_.next[right];
    scratch_.next[right] = kEnd;
    scratch_.next[left] = after;
    if (after != kEnd) scratch_.previous[after] = left;
  }

  const MergeTable& table_;
  MergeScratch& scratch_;
  Symbol* symbols_;
};

}  // namespace

void MergePairs(const MergeTable& table, MergeScratch* scratch) {
  std::vector<Symbol>& symbols = scratch->symbols;
  if (symbols.size() < 2) return;
  if (symbols.size() <= kScanSymbols) return ScanAndMerge(table, scratch);
  size_t kept = 0;
  for (size_t begin = 0; begin < symbols.size(); begin += kMaxRunSymbols) {
    const size_t end = std::min(symbols.size(), begin + kMaxRunSymbols);
    HeapMerge run(table, scratch, begin, end);
    run.Run();
    const size_t count = run.Compact();
    std::copy_n(symbols.begin() + begin, count, symbols.begin() + kept);
    kept += count;
  }
  symbols.resize(kept);
}

}  // namespace cachalot::text
