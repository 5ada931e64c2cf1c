#include "kv/testing/prefix_model.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "kv/kv_manager.h"
#include "kv/kv_snapshot.h"
#include "kv/prefix_tree.h"
#include "kv/testing/any_victim.h"

namespace cachalot::kv {
namespace {

uint64_t Mix(uint64_t a, uint64_t b) { return SplitMix64(a * 0x9E3779B97F4A7C15 + b)(); }

struct Run {
  SequenceId id;
  CacheSalt salt;
  std::vector<TokenId> tokens;  // what it has computed, then what is left of its prompt
  uint64_t length = 0;          // computed
  uint64_t prompt = 0;
};

// Tokens that were computed, and how many of them can be found again as long as nothing is evicted.
struct Known {
  CacheSalt salt;
  std::vector<TokenId> tokens;
  uint64_t published = 0;
};

std::unique_ptr<EvictionPolicy> PolicyOf(const PrefixModelRun& run) {
  if (run.policy.empty()) return std::make_unique<AnyVictim>(run.seed);
  return MakeEvictionPolicy(run.policy).value();
}

class Driver {
 public:
  explicit Driver(const PrefixModelRun& run)
      : run_(run),
        random_(run.seed),
        manager_(run.geometry, PolicyOf(run)),
        arena_(uint64_t{run.geometry.slots} * run.geometry.block_tokens, 0) {}

  PrefixModelReport Go() && {
    for (uint64_t i = 0; i < run_.operations && report_.problems.empty(); ++i) {
      manager_.SetNow(Nanos(i * 10'000'000));
      Operation();
      CheckAll();
    }
    while (!runs_.empty() && report_.problems.empty()) {
      FreeOne();
      CheckAll();
    }
    if (manager_.available_slots() != run_.geometry.slots) Problem("{} slots left", manager_.available_slots());
    report_.evicted_slots = manager_.evicted_slots();
    return std::move(report_);
  }

 private:
  template <class... Args>
  void Problem(fmt::format_string<Args...> format, Args&&... args) {
    report_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void Operation() {
    const uint64_t dice = random_.Below(100);
    const bool room = runs_.size() < run_.max_sequences;
    if (runs_.empty() || (room && dice < 12)) {
      StartOne();
    } else if (room && dice < 16) {
      ForkOne();
    } else if (dice < 26) {
      FreeOne();
    } else {
      GrowSome();
    }
  }

  TokenId AnyToken() { return static_cast<TokenId>(random_.Below(run_.alphabet)); }

  // Often an earlier prompt's beginning, then something else.
  std::vector<TokenId> AnyPrompt() {
    std::vector<TokenId> prompt;
    if (!known_.empty() && random_.Below(5) > 0) {
      const std::vector<TokenId>& from = known_[random_.Below(known_.size())].tokens;
      prompt.assign(from.begin(), from.begin() + static_cast<ptrdiff_t>(random_.Below(from.size() + 1)));
    }
    uint64_t more = random_.Below(3) == 0 ? 0 : random_.Below(2 * run_.geometry.block_tokens + 2);
    if (prompt.empty() && more == 0) more = 1;
    for (; more > 0 && prompt.size() < run_.max_tokens; --more) prompt.push_back(AnyToken());
    return prompt;
  }

  void StartOne() {
    const CacheSalt salt{0, random_.Below(run_.salts)};
    const std::vector<TokenId> prompt = AnyPrompt();
    const uint64_t limit = random_.Below(10) == 0 ? 0 : prompt.size() - 1;
    const PrefixScope scope{salt, 0};
    const bool room = manager_.free_slots() >= run_.geometry.windows.size();  // for the copy of a block
    const Findable findable = FindableOf(salt, prompt);
    const PrefixView view = manager_.Find(scope, prompt, limit);
    if (view.awaited < view.tokens || view.tokens > limit) Problem("{} tokens of {}", view.tokens, limit);
    if (view.awaited > view.tokens) ++report_.awaited;
    const SequenceId id = manager_.Create(scope);
    const AttachedPrefix attached = manager_.Attach(id, prompt, limit);
    for (const BlockCopy& copy : attached.copies) Copy(copy);
    if (attached.tokens > view.tokens) Problem("{} tokens attached, {} found", attached.tokens, view.tokens);
    if (room && manager_.evicted_slots() == 0 && AllFull()) {
      ++report_.exact_checks;
      if (attached.tokens < std::min(limit, findable.surely) || attached.tokens > std::min(limit, findable.perhaps)) {
        Problem("{} tokens attached, {} to {} expected", attached.tokens, findable.surely, findable.perhaps);
      }
    }
    report_.attached_tokens += attached.tokens;
    if (!attached.copies.empty()) ++report_.partial_copies;
    if (attached.tokens > 0 && attached.tokens + 1 == prompt.size()) ++report_.whole_hits;
    runs_.push_back({id, salt, prompt, attached.tokens, prompt.size()});
    known_.push_back({salt, prompt, 0});
    if (known_.size() > 200) known_.erase(known_.begin(), known_.begin() + 50);
    CheckWords(runs_.back());
  }

  bool AllFull() const {
    return std::ranges::all_of(run_.geometry.windows, [](uint32_t window) { return window == 0; });
  }

  // Where nothing was evicted: the most that an earlier or running sequence left for these tokens. A running one's
  // unfilled block can be found if it was the first to say that it would write it.
  struct Findable {
    uint64_t surely = 0;
    uint64_t perhaps = 0;
  };

  Findable FindableOf(CacheSalt salt, const std::vector<TokenId>& prompt) const {
    Findable best;
    for (const Known& known : ended_) {
      if (known.salt != salt) continue;
      best.surely = std::max(best.surely, std::min<uint64_t>(CommonTokens(known.tokens, prompt), known.published));
    }
    best.perhaps = best.surely;
    for (const Run& run : runs_) {
      if (run.salt != salt) continue;
      const uint64_t common = CommonTokens(run.tokens, prompt),
                     whole = run.length - run.length % run_.geometry.block_tokens;
      const bool open = run.length >= run.prompt && run.prompt > whole;
      best.surely = std::max(best.surely, std::min(common, whole));
      best.perhaps = std::max(best.perhaps, std::min(common, open ? run.prompt : whole));
    }
    return best;
  }

  void ForkOne() {
    const size_t parent = random_.Below(runs_.size());
    if (runs_[parent].length < runs_[parent].prompt) return;
    Run copy = runs_[parent];
    copy.id = manager_.Fork(copy.id);
    runs_.push_back(std::move(copy));
  }

  void FreeOne() {
    const size_t victim = random_.Below(runs_.size());
    const Run& run = runs_[victim];
    const uint64_t whole = run.length - run.length % run_.geometry.block_tokens;
    const PageTableRef pages = manager_.Pages(run.id, 0);
    // A tail that a fork still holds is left to the fork.
    const bool own_tail = run.length > whole && Holders(pages.slots[pages.slot_count - 1]) == 1;
    ended_.push_back({run.salt,
                      {run.tokens.begin(), run.tokens.begin() + static_cast<ptrdiff_t>(run.length)},
                      own_tail ? run.length : whole});
    known_.push_back({run.salt, run.tokens, 0});
    manager_.Free(run.id);
    runs_.erase(runs_.begin() + static_cast<ptrdiff_t>(victim));
  }

  size_t Holders(uint32_t slot) const {
    size_t holders = 0;
    for (const Run& run : runs_) {
      const PageTableRef pages = manager_.Pages(run.id, 0);
      holders += static_cast<size_t>(std::count(pages.slots, pages.slots + pages.slot_count, slot));
    }
    return holders;
  }

  void GrowSome() {
    std::vector<Growth> growth;
    std::vector<size_t> who;
    uint64_t needed = 0;
    for (size_t i = 0; i < runs_.size(); ++i) {
      Run& run = runs_[i];
      if (random_.Below(3) == 0) continue;
      const uint64_t left = run.tokens.size() - run.length;
      uint64_t rows = left == 0 ? 1 : 1 + random_.Below(left);
      if (run.length + rows > run_.max_tokens) continue;
      while (run.tokens.size() < run.length + rows) run.tokens.push_back(AnyToken());
      growth.push_back({run.id, static_cast<uint32_t>(rows), {run.tokens.data() + run.length, rows}});
      who.push_back(i);
      if (who.size() == 1) needed = manager_.SlotsToGrow(run.id, static_cast<uint32_t>(rows));
    }
    const uint64_t available = manager_.available_slots();
    Result<StepReservation> step = manager_.Reserve(growth);
    if (!step.ok()) {
      ++report_.refusals;
      if (growth.size() == 1 && needed <= available) Problem("{} of {} refused", needed, available);
      return;
    }
    for (const BlockCopy& copy : step->copies()) Copy(copy);
    for (const size_t i : who) WriteRows(i, growth);
    for (const size_t i : who) CheckWords(runs_[i]);
    if (random_.Below(6) == 0) {
      ++report_.rollbacks;
      return;
    }
    std::move(*step).Commit();
    for (size_t k = 0; k < who.size(); ++k) runs_[who[k]].length += growth[k].tokens;
  }

  void WriteRows(size_t i, const std::vector<Growth>& growth) {
    Run& run = runs_[i];
    const auto rows = std::ranges::find(growth, run.id, &Growth::sequence)->tokens;
    for (uint32_t group = 0; group < run_.geometry.windows.size(); ++group) {
      for (uint64_t p = run.length; p < run.length + rows; ++p) {
        if (uint64_t* word = WordAt(run.id, group, p)) *word = Mix(HashOf(run, p), group);
      }
    }
  }

  uint64_t HashOf(const Run& run, uint64_t position) const {
    uint64_t hash = 1;
    for (uint64_t p = 0; p <= position; ++p) hash = Mix(hash, run.tokens[p]);
    return hash;
  }

  void Copy(const BlockCopy& copy) {
    const uint32_t block_tokens = run_.geometry.block_tokens;
    std::copy_n(arena_.begin() + static_cast<ptrdiff_t>(uint64_t{copy.from.value} * block_tokens), block_tokens,
                arena_.begin() + static_cast<ptrdiff_t>(uint64_t{copy.to.value} * block_tokens));
  }

  uint64_t* WordAt(SequenceId id, uint32_t group, uint64_t position) {
    const PageTableRef pages = manager_.Pages(id, group);
    const uint64_t block = position / run_.geometry.block_tokens;
    if (block < pages.first_block || block - pages.first_block >= pages.slot_count) {
      Problem("sequence {} group {} lacks block {}", id.value, group, block);
      return nullptr;
    }
    return &arena_[uint64_t{pages.slots[block - pages.first_block]} * run_.geometry.block_tokens +
                   position % run_.geometry.block_tokens];
  }

  // What the next row sees.
  void CheckWords(const Run& run) {
    for (uint32_t group = 0; group < run_.geometry.windows.size(); ++group) {
      const uint64_t window = run_.geometry.windows[group];
      const uint64_t begin = window == 0 || run.length < window ? 0 : run.length - window + 1;
      for (uint64_t p = begin; p < run.length; ++p) {
        const uint64_t* word = WordAt(run.id, group, p);
        if (word == nullptr) return;
        if (*word != Mix(HashOf(run, p), group)) {
          return Problem("sequence {} group {} position {} holds another word", run.id.value, group, p);
        }
      }
    }
  }

  void CheckAll() {
    for (std::string& violation : Violations(manager_.Snapshot())) report_.problems.push_back(std::move(violation));
    for (const Run& run : runs_) {
      if (manager_.Length(run.id) != run.length) Problem("sequence {} length", run.id.value);
      CheckWords(run);
    }
  }

  const PrefixModelRun& run_;
  SplitMix64 random_;
  KvManager manager_;
  std::vector<uint64_t> arena_;  // [slot][token of the block]
  std::vector<Run> runs_;
  std::vector<Known> known_;  // to begin prompts with
  std::vector<Known> ended_;
  PrefixModelReport report_;
};

}  // namespace

PrefixModelReport RunPrefixModel(const PrefixModelRun& run) { return Driver(run).Go(); }

}  // namespace cachalot::kv
