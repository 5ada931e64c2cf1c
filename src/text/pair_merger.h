// PairMerger applies a table of pair merges to a run of symbols: the best-ranked pair first, the leftmost among equals,
// until no pair of neighbours is in the table. Both kinds of BPE are this, over different tables.
// Threads:   MergeTable may be read by any thread once filled; a MergeScratch belongs to one thread at a time.
// Ownership: the scratch owns its buffers, which are kept from call to call.
// Invariant: the result does not depend on which of the two algorithms ran.
// Cost:      n log n steps for n symbols: a scan per merge below kScanSymbols, a heap of pairs above.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/flat_map.h"

namespace cachalot::text {

// What a unit of text is while pairs are merged: a token id, or a number past them for what is no token.
using Symbol = uint32_t;
// In no pair of any table.
inline constexpr Symbol kNoSymbol = ~Symbol{0};

struct PairMerge {
  uint32_t rank = ~uint32_t{0};  // lower is merged first
  Symbol result = kNoSymbol;
};

class MergeTable {
 public:
  explicit MergeTable(size_t expected) : pairs_(expected) {}
  // A pair that is there already gets the new rank.
  void Set(Symbol left, Symbol right, PairMerge merge) { pairs_.Set(Key(left, right), merge); }
  // Rank ~0 when the pair does not merge.
  PairMerge Find(Symbol left, Symbol right) const {
    if (left == kNoSymbol || right == kNoSymbol) return {};
    const PairMerge* found = pairs_.Find(Key(left, right));
    return found == nullptr ? PairMerge{} : *found;
  }
  size_t size() const { return pairs_.size(); }

 private:
  static uint64_t Key(Symbol left, Symbol right) { return uint64_t{left} << 32 | right; }
  FlatMap<PairMerge> pairs_;
};

struct MergeScratch {
  std::vector<Symbol> symbols;  // in: the run; out: what it merged to
  uint64_t steps = 0;           // pairs looked at so far, for tests of the cost

  std::vector<PairMerge> merges;  // of each symbol with the next
  struct Candidate {
    uint32_t rank, position;
    Symbol left, right, result;
  };
  std::vector<Candidate> heap;
  std::vector<uint32_t> previous, next;
};

// Runs of up to this many symbols are scanned for the best pair.
inline constexpr size_t kScanSymbols = 40;
// A longer run is merged in parts of this length. Only a pre-token of 256 MB gets there.
inline constexpr size_t kMaxRunSymbols = size_t{1} << 28;

// Merges scratch->symbols in place.
void MergePairs(const MergeTable& table, MergeScratch* scratch);

}  // namespace cachalot::text
