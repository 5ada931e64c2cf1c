// ShadowIndex remembers which blocks were computed after the pool has let go of them. It tells for each prompt what
// caches of other sizes would have had of it, and what became of the rest: Mattson's stack distances (Mattson et al.,
// "Evaluation techniques for storage hierarchies", 1970), exact, one weight per request instead of one per block.
// Threads:   owned by the engine thread.
// Ownership: owns its memory; knows blocks by hash alone.
// Invariant: deterministic; a prompt is told of blocks under its own scope only. At most `remembered_blocks` blocks,
//            those longest unused are forgotten first.
// Cost:      Arrive is one hash and one look-up per block that is known; Seal one look-up. About 100 bytes per block,
//            taken as traffic comes.
//
// The stack: requests in the order in which they arrived, the latest on top; each holds the blocks that nobody used
// after it, which is the end of a chain. A block's distance is the slots of all that lies above it and of its own chain
// up to it. An LRU cache of so many slots, which lets go of tails first, would have had it. Sliding groups count with
// the blocks of one window per chain; where a sliding model can be continued is not modelled.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hit_account.h"
#include "base/prefix_scope.h"
#include "kv/block_chain.h"
#include "kv/geometry.h"
#include "kv/key_table.h"

namespace cachalot::kv {

// Why a block that was computed is not there.
enum class Loss : uint8_t {
  kNone = 0,      // it is, as far as is known
  kCapacity = 1,  // others needed the room
  kExpired = 2,   // its time was over
  kCleared = 3,   // the operator said so
};

// What is remembered of a prompt, before it counts as used. All in whole blocks, from the beginning.
struct ShadowSight {
  struct Lost {  // tokens [begin, end)
    uint64_t begin = 0;
    uint64_t end = 0;
    Loss loss = Loss::kNone;
    uint64_t distance = 0;  // slots, of the last of them
  };
  std::array<uint64_t, kShadowNames.size()> hit_tokens{};  // by cache; not decreasing
  uint64_t seen_tokens = 0;                                // computed once under this scope
  uint64_t others_tokens = 0;  // computed once under some scope; >= seen_tokens. Not to be shown to whoever asked
  uint64_t own_from = 0;       // tokens from here to seen_tokens were used last by an earlier turn; else seen_tokens
  uint64_t rendered_differently_to =
      0;                       // an answer that this prompt seems to repeat ends here, in other tokens; else 0
  std::span<const Lost> lost;  // ascending; those without loss are left out. Valid until the next Arrive
};

using ShadowVisit = uint32_t;  // one request's place in the stack, from Arrive to End

class ShadowIndex {
 public:
  static constexpr ShadowVisit kNoVisit = UINT32_MAX;

  // Remembers eight times the pool, and 65,536 blocks at least.
  explicit ShadowIndex(const KvGeometry& geometry);
  ShadowIndex(const KvGeometry& geometry, uint64_t remembered_blocks);

  // A prompt comes in. What is remembered of it goes to the top of the stack.
  ShadowVisit Arrive(const PrefixScope& scope, std::span<const TokenId> prompt, ShadowSight* sight);
  // Another sequence goes on from where this one stands, after `tokens` of them.
  ShadowVisit Fork(ShadowVisit visit, uint64_t tokens);
  // The visit's block of this number is in the pool now. A visit's come in ascending order.
  void Seal(ShadowVisit visit, uint32_t number, const BlockChain& chain);
  // `content`: of all its tokens.
  void End(ShadowVisit visit, uint64_t tokens, uint64_t content);

  // The pool let go of a block.
  void OnEvicted(const BlockChain& chain, Loss loss);

  uint64_t blocks() const { return blocks_of_.size(); }  // remembered

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Block {
    BlockChain chain;
    uint32_t number = 0;
    uint32_t visit = 0;
    uint32_t previous = kNone;  // of the visit's blocks
    Loss loss = Loss::kNone;
  };
  struct Visit {
    uint64_t place = 0;  // in the stack; higher ones came later
    uint32_t first = 0;  // number of the first block that it holds; the others follow
    uint32_t count = 0;
    uint32_t tail = kNone;  // the last of them
    bool open = false;      // between Arrive and End
    bool cut = false;       // its end was forgotten: nothing can follow
    uint64_t prompt_tokens = 0;
    uint64_t prompt_content = 0;
    uint64_t tokens = 0;  // once it ended; else 0
    uint64_t content = 0;
  };
  struct Run {  // blocks of the prompt that one visit holds
    uint32_t visit = 0;
    uint32_t begin = 0;
    uint32_t end = 0;
    uint64_t above = 0;  // slots
  };

  uint64_t SlotsOf(uint64_t blocks) const { return SlotsHeld(geometry_, blocks * geometry_.block_tokens); }
  uint32_t BlocksWithin(uint64_t slots, uint32_t blocks) const;
  uint64_t ContentAt(std::span<const TokenId> prompt, uint64_t tokens) const;
  void FindPath(const PrefixScope& scope, std::span<const TokenId> prompt);
  bool JoinRun(uint32_t at);
  void MeasureHits(ShadowSight* sight) const;
  void ListLost();
  void CompareTurns(std::span<const TokenId> prompt, ShadowSight* sight) const;
  uint64_t OthersTokens();
  void TakePath(ShadowVisit visit);

  uint32_t Remember(const BlockChain& chain);
  ShadowVisit MakeVisit();
  void Resize(Visit& visit, uint32_t first, uint32_t count);
  void ForgetOldest();
  void DropIfUnused(ShadowVisit visit);
  void AddAt(uint64_t place, uint64_t slots);
  uint64_t SlotsAbove(uint64_t place) const;
  void Renumber();

  const KvGeometry geometry_;
  const uint64_t limit_;
  KeyTable blocks_of_;  // by BlockChain::owned: into blocks_
  KeyTable contents_;   // by BlockChain::content: how many blocks have it, under whatever salts
  std::vector<Block> blocks_;
  std::vector<uint32_t> spare_blocks_;
  std::vector<Visit> visits_;
  std::vector<uint32_t> spare_visits_;
  std::vector<uint32_t> stack_;  // visits by place; kNone where there is none any more
  std::vector<uint64_t> sums_;   // Fenwick tree over places: slots
  uint64_t next_place_ = 0;
  uint64_t oldest_ = 0;  // no place below holds a block
  uint64_t slots_ = 0;   // of all places

  // Scratch of Arrive.
  std::vector<uint64_t> contents_at_;  // of the prompt, by whole block
  std::vector<uint32_t> path_;         // the blocks that are remembered
  std::vector<Run> runs_;
  std::vector<ShadowSight::Lost> lost_;
};

}  // namespace cachalot::kv
