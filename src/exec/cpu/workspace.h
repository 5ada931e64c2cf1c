// Workspace is the memory of one step: every activation buffer, claimed once for the largest step.
// Threads:   the step's threads write disjoint rows.
// Ownership: owns one aligned allocation; the buffers point into it.
// Invariant: buffers are 64-byte aligned and hold limits.rows rows (logits: limits.logit_rows).
// Cost:      BytesFor is exact and claims nothing; the constructor claims and touches that many bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "exec/executor.h"
#include "kernels/kernel_table.h"

namespace cachalot::model {
struct ModelSpec;
}

namespace cachalot::exec {

struct StepBuffers {
  float* residual = nullptr;         // [rows][width]
  float* input = nullptr;            // [rows][width]: normed input of a block
  float* q = nullptr;                // [rows][heads*head_dim]
  float* k = nullptr;                // [rows][kv_heads*head_dim]
  float* v = nullptr;                // [rows][kv_heads*head_dim]
  float* attended = nullptr;         // [rows][heads*head_dim]
  float* gate = nullptr;             // [rows][ffn_width]
  float* up = nullptr;               // [rows][ffn_width]
  float* branch = nullptr;           // [rows][width]: what a block adds to the residual
  float* cos = nullptr;              // [ropes][rows][head_dim/2]
  float* sin = nullptr;              // [ropes][rows][head_dim/2]
  float* logits = nullptr;           // [logit_rows][vocabulary]
  kernels::QuantisedRows quantised;  // [rows][widest matrix input]
  std::span<float> split_states;     // [SplitStateRows][heads][SplitStateFloats]
};

class Workspace {
 public:
  Workspace(const model::ModelSpec& spec, const StepLimits& limits, uint64_t context_tokens);

  static uint64_t BytesFor(const model::ModelSpec& spec, const StepLimits& limits, uint64_t context_tokens);

  const StepBuffers& buffers() const { return buffers_; }

 private:
  struct Placed {
    StepBuffers buffers;
    uint64_t bytes;
  };
  // The buffers inside an allocation at `base`; a null base only measures.
  static Placed Place(const model::ModelSpec& spec, const StepLimits& limits, uint64_t context_tokens, std::byte* base);

  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> bytes_;
  StepBuffers buffers_;
};

}  // namespace cachalot::exec
