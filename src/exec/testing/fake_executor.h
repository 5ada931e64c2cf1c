// FakeExecutor is an Executor without a model, whose KV tells whether it is the right one. The KV of position i is a
// hash of tokens 0 to i; each row reads its predecessor's from the slots and writes its own, and its logits are a
// function of that hash: a wrong block, a late copy or a missed copy-on-write gives another token and a violation.
// Threads:   as Executor.
// Ownership: borrows the DeviceMemory.
// Invariant: ExpectedLogits(tokens) are the logits of the last row of `tokens`, however they are batched and chunked.
// Cost:      each sequence of a Run reads all of its visible positions once.
//
// Every position takes 8 bytes per layer, in its place in the block: 40 bits of hash and 24 of token, mixed with the
// layer's number so that blocks of other groups read as noise. LayoutFor gives a layout with just that room. A layer is
// read when all gates have let it through, not before.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exec/device_memory.h"
#include "exec/executor.h"
#include "exec/sampler.h"

namespace cachalot::exec {

struct FakeOptions {
  uint32_t vocabulary = 1000;  // at most 2^24
  uint64_t context_tokens = 4096;
  StepLimits limits;
  std::vector<uint32_t> windows = {0};  // one per layer: 0 (full), or at least 2
  uint32_t block_tokens = 16;
  uint64_t seed = 0;    // another seed is another model
  Nanos layer_time{0};  // that a Run takes per layer
};

// A sampler for engines over the fake model.
Sampler FakeSampler();

class FakeExecutor final : public Executor {
 public:
  static KvLayout LayoutFor(const FakeOptions& options);

  // Requires that memory.slot_bytes() is LayoutFor(options).slot_bytes, and a clock where layers take time.
  FakeExecutor(FakeOptions options, DeviceMemory& memory, ManualClock* clock = nullptr);

  const KvLayout& layout() const override { return layout_; }
  uint32_t vocabulary() const override { return options_.vocabulary; }
  uint64_t context_tokens() const override { return options_.context_tokens; }
  StepLimits limits() const override { return options_.limits; }
  // kInternal when the KV that the batch names is not that of a run of tokens; see violations().
  Result<Logits> Run(const Batch& batch) override;

  // The `nth` Run from now (1: the next) writes noise into its own rows and fails with `status`.
  void FailRun(uint64_t nth, Status status);

  uint64_t runs() const { return runs_; }  // failed ones included
  uint64_t rows() const { return rows_; }  // of successful runs
  // Everything that was ever wrong with the KV, one line each.
  const std::vector<std::string>& violations() const { return violations_; }

  // What a model with this seed answers after `tokens`; requires at least one.
  std::vector<float> ExpectedLogits(std::span<const TokenId> tokens) const;
  TokenId ExpectedNext(std::span<const TokenId> tokens) const;

 private:
  struct Record {
    uint64_t hash;
    TokenId token;
    bool operator==(const Record&) const = default;
  };

  Status Validate(const Batch& batch) const;
  Status ValidateRows(const SequenceRows& rows) const;
  std::byte* At(const SequenceRows& rows, size_t layer, uint64_t position) const;
  std::optional<Record> Read(const SequenceRows& rows, size_t layer, uint64_t position) const;
  void Write(const SequenceRows& rows, size_t layer, uint64_t position, Record record);
  // The first position of a layer that the row at `position` sees.
  uint64_t FirstVisible(size_t layer, uint64_t position) const;
  // Empty when all that the rows see in this layer is the KV of one run of tokens, the same as in the first.
  std::string FaultOf(const SequenceRows& rows, size_t layer) const;
  // Empty when no two rows of the batch write the same place.
  std::string ClashOf(const Batch& batch) const;
  // All layers one after the other, as they arrive.
  Status Inspect(const Batch& batch);
  Status Violation(std::string fault);
  void RunRows(const SequenceRows& rows, bool lost);
  void Scribble(const Batch& batch);
  uint64_t Chain(uint64_t previous, TokenId token, uint64_t position) const;
  uint64_t HashOf(std::span<const TokenId> tokens) const;
  TokenId BestToken(uint64_t hash) const;
  void FillLogits(uint64_t hash, float* logits) const;

  const FakeOptions options_;
  const KvLayout layout_;
  DeviceMemory& memory_;
  ManualClock* const clock_;  // may be null
  std::vector<bool> lost_;    // by sequence of the batch: part of its KV never arrived
  uint64_t runs_ = 0;
  uint64_t rows_ = 0;
  uint64_t fail_at_run_ = 0;
  Status failure_;
  std::vector<std::string> violations_;
  std::vector<float> logits_;
};

}  // namespace cachalot::exec
