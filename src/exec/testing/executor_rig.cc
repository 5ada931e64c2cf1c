#include "exec/testing/executor_rig.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/random.h"
#include "exec/cpu/cpu_executor.h"
#include "kernels/kernel_table.h"
#include "model/gguf.h"

namespace cachalot::exec {
namespace {

template <class T>
T ValueOf(Result<T> result) {
  if (!result.ok()) std::fprintf(stderr, "%s\n", result.status().message().c_str());
  return std::move(result).value();
}

}  // namespace

ExecutorRig::ExecutorRig(const std::string& gguf_bytes, const RigOptions& options) : pool_(options.threads) {
  const auto file =
      ValueOf(model::GgufFile::Parse(std::as_bytes(std::span(gguf_bytes.data(), gguf_bytes.size())), "tiny model"));
  model_ = std::make_unique<CpuModel>(ValueOf(CpuModel::Load(file, options.model, pool_, nullptr)));
  memory_ = ValueOf(MakeCpuMemory(model_->layout().slot_bytes, options.slots));
  executor_ = MakeCpuExecutor(*model_, *memory_, options.limits, *ValueOf(kernels::SelectTable(options.isa)), pool_);
  for (uint32_t slot = options.slots; slot-- > 0;) free_slots_.push_back(slot);
  SplitMix64 random(options.scatter_seed);
  for (size_t i = free_slots_.size(); options.scatter_seed != 0 && i > 1; --i) {
    std::swap(free_slots_[i - 1], free_slots_[random.Below(i)]);
  }
  for (uint32_t slot = 0; slot < options.slots; ++slot) Poison(slot);
  slot_users_.assign(options.slots, 0);
}

void ExecutorRig::Poison(uint32_t slot) {
  std::memset(memory_->arena() + uint64_t{slot} * memory_->slot_bytes(), 0xff, memory_->slot_bytes());
}

uint32_t ExecutorRig::TakeSlot() {
  CACHALOT_CHECK(!free_slots_.empty());
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  slot_users_[slot] = 1;
  return slot;
}

void ExecutorRig::DropSlot(uint32_t slot) {
  if (--slot_users_[slot] > 0) return;
  Poison(slot);
  free_slots_.insert(free_slots_.begin(), slot);
}

void ExecutorRig::Fork(uint32_t from, uint32_t to) {
  if (sequences_.size() <= to) sequences_.resize(to + 1);
  Sequence& fork = sequences_[to];
  fork = sequences_[from];
  const uint64_t full_blocks = fork.length / model_->layout().shape.block_tokens;
  for (Group& group : fork.groups) {
    for (size_t i = 0; i < group.slots.size(); ++i) {
      const uint32_t slot = group.slots[i];
      ++slot_users_[slot];
      if (group.first_block + i < full_blocks) continue;
      group.slots[i] = TakeSlot();
      std::memcpy(memory_->arena() + uint64_t{group.slots[i]} * memory_->slot_bytes(),
                  memory_->arena() + uint64_t{slot} * memory_->slot_bytes(), memory_->slot_bytes());
      DropSlot(slot);
    }
  }
}

void ExecutorRig::Grow(Sequence& sequence, uint64_t tokens) {
  const uint32_t block_tokens = model_->layout().shape.block_tokens;
  const uint64_t blocks = (sequence.length + tokens + block_tokens - 1) / block_tokens;
  for (Group& group : sequence.groups) {
    while (group.first_block + group.slots.size() < blocks) group.slots.push_back(TakeSlot());
  }
}

void ExecutorRig::LeaveWindows(Sequence& sequence) {
  const KvLayout& layout = model_->layout();
  for (size_t g = 0; g < sequence.groups.size(); ++g) {
    const uint64_t window = layout.groups[g].window;
    if (window == 0 || sequence.length + 1 < window) continue;
    const auto kept = static_cast<uint32_t>((sequence.length + 1 - window) / layout.shape.block_tokens);
    Group& group = sequence.groups[g];
    while (group.first_block < kept) {
      DropSlot(group.slots.front());
      group.slots.erase(group.slots.begin());
      ++group.first_block;
    }
  }
}

std::vector<float> ExecutorRig::Run(const std::vector<Piece>& pieces) {
  std::vector<std::vector<PageTableRef>> pages;
  std::vector<SequenceRows> rows;
  for (const Piece& piece : pieces) {
    if (sequences_.size() <= piece.sequence) sequences_.resize(piece.sequence + 1);
    Sequence& sequence = sequences_[piece.sequence];
    sequence.groups.resize(model_->layout().groups.size());
    Grow(sequence, piece.tokens.size());
    pages.emplace_back();
    for (const Group& g : sequence.groups) {
      pages.back().push_back({g.slots.data(), static_cast<uint32_t>(g.slots.size()), g.first_block});
    }
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    rows.push_back(
        {pieces[i].tokens, sequences_[pieces[i].sequence].length, pages[i], pieces[i].logit_rows, pieces[i].gate});
  }
  const Logits logits = ValueOf(executor_->Run({rows}));
  for (const Piece& piece : pieces) {
    sequences_[piece.sequence].length += piece.tokens.size();
    LeaveWindows(sequences_[piece.sequence]);
  }
  return {logits.values, logits.values + uint64_t{logits.rows} * logits.vocabulary};
}

std::vector<float> ExecutorRig::RunWhole(uint32_t sequence, const std::vector<TokenId>& tokens, uint32_t chunk) {
  std::vector<float> logits;
  for (size_t done = 0; done < tokens.size(); done += chunk) {
    const size_t end = std::min(tokens.size(), done + chunk);
    logits = Run({{sequence, {tokens.begin() + done, tokens.begin() + end}, end == tokens.size() ? 1u : 0u}});
  }
  return logits;
}

std::string ExecutorRig::KvBytes(uint32_t sequence) const {
  const KvLayout& layout = model_->layout();
  const uint32_t element = KvTypeBytes(layout.shape.type), block_tokens = layout.shape.block_tokens;
  const Sequence& s = sequences_[sequence];
  std::string out;
  for (size_t l = 0; l < layout.places.size(); ++l) {
    const LayerPlace& place = layout.places[l];
    const LayerKvShape& shape = layout.shape.layers[l];
    const Group& group = s.groups[place.group];
    for (uint64_t p = uint64_t{group.first_block} * block_tokens; p < s.length; ++p) {
      const uint64_t slot = group.slots[p / block_tokens - group.first_block], t = p % block_tokens;
      const auto* base = reinterpret_cast<const char*>(memory_->arena() + slot * layout.slot_bytes);
      for (uint64_t i = 0; i < uint64_t{shape.kv_heads} * shape.k_dim; ++i) {
        out.append(base + place.k_offset + (i * block_tokens + t) * element, element);
      }
      for (uint64_t h = 0; h < shape.kv_heads; ++h) {
        out.append(base + place.v_offset + (h * block_tokens + t) * shape.v_dim * element, shape.v_dim * element);
      }
    }
  }
  return out;
}

}  // namespace cachalot::exec
