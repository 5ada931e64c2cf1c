#include "exec/cpu/workspace.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "exec/cpu/attention_plan.h"
#include "kernels/packed_matrix.h"
#include "model/model_spec.h"

namespace cachalot::exec {
namespace {

constexpr uint64_t kAlignment = 64;

// Hands out aligned pieces of one allocation; over a null base it only measures.
class Placer {
 public:
  explicit Placer(std::byte* base) : base_(base) {}

  template <class T>
  T* Take(uint64_t count) {
    T* piece = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  }
  uint64_t used() const { return used_; }

 private:
  std::byte* base_;
  uint64_t used_ = 0;
};

}  // namespace

Workspace::Workspace(const model::ModelSpec& spec, const StepLimits& limits, uint64_t context_tokens) {
  const uint64_t bytes = BytesFor(spec, limits, context_tokens);
  bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)));
  CACHALOT_CHECK(bytes_ != nullptr);
  std::memset(bytes_.get(), 0, bytes);  // touched now, not by the first request
  buffers_ = Place(spec, limits, context_tokens, bytes_.get()).buffers;
}

uint64_t Workspace::BytesFor(const model::ModelSpec& spec, const StepLimits& limits, uint64_t context_tokens) {
  return Place(spec, limits, context_tokens, nullptr).bytes;
}

Workspace::Placed Workspace::Place(const model::ModelSpec& spec, const StepLimits& limits, uint64_t context_tokens,
                                   std::byte* base) {
  Placer placer(base);
  const uint64_t rows = limits.rows;
  const uint64_t q_width = uint64_t{spec.heads} * spec.head_dim;
  const uint64_t kv_width = uint64_t{spec.kv_heads} * spec.head_dim;
  const uint64_t widest = std::max({uint64_t{spec.width}, q_width, uint64_t{spec.ffn_width}});
  const uint64_t groups = (widest + kernels::kGroup - 1) / kernels::kGroup;
  const uint64_t angles = spec.ropes.size() * rows * (spec.head_dim / 2);
  StepBuffers b;
  b.residual = placer.Take<float>(rows * spec.width);
  b.input = placer.Take<float>(rows * spec.width);
  b.q = placer.Take<float>(rows * q_width);
  b.k = placer.Take<float>(rows * kv_width);
  b.v = placer.Take<float>(rows * kv_width);
  b.attended = placer.Take<float>(rows * q_width);
  b.gate = placer.Take<float>(rows * spec.ffn_width);
  b.up = placer.Take<float>(rows * spec.ffn_width);
  b.branch = placer.Take<float>(rows * spec.width);
  b.cos = placer.Take<float>(angles);
  b.sin = placer.Take<float>(angles);
  b.logits = placer.Take<float>(uint64_t{limits.logit_rows} * spec.vocabulary);
  b.quantised.values = placer.Take<int8_t>(rows * widest);
  b.quantised.scales = placer.Take<float>(rows * groups);
  b.quantised.sums = placer.Take<int32_t>(rows * groups);
  const uint64_t states = SplitStateRows(context_tokens) * spec.heads * kernels::SplitStateFloats(spec.head_dim);
  b.split_states = {placer.Take<float>(states), states};
  return {b, placer.used()};
}

void Workspace::Free::operator()(std::byte* p) const { std::free(p); }

}  // namespace cachalot::exec
