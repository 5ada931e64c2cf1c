// Executor runs one step of the model: rows of tokens of many sequences over their page tables.
// Threads:   engine thread; Run divides its work among compute threads and joins them before it returns.
// Ownership: the executor owns weights and workspace and borrows the DeviceMemory that holds the KV.
// Invariant: a row's logits depend on its sequence's tokens alone: not on the batch, the chunking, the threads or the
//            slots. A failed Run leaves no committed position changed.
// Cost:      no allocation per step once a step of that size has run.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/kv_layout.h"
#include "base/page_view.h"
#include "base/status.h"

namespace cachalot::exec {

// Where a sequence's KV is still on its way into the pool: layer by layer, the first one first.
class LayerGate {
 public:
  // Returns once all is there that the layer reads or writes of the sequence's KV. False: it will never be.
  virtual bool Await(uint32_t layer) = 0;

 protected:
  ~LayerGate() = default;
};

// Consecutive rows of one sequence.
struct SequenceRows {
  std::span<const TokenId> tokens;  // one row each, at positions first_position, first_position + 1, ...
  uint64_t first_position = 0;
  std::span<const PageTableRef> pages;  // one per layer group; hold all visible positions and the rows' own
  uint32_t logit_rows = 0;              // how many of the last rows give logits
  LayerGate* gate = nullptr;            // null: all of it is there
};

struct Batch {
  std::span<const SequenceRows> sequences;
};

// Logits of all rows that asked, in batch order: [rows][vocabulary]. Valid until the next Run.
struct Logits {
  const float* values = nullptr;
  uint32_t rows = 0;
  uint32_t vocabulary = 0;
  std::span<const float> row(uint32_t r) const { return {values + uint64_t{r} * vocabulary, vocabulary}; }
};

struct StepLimits {
  uint32_t rows = 512;       // most rows of one Run
  uint32_t logit_rows = 64;  // most of them with logits
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual const KvLayout& layout() const = 0;
  virtual uint32_t vocabulary() const = 0;
  virtual uint64_t context_tokens() const = 0;
  virtual StepLimits limits() const = 0;
  // kInvalid for token ids outside the vocabulary or a batch beyond the limits; nothing is written then. Awaits each
  // layer at each gate, in order, before it touches that sequence's KV of that layer; where that is never there, the
  // sequence's rows and logits are of no use, and all others are as they would be without it.
  virtual Result<Logits> Run(const Batch& batch) = 0;
};

}  // namespace cachalot::exec
