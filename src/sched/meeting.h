// Meeting computes and loads the KV of one sequence at once: the front computes upward in prefill chunks, the loader
// claims blocks from the end downward, until they touch (Cake, Jin et al., 2024).
// Threads:   owned by the engine thread.
// Ownership: counts only: the slots and transfers of blocks are the caller's.
// Invariant: a block is computed or loaded, never both. While it is not done and nothing is in flight, there is work.
//            No load is begun twice. At the end all blocks before some block are computed, and all from it on loaded.
// Cost:      O(blocks in question) per call; one byte per block.
//
// Blocks have four fates: the front's, nobody's yet, being loaded, loaded. A chunk ends at the lowest block that the
// loader has claimed. When the front comes to one that is still being loaded, it takes over that and as many as its
// next chunk computes: their loads are cancelled, not awaited. A block whose load fails, or is past its deadline, moves
// the loaded part up to the next block: what is below is computed.
#pragma once

#include <cstdint>
#include <vector>

namespace cachalot::sched {

struct MeetingView {
  uint64_t first_token = 0;  // of the front; all before is there
  uint64_t end_token = 0;    // those before it are computed or loaded; >= first_token
  uint32_t block_tokens = 16;
  // By layer group, at most 32: the first block that whoever goes on at the end reads. 0 for full attention; of a
  // sliding group only the last window is loaded.
  std::vector<uint64_t> first_read;
};

struct BlockLoad {
  uint64_t block = 0;
  uint32_t groups = 0;  // bit g: that of layer group g
  bool operator==(const BlockLoad&) const = default;
};

// Of blocks that are computed after all.
struct LostBlocks {
  std::vector<uint64_t> cancelled;  // loads in flight
  std::vector<uint64_t> dropped;    // loaded already
};

enum class BlockFate : uint8_t { kOpen = 0, kFront = 1, kLoading = 2, kLoaded = 3 };

class Meeting {
 public:
  explicit Meeting(const MeetingView& view);

  // Claims the next blocks, at most `most` loads, in the order in which they are to be begun. Blocks of which nobody
  // reads anything are claimed on the way and count as loaded.
  std::vector<BlockLoad> NextLoads(uint64_t most);
  // The loader claims no more: there is no room.
  void StopLoading() { loader_stopped_ = true; }
  // Where the front has come to blocks that are being loaded, it takes them over, as far as `most` rows go: which ones.
  std::vector<uint64_t> TakeOver(uint64_t most_rows);

  // The front's next rows were computed. Requires that there are so many before the lowest claimed block.
  void Computed(uint64_t rows);
  // A load ended. One that was cancelled changes nothing, however it ended: false.
  bool Loaded(uint64_t block);
  LostBlocks Failed(uint64_t block);

  bool done() const { return loading_ == 0 && front_token_ == low_token(); }
  uint64_t front_token() const { return front_token_; }  // all before is computed
  uint64_t low_block() const { return low_block_; }      // the lowest that the loader has claimed
  uint64_t low_token() const;                            // its first position, or the end
  uint64_t loading() const { return loading_; }          // blocks
  BlockFate FateOf(uint64_t block) const;

 private:
  // All before belong to the front.
  uint64_t FrontBlocks() const { return (front_token_ + block_tokens_ - 1) / block_tokens_; }
  uint32_t GroupsOf(uint64_t block) const;
  BlockFate& At(uint64_t block) { return fates_[block - first_block_]; }

  const uint64_t block_tokens_, first_block_, end_token_, end_block_;
  const std::vector<uint64_t> first_read_;
  std::vector<BlockFate> fates_;  // from first_block_ on, of what the loader claimed; else kOpen
  uint64_t front_token_;
  uint64_t low_block_;
  uint64_t loading_ = 0;
  bool loader_stopped_ = false;  // nothing more is claimed
};

// Of so many rows in flight that the front has come to, those that it takes over, at most `most`: it will be through
// with them when the loader has come down to there. `compute_seconds` and `load_seconds` are what all would take.
uint64_t RowsToTakeOver(uint64_t rows, double compute_seconds, double load_seconds, uint64_t most);

}  // namespace cachalot::sched
