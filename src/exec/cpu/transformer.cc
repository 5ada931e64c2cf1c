#include "exec/cpu/transformer.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "exec/cpu/cpu_model.h"

namespace cachalot::exec {
namespace {

// Matmul tasks per thread: a busy neighbour then costs its share and little more.
constexpr size_t kTasksPerThread = 8;

}  // namespace

Transformer::Transformer(const CpuModel& model, std::byte* arena, const StepLimits& limits,
                         const kernels::KernelTable& kernels, ThreadPool& pool)
    : model_(model),
      arena_(arena),
      kernels_(kernels),
      pool_(pool),
      limits_(limits),
      workspace_(model.spec(), limits, model.context_tokens()),
      q_width_(model.spec().heads * model.spec().head_dim),
      kv_width_(model.spec().kv_heads * model.spec().head_dim) {
  const KvLayout& layout = model.layout();
  for (const LayerGroup& group : layout.groups) {
    attention_plans_.emplace_back(AttentionSetting{ShapeOf(group.window), layout.shape.block_tokens,
                                                   static_cast<uint32_t>(pool.thread_count()), limits.rows});
  }
}

void Transformer::Forward(std::span<const SequenceRows> sequences, std::span<const StepRow> rows,
                          std::span<const uint32_t> logit_rows) {
  const auto count = static_cast<uint32_t>(rows.size());
  PlanAttention(sequences);
  Embed(rows);
  for (uint32_t l = 0; l < model_.layers().size(); ++l) {
    ProjectQkv(model_.layers()[l], count);
    AwaitLayer(sequences, l);
    PlaceQkv(l, sequences, rows);
    Attend(l);
    ProjectAttended(l, count);
    FeedForward(l, count);
  }
  ComputeLogits(logit_rows);
}

void Transformer::PlanAttention(std::span<const SequenceRows> sequences) {
  const StepBuffers& b = workspace_.buffers();
  for (uint32_t group = 0; group < attention_plans_.size(); ++group) {
    attention_plans_[group].Build(sequences, group, {b.q, b.attended, b.split_states});
  }
}

void Transformer::AwaitLayer(std::span<const SequenceRows> sequences, uint32_t layer_index) {
  for (const SequenceRows& rows : sequences) {
    if (rows.gate != nullptr) (void)rows.gate->Await(layer_index);
  }
}

void Transformer::Embed(std::span<const StepRow> rows) {
  const StepBuffers& b = workspace_.buffers();
  const model::ModelSpec& spec = model_.spec();
  const uint32_t half = spec.head_dim / 2;
  pool_.ParallelFor(rows.size(), [&](size_t r) {
    float* x = b.residual + r * spec.width;
    model_.embedding().DequantiseRow(rows[r].token, x);
    if (spec.embedding_scale != 1.0f) kernels_.scale(x, spec.embedding_scale, spec.width, x);
    for (size_t i = 0; i < model_.ropes().size(); ++i) {
      const uint64_t place = (i * limits_.rows + r) * half;
      model_.ropes()[i].At(rows[r].position, b.cos + place, b.sin + place);
    }
    StartLayer(0, static_cast<uint32_t>(r));
  });
}

void Transformer::Quantise(const float* x, uint32_t row, uint32_t columns) {
  kernels::QuantisedRows out = workspace_.buffers().quantised;
  const uint64_t groups = columns / kernels::kGroup;
  out.values += uint64_t{row} * columns;
  out.scales += row * groups;
  out.sums += row * groups;
  kernels_.quantize_rows(x, 1, columns, out);
}

void Transformer::NormAndQuantise(const std::vector<float>& norm, uint32_t row, bool quantise) {
  const StepBuffers& b = workspace_.buffers();
  const uint32_t width = model_.spec().width;
  float* out = b.input + uint64_t{row} * width;
  kernels_.rms_norm(b.residual + uint64_t{row} * width, norm.data(), model_.spec().norm_epsilon, width, out);
  if (quantise) Quantise(out, row, width);
}

void Transformer::Multiply(std::span<const MatmulJob> jobs, const float* x, uint32_t rows) {
  const kernels::Activations input{x, workspace_.buffers().quantised, rows};
  size_t panels = 0;
  for (const MatmulJob& job : jobs) panels += job.weights->panels();
  const size_t pairs = (panels + 1) / 2;  // kernels take two panels at a time
  const size_t tasks = std::min(pairs, pool_.thread_count() * kTasksPerThread);
  pool_.ParallelFor(tasks, [&](size_t task) {
    size_t begin = pairs * task / tasks * 2;
    size_t end = std::min(pairs * (task + 1) / tasks * 2, panels);
    for (const MatmulJob& job : jobs) {
      const size_t own = job.weights->panels();
      if (begin < own && begin < end) {
        kernels_.matmul(job.weights->view(), input, static_cast<uint32_t>(begin),
                        static_cast<uint32_t>(std::min(end, own)), job.out, job.weights->rows());
      }
      begin = begin > own ? begin - own : 0;
      end = end > own ? end - own : 0;
    }
  });
}

void Transformer::StartLayer(uint32_t layer_index, uint32_t row) {
  if (layer_index == model_.layers().size()) return;
  const CpuLayer& layer = model_.layers()[layer_index];
  const bool quantise = layer.q.takes_quantised() || layer.k.takes_quantised() || layer.v.takes_quantised();
  NormAndQuantise(layer.attention_norm, row, quantise);
}

void Transformer::ProjectQkv(const CpuLayer& layer, uint32_t rows) {
  const StepBuffers& b = workspace_.buffers();
  const MatmulJob jobs[] = {{&layer.q, b.q}, {&layer.k, b.k}, {&layer.v, b.v}};
  Multiply(jobs, b.input, rows);
}

kernels::AttentionShape Transformer::ShapeOf(uint64_t window) const {
  const model::ModelSpec& spec = model_.spec();
  return {spec.heads, spec.kv_heads, spec.head_dim, static_cast<uint32_t>(window)};
}

PageView Transformer::ViewOf(uint32_t layer_index) const {
  const KvLayout& layout = model_.layout();
  const LayerPlace& place = layout.places[layer_index];
  const LayerKvShape& shape = layout.shape.layers[layer_index];
  PageView view;
  view.arena = arena_;
  view.slot_bytes = layout.slot_bytes;
  view.k_offset = place.k_offset;
  view.v_offset = place.v_offset;
  view.block_tokens = layout.shape.block_tokens;
  view.kv_heads = shape.kv_heads;
  view.k_dim = shape.k_dim;
  view.v_dim = shape.v_dim;
  view.type = layout.shape.type;
  return view;
}

void Transformer::PlaceQkv(uint32_t layer_index, std::span<const SequenceRows> sequences,
                           std::span<const StepRow> rows) {
  const StepBuffers& b = workspace_.buffers();
  const model::ModelSpec& spec = model_.spec();
  const CpuLayer& layer = model_.layers()[layer_index];
  const uint32_t group = model_.layout().places[layer_index].group;
  const uint32_t rope = spec.layer[layer_index].rope;
  const uint32_t dims = spec.ropes[rope].dims;
  const auto rotate = spec.rope_pairs == model::RopePairs::kHalves ? kernels_.rope_halves : kernels_.rope_interleaved;

  pool_.ParallelFor(rows.size(), [&](size_t r) {
    float* q = b.q + r * q_width_;
    float* k = b.k + r * kv_width_;
    float* v = b.v + r * kv_width_;
    if (!layer.q_bias.empty()) kernels_.add(q, layer.q_bias.data(), q_width_, q);
    if (!layer.k_bias.empty()) kernels_.add(k, layer.k_bias.data(), kv_width_, k);
    if (!layer.v_bias.empty()) kernels_.add(v, layer.v_bias.data(), kv_width_, v);
    const uint64_t place = (uint64_t{rope} * limits_.rows + r) * (spec.head_dim / 2);
    const auto finish_head = [&](float* head, const std::vector<float>& norm) {
      if (!norm.empty()) kernels_.rms_norm(head, norm.data(), spec.norm_epsilon, spec.head_dim, head);
      rotate(head, b.cos + place, b.sin + place, dims);
    };
    for (uint32_t h = 0; h < spec.heads; ++h) finish_head(q + h * spec.head_dim, layer.q_norm);
    for (uint32_t h = 0; h < spec.kv_heads; ++h) finish_head(k + h * spec.head_dim, layer.k_norm);
    kernels_.scale(q, spec.attention_scale, q_width_, q);
    PageView view = ViewOf(layer_index);
    view.pages = sequences[rows[r].sequence].pages[group];
    kernels_.store_kv(k, v, rows[r].position, view);
  });
}

void Transformer::Attend(uint32_t layer_index) {
  const kernels::AttentionShape shape = ShapeOf(model_.spec().layer[layer_index].window);
  const PageView view = ViewOf(layer_index);
  const auto tasks = attention_plans_[model_.layout().places[layer_index].group].tasks();
  pool_.ParallelFor(tasks.size(), [&](size_t i) { kernels_.attend(shape, tasks[i], view); });
}

void Transformer::AddBranch(const std::vector<float>& post_norm, uint32_t row) {
  const StepBuffers& b = workspace_.buffers();
  const uint32_t width = model_.spec().width;
  float* x = b.residual + uint64_t{row} * width;
  float* branch = b.branch + uint64_t{row} * width;
  if (!post_norm.empty()) kernels_.rms_norm(branch, post_norm.data(), model_.spec().norm_epsilon, width, branch);
  kernels_.add(x, branch, width, x);
}

void Transformer::ProjectAttended(uint32_t layer_index, uint32_t rows) {
  const StepBuffers& b = workspace_.buffers();
  const CpuLayer& layer = model_.layers()[layer_index];
  const AttentionPlan& plan = attention_plans_[model_.layout().places[layer_index].group];
  const kernels::AttentionShape shape = ShapeOf(model_.spec().layer[layer_index].window);
  pool_.ParallelFor(rows, [&](size_t r) {
    const AttentionPlan::CutRow& cut = plan.cut_row(r);
    if (cut.run != nullptr) kernels_.fold_splits(shape, *cut.run, cut.row);
    if (layer.o.takes_quantised()) Quantise(b.attended + r * q_width_, static_cast<uint32_t>(r), q_width_);
  });
  const MatmulJob jobs[] = {{&layer.o, b.branch}};
  Multiply(jobs, b.attended, rows);
}

void Transformer::FeedForward(uint32_t layer_index, uint32_t rows) {
  const StepBuffers& b = workspace_.buffers();
  const CpuLayer& layer = model_.layers()[layer_index];
  const model::ModelSpec& spec = model_.spec();
  const bool quantise = layer.gate.takes_quantised() || layer.up.takes_quantised();
  pool_.ParallelFor(rows, [&](size_t r) {
    AddBranch(layer.attention_post_norm, static_cast<uint32_t>(r));
    NormAndQuantise(layer.ffn_norm, static_cast<uint32_t>(r), quantise);
  });
  const MatmulJob jobs[] = {{&layer.gate, b.gate}, {&layer.up, b.up}};
  Multiply(jobs, b.input, rows);

  const auto activate = spec.activation == model::Activation::kSilu ? kernels_.silu_mul : kernels_.gelu_tanh_mul;
  pool_.ParallelFor(rows, [&](size_t r) {
    float* gate = b.gate + r * spec.ffn_width;
    activate(gate, b.up + r * spec.ffn_width, spec.ffn_width, gate);
    if (layer.down.takes_quantised()) Quantise(gate, static_cast<uint32_t>(r), spec.ffn_width);
  });
  const MatmulJob down[] = {{&layer.down, b.branch}};
  Multiply(down, b.gate, rows);
  pool_.ParallelFor(rows, [&](size_t r) {
    AddBranch(layer.ffn_post_norm, static_cast<uint32_t>(r));
    StartLayer(layer_index + 1, static_cast<uint32_t>(r));
  });
}

void Transformer::ComputeLogits(std::span<const uint32_t> logit_rows) {
  if (logit_rows.empty()) return;
  const StepBuffers& b = workspace_.buffers();
  const uint32_t width = model_.spec().width;
  const kernels::PackedMatrix& output = model_.output();
  // Rows move up to be side by side; they ascend, so none is overwritten before it is read.
  for (uint32_t i = 0; i < logit_rows.size(); ++i) {
    const float* x = b.residual + uint64_t{logit_rows[i]} * width;
    std::copy_n(x, width, b.residual + uint64_t{i} * width);
    NormAndQuantise(model_.output_norm(), i, output.takes_quantised());
  }
  const MatmulJob jobs[] = {{&output, b.logits}};
  Multiply(jobs, b.input, static_cast<uint32_t>(logit_rows.size()));
}

}  // namespace cachalot::exec
