#include "kv/testing/kv_model.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "kv/kv_manager.h"
#include "kv/kv_snapshot.h"

namespace cachalot::kv {
namespace {

// A block of the model: who holds the same number shares the block.
using BlockName = uint64_t;

struct ModelSequence {
  SequenceId id;
  std::vector<uint64_t> words;                 // one per token: a hash of all tokens up to it
  std::vector<std::vector<BlockName>> blocks;  // by group, by logical block; 0: left its window
};

struct Model {
  std::vector<ModelSequence> sequences;
  BlockName last_name = 0;
};

uint64_t Mix(uint64_t a, uint64_t b) { return SplitMix64(a * 0x9E3779B97F4A7C15 + b)(); }

bool HeldElsewhere(const Model& model, const ModelSequence& holder, size_t group, BlockName name) {
  for (const ModelSequence& other : model.sequences) {
    if (&other == &holder) continue;
    if (std::count(other.blocks[group].begin(), other.blocks[group].end(), name) > 0) return true;
  }
  return false;
}

class Driver {
 public:
  explicit Driver(const KvModelRun& run)
      : run_(run),
        random_(run.seed),
        manager_(run.geometry),
        arena_(uint64_t{run.geometry.slots} * run.geometry.block_tokens, 0) {}

  KvModelReport Run() && {
    for (uint64_t i = 0; i < run_.operations && report_.problems.empty(); ++i) {
      Operation();
      CheckFree();
      if (i % 8 == 0) CheckAll();
    }
    while (!model_.sequences.empty() && report_.problems.empty()) {
      FreeOne();
      CheckFree();
    }
    return std::move(report_);
  }

 private:
  template <class... Args>
  void Problem(fmt::format_string<Args...> format, Args&&... args) {
    report_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void Operation() {
    const uint64_t dice = random_.Below(100);
    const bool room = model_.sequences.size() < run_.max_sequences;
    if (model_.sequences.empty() || (room && dice < 8)) {
      ModelSequence& created = AddSequence(manager_.Create());
      created.blocks.resize(run_.geometry.windows.size());
    } else if (room && dice < 20) {
      const size_t parent = random_.Below(model_.sequences.size());
      ModelSequence copy = model_.sequences[parent];
      AddSequence(manager_.Fork(copy.id));
      copy.id = model_.sequences.back().id;
      model_.sequences.back() = std::move(copy);
      ++report_.forks;
    } else if (dice < 26) {
      FreeOne();
    } else {
      GrowSome();
    }
  }

  ModelSequence& AddSequence(SequenceId id) {
    if (id <= last_id_) Problem("sequence id {} was given before", id.value);
    last_id_ = id;
    model_.sequences.push_back({.id = id});
    return model_.sequences.back();
  }

  void FreeOne() {
    const size_t victim = random_.Below(model_.sequences.size());
    manager_.Free(model_.sequences[victim].id);
    model_.sequences.erase(model_.sequences.begin() + static_cast<ptrdiff_t>(victim));
  }

  uint32_t StepTokens(const ModelSequence& sequence) {
    const uint64_t left = run_.max_tokens - std::min<uint64_t>(run_.max_tokens, sequence.words.size());
    const uint64_t dice = random_.Below(10);
    const uint64_t wanted = dice < 5 ? 1 : random_.Below(dice < 8 ? 6 : run_.max_step + 1);
    return static_cast<uint32_t>(std::min(wanted, left));
  }

  void GrowSome() {
    std::vector<Growth> growth;
    const bool all = random_.Below(4) == 0;
    for (const ModelSequence& sequence : model_.sequences) {
      if (all || random_.Below(3) == 0) growth.push_back({sequence.id, StepTokens(sequence)});
    }
    if (growth.size() > 1 && random_.Below(2) == 0) std::reverse(growth.begin(), growth.end());

    Model next = model_;
    uint64_t copies = 0;
    for (const Growth& g : growth) copies += Grow(next, g);
    const uint64_t used = DistinctBlocks(model_);
    const uint64_t needed = DistinctBlocks(next) - used;
    if (growth.size() == 1) CheckSlotsToGrow(growth[0], needed);

    Result<StepReservation> reserved = manager_.Reserve(growth);
    const bool fits = used + needed <= run_.geometry.slots;
    if (reserved.ok() != fits) Problem("{} of {} slots used, {} needed: {}", used, run_.geometry.slots, needed, fits);
    if (!reserved.ok() || !fits) return Refused(reserved.status(), needed);
    CheckStep(*reserved, next, growth, copies, used + needed);
    if (random_.Below(4) == 0) {
      ++report_.rollbacks;
      return;
    }
    std::move(*reserved).Commit();
    ++report_.commits;
    DropWindows(next);
    model_ = std::move(next);
  }

  void CheckSlotsToGrow(const Growth& growth, uint64_t needed) {
    const uint32_t said = manager_.SlotsToGrow(growth.sequence, growth.tokens);
    if (said != needed) Problem("SlotsToGrow says {}, the model {}", said, needed);
  }

  void Refused(const Status& status, uint64_t needed) {
    ++report_.refusals;
    if (status.code() != Code::kOverloaded) Problem("refused with {}", CodeName(status.code()));
    if (status.message().find(fmt::format("needs {} slots", needed)) == std::string::npos) {
      Problem("\"{}\" does not say {}", status.message(), needed);
    }
  }

  // Returns how many blocks had to be copied.
  uint64_t Grow(Model& model, const Growth& growth) {
    auto sequence = std::find_if(model.sequences.begin(), model.sequences.end(),
                                 [&](const ModelSequence& s) { return s.id == growth.sequence; });
    uint64_t copies = 0;
    const size_t begin = sequence->words.size();
    for (size_t p = begin; p < begin + growth.tokens; ++p) {
      sequence->words.push_back(Mix(p == 0 ? 0 : sequence->words.back(), random_()));
      for (size_t group = 0; group < sequence->blocks.size(); ++group) {
        std::vector<BlockName>& blocks = sequence->blocks[group];
        if (p % run_.geometry.block_tokens == 0) {
          blocks.push_back(++model.last_name);
        } else if (HeldElsewhere(model, *sequence, group, blocks.back())) {
          blocks.back() = ++model.last_name;
          ++copies;
        }
      }
    }
    return copies;
  }

  void DropWindows(Model& model) {
    for (ModelSequence& sequence : model.sequences) {
      for (size_t group = 0; group < sequence.blocks.size(); ++group) {
        const uint64_t window = run_.geometry.windows[group];
        for (uint64_t b = 0; b < sequence.blocks[group].size(); ++b) {
          const uint64_t last_position = (b + 1) * run_.geometry.block_tokens - 1;
          // The next row, at words.size(), sees the positions after words.size() - window.
          const bool seen = window == 0 || last_position + window > sequence.words.size();
          if (!seen && sequence.blocks[group][b] != 0) ++report_.dropped_blocks;
          if (!seen) sequence.blocks[group][b] = 0;
        }
      }
    }
  }

  // Plays the step: copies, then each sequence's rows, then what they see. A step that will be rolled back has
  // written all the same.
  void CheckStep(const StepReservation& step, const Model& next, const std::vector<Growth>& growth, uint64_t copies,
                 uint64_t used) {
    if (step.copies().size() != copies) Problem("{} copies, the model needs {}", step.copies().size(), copies);
    report_.copies += copies;
    if (manager_.free_slots() + used != run_.geometry.slots) Problem("{} free with a step open", manager_.free_slots());
    const uint32_t block_tokens = run_.geometry.block_tokens;
    for (const BlockCopy& copy : step.copies()) {
      std::copy_n(arena_.begin() + static_cast<ptrdiff_t>(uint64_t{copy.from.value} * block_tokens), block_tokens,
                  arena_.begin() + static_cast<ptrdiff_t>(uint64_t{copy.to.value} * block_tokens));
    }
    for (size_t i = 0; i < next.sequences.size(); ++i) {
      const ModelSequence& sequence = next.sequences[i];
      for (uint64_t p = model_.sequences[i].words.size(); p < sequence.words.size(); ++p) {
        for (uint32_t group = 0; group < sequence.blocks.size(); ++group) {
          if (uint64_t* word = WordAt(sequence.id, group, p)) *word = Mix(sequence.words[p], group);
        }
      }
    }
    for (const Growth& g : growth) {
      for (size_t i = 0; i < next.sequences.size(); ++i) {
        if (next.sequences[i].id == g.sequence) CheckWords(next.sequences[i], model_.sequences[i].words.size());
      }
    }
    if (random_.Below(8) == 0) CheckViolations();
  }

  uint64_t* WordAt(SequenceId id, uint32_t group, uint64_t position) {
    const PageTableRef pages = manager_.Pages(id, group);
    const uint64_t block = position / run_.geometry.block_tokens;
    if (block < pages.first_block || block - pages.first_block >= pages.slot_count) {
      Problem("sequence {} group {} lacks block {}", id.value, group, block);
      return nullptr;
    }
    const uint64_t slot = pages.slots[block - pages.first_block];
    return &arena_[slot * run_.geometry.block_tokens + position % run_.geometry.block_tokens];
  }

  // What a row at `first_row` and later ones see.
  void CheckWords(const ModelSequence& sequence, uint64_t first_row) {
    for (uint32_t group = 0; group < sequence.blocks.size(); ++group) {
      const uint64_t window = run_.geometry.windows[group];
      const uint64_t begin = window == 0 || first_row < window ? 0 : first_row - window + 1;
      for (uint64_t p = begin; p < sequence.words.size(); ++p) {
        const uint64_t* word = WordAt(sequence.id, group, p);
        if (word == nullptr) return;
        if (*word != Mix(sequence.words[p], group)) {
          return Problem("sequence {} group {} position {} holds another word", sequence.id.value, group, p);
        }
      }
    }
  }

  uint64_t DistinctBlocks(const Model& model) {
    counted_in_.resize(model.last_name + 1, 0);
    ++count_;
    uint64_t distinct = 0;
    for (const ModelSequence& sequence : model.sequences) {
      for (const auto& group : sequence.blocks) {
        for (const BlockName name : group) {
          if (name != 0 && std::exchange(counted_in_[name], count_) != count_) ++distinct;
        }
      }
    }
    return distinct;
  }

  void CheckFree() {
    const uint64_t used = DistinctBlocks(model_);
    if (manager_.free_slots() + used != run_.geometry.slots) {
      Problem("{} slots are free; the model uses {} of {}", manager_.free_slots(), used, run_.geometry.slots);
    }
  }

  void CheckViolations() {
    for (std::string& violation : Violations(manager_.Snapshot())) report_.problems.push_back(std::move(violation));
  }

  void CheckAll() {
    CheckViolations();
    for (const ModelSequence& sequence : model_.sequences) {
      if (manager_.Length(sequence.id) != sequence.words.size()) Problem("sequence {} length", sequence.id.value);
      CheckWords(sequence, sequence.words.size());
    }
  }

  const KvModelRun& run_;
  SplitMix64 random_;
  KvManager manager_;
  std::vector<uint64_t> arena_;  // [slot][token of the block]
  Model model_;
  SequenceId last_id_{0};
  std::vector<uint64_t> counted_in_;  // by block name: the last count of distinct blocks that saw it
  uint64_t count_ = 0;
  KvModelReport report_;
};

}  // namespace

KvModelReport RunKvModel(const KvModelRun& run) { return Driver(run).Run(); }

}  // namespace cachalot::kv
