#include "exec/testing/fake_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/random.h"
#include "kernels/kernel_table.h"

namespace cachalot::exec {
namespace {

constexpr uint32_t kTokenBits = 24;
constexpr uint64_t kRecordBytes = 8;
constexpr uint64_t kNoise = 0x5A5A5A5A5A5A5A5A;

uint64_t Mix(uint64_t a, uint64_t b) { return SplitMix64(a * 0x9E3779B97F4A7C15 + b)(); }

}  // namespace

Sampler FakeSampler() { return Sampler(*kernels::RunnableTables().front()); }

KvLayout FakeExecutor::LayoutFor(const FakeOptions& options) {
  KvShape shape;
  shape.type = KvType::kF32;
  shape.block_tokens = options.block_tokens;
  for (const uint32_t window : options.windows) {
    CACHALOT_CHECK(window != 1);  // a row must see its predecessor
    shape.layers.push_back({.kv_heads = 1, .k_dim = kRecordBytes / 4, .v_dim = 0, .window = window});
  }
  Result<KvLayout> layout = PlanKvLayout(shape, options.context_tokens);
  CACHALOT_CHECK(layout.ok());
  return std::move(layout).value();
}

FakeExecutor::FakeExecutor(FakeOptions options, DeviceMemory& memory, ManualClock* clock)
    : options_(std::move(options)), layout_(LayoutFor(options_)), memory_(memory), clock_(clock) {
  CACHALOT_CHECK(memory.slot_bytes() == layout_.slot_bytes);
  CACHALOT_CHECK(options_.vocabulary > 0 && options_.vocabulary <= 1u << kTokenBits);
  CACHALOT_CHECK(options_.layer_time == Nanos(0) || clock != nullptr);
}

void FakeExecutor::FailRun(uint64_t nth, Status status) {
  CACHALOT_CHECK(nth > 0 && !status.ok());
  fail_at_run_ = runs_ + nth;
  failure_ = std::move(status);
}

Result<Logits> FakeExecutor::Run(const Batch& batch) {
  ++runs_;
  CACHALOT_RETURN_IF_ERROR(Validate(batch));
  CACHALOT_RETURN_IF_ERROR(Inspect(batch));
  if (runs_ == fail_at_run_) {
    Scribble(batch);
    return failure_;
  }
  logits_.clear();
  for (size_t i = 0; i < batch.sequences.size(); ++i) RunRows(batch.sequences[i], lost_[i]);
  return Logits{.values = logits_.data(),
                .rows = static_cast<uint32_t>(logits_.size() / options_.vocabulary),
                .vocabulary = options_.vocabulary};
}

Status FakeExecutor::Validate(const Batch& batch) const {
  uint64_t rows = 0;
  uint64_t logit_rows = 0;
  for (const SequenceRows& sequence : batch.sequences) {
    CACHALOT_RETURN_IF_ERROR(ValidateRows(sequence));
    rows += sequence.tokens.size();
    logit_rows += sequence.logit_rows;
  }
  if (rows > options_.limits.rows || logit_rows > options_.limits.logit_rows) {
    return Invalid(fmt::format("batch of {} rows, {} with logits; at most {} and {} are allowed", rows, logit_rows,
                               options_.limits.rows, options_.limits.logit_rows));
  }
  return OkStatus();
}

Status FakeExecutor::ValidateRows(const SequenceRows& rows) const {
  if (rows.tokens.empty() || rows.logit_rows > rows.tokens.size()) {
    return Invalid(fmt::format("{} rows with {} logit rows", rows.tokens.size(), rows.logit_rows));
  }
  if (rows.first_position + rows.tokens.size() > options_.context_tokens) {
    return Invalid(fmt::format("rows reach position {} of a context of {}", rows.first_position + rows.tokens.size(),
                               options_.context_tokens));
  }
  if (rows.pages.size() != layout_.groups.size()) {
    return Invalid(fmt::format("{} page tables for {} layer groups", rows.pages.size(), layout_.groups.size()));
  }
  for (const TokenId token : rows.tokens) {
    if (token >= options_.vocabulary) {
      return Invalid(fmt::format("token {} is outside the vocabulary of {}", token, options_.vocabulary));
    }
  }
  return OkStatus();
}

std::byte* FakeExecutor::At(const SequenceRows& rows, size_t layer, uint64_t position) const {
  const LayerPlace& place = layout_.places[layer];
  const PageTableRef& pages = rows.pages[place.group];
  const uint64_t block = position / options_.block_tokens;
  if (block < pages.first_block || block - pages.first_block >= pages.slot_count) return nullptr;
  const uint64_t slot = pages.slots[block - pages.first_block];
  if (slot >= memory_.slots()) return nullptr;
  return memory_.arena() + slot * layout_.slot_bytes + place.k_offset + position % options_.block_tokens * kRecordBytes;
}

std::optional<FakeExecutor::Record> FakeExecutor::Read(const SequenceRows& rows, size_t layer,
                                                       uint64_t position) const {
  const std::byte* const from = At(rows, layer, position);
  if (from == nullptr) return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  bits ^= Mix(layer, kNoise);
  return Record{bits >> kTokenBits, static_cast<TokenId>(bits & ((1u << kTokenBits) - 1))};
}

void FakeExecutor::Write(const SequenceRows& rows, size_t layer, uint64_t position, Record record) {
  const uint64_t bits = ((record.hash << kTokenBits) | record.token) ^ Mix(layer, kNoise);
  std::memcpy(At(rows, layer, position), &bits, sizeof(bits));
}

uint64_t FakeExecutor::FirstVisible(size_t layer, uint64_t position) const {
  const uint64_t window = options_.windows[layer];
  return window == 0 || position < window ? 0 : position - window + 1;
}

std::string FakeExecutor::FaultOf(const SequenceRows& rows, size_t layer) const {
  const uint64_t first = rows.first_position, end = first + rows.tokens.size();
  const uint32_t group = layout_.places[layer].group;
  for (uint64_t p = first; p < end; ++p) {
    if (At(rows, layer, p) == nullptr) return fmt::format("group {} has no block for the row at {}", group, p);
  }
  const uint64_t begin = FirstVisible(layer, first);
  std::optional<Record> previous;
  for (uint64_t p = begin; p < first; ++p) {
    const std::optional<Record> record = Read(rows, layer, p);
    if (!record) return fmt::format("group {} has no block for position {}, which is seen", group, p);
    const bool follows = p > begin ? record->hash == Chain(previous->hash, record->token, p)
                                   : p > 0 || record->hash == Chain(0, record->token, 0);
    if (!follows) return fmt::format("layer {}: position {} does not follow the one before", layer, p);
    previous = record;
  }
  if (previous && previous != Read(rows, 0, first - 1)) {  // each layer sees it
    return fmt::format("layers {} and 0 differ at position {}", layer, first - 1);
  }
  return {};
}

std::string FakeExecutor::ClashOf(const Batch& batch) const {
  std::vector<const std::byte*> written;
  for (const SequenceRows& rows : batch.sequences) {
    for (const LayerGroup& group : layout_.groups) {
      for (uint64_t i = 0; i < rows.tokens.size(); ++i) {
        written.push_back(At(rows, group.layers.front(), rows.first_position + i));
      }
    }
  }
  std::sort(written.begin(), written.end());
  const auto twice = std::adjacent_find(written.begin(), written.end());
  if (twice == written.end()) return {};
  return fmt::format("two rows write into slot {}", (*twice - memory_.arena()) / layout_.slot_bytes);
}

Status FakeExecutor::Inspect(const Batch& batch) {
  lost_.assign(batch.sequences.size(), false);
  for (size_t layer = 0; layer < options_.windows.size(); ++layer) {
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      LayerGate* const gate = batch.sequences[i].gate;
      if (gate != nullptr && !gate->Await(static_cast<uint32_t>(layer))) lost_[i] = true;
    }
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      const std::string fault = lost_[i] ? "" : FaultOf(batch.sequences[i], layer);
      if (!fault.empty()) return Violation(fmt::format("run {} sequence {}: {}", runs_, i, fault));
    }
    if (clock_ != nullptr) clock_->Advance(options_.layer_time);
  }
  std::string clash = ClashOf(batch);
  return clash.empty() ? OkStatus() : Violation(std::move(clash));
}

Status FakeExecutor::Violation(std::string fault) {
  violations_.push_back(fault);
  return Internal("wrong KV: " + fault);
}

void FakeExecutor::RunRows(const SequenceRows& rows, bool lost) {
  const uint64_t first = rows.first_position;
  uint64_t hash = first == 0 || lost ? 0 : Read(rows, 0, first - 1)->hash;
  for (uint64_t i = 0; i < rows.tokens.size(); ++i) {
    hash = Chain(hash, rows.tokens[i], first + i);
    for (size_t layer = 0; layer < options_.windows.size(); ++layer) {
      Write(rows, layer, first + i, {hash, rows.tokens[i]});
    }
    if (i + rows.logit_rows < rows.tokens.size()) continue;
    logits_.resize(logits_.size() + options_.vocabulary);
    FillLogits(hash, logits_.data() + logits_.size() - options_.vocabulary);
  }
  rows_ += rows.tokens.size();
}

void FakeExecutor::Scribble(const Batch& batch) {
  for (const SequenceRows& rows : batch.sequences) {
    for (size_t layer = 0; layer < options_.windows.size(); ++layer) {
      for (uint64_t i = 0; i < rows.tokens.size(); ++i) {
        Write(rows, layer, rows.first_position + i, {Mix(kNoise, i) >> kTokenBits, 0});
      }
    }
  }
}

uint64_t FakeExecutor::Chain(uint64_t previous, TokenId token, uint64_t position) const {
  return Mix(Mix(previous, options_.seed), Mix(token, position)) >> kTokenBits;
}

uint64_t FakeExecutor::HashOf(std::span<const TokenId> tokens) const {
  CACHALOT_CHECK(!tokens.empty());
  uint64_t hash = 0;
  for (size_t i = 0; i < tokens.size(); ++i) hash = Chain(hash, tokens[i], i);
  return hash;
}

TokenId FakeExecutor::BestToken(uint64_t hash) const {
  return static_cast<TokenId>(Mix(hash, 1) % options_.vocabulary);
}

// One clear best token, one runner-up, the rest spread over [-4, 4).
void FakeExecutor::FillLogits(uint64_t hash, float* logits) const {
  SplitMix64 noise(hash);
  for (uint32_t token = 0; token < options_.vocabulary; ++token) {
    logits[token] = static_cast<float>(noise() >> 40) * 0x1p-21f - 4.0f;
  }
  logits[Mix(hash, 2) % options_.vocabulary] = 6.0f;
  logits[BestToken(hash)] = 8.0f;
}

std::vector<float> FakeExecutor::ExpectedLogits(std::span<const TokenId> tokens) const {
  std::vector<float> logits(options_.vocabulary);
  FillLogits(HashOf(tokens), logits.data());
  return logits;
}

TokenId FakeExecutor::ExpectedNext(std::span<const TokenId> tokens) const { return BestToken(HashOf(tokens)); }

}  // namespace cachalot::exec
