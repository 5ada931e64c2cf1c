#include "kv/testing/prefix_model.h"

#include <algorithm>
#include <memory>
#include <numeric>
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
  bool scrub = false;
  // Of a load, 0 where there is none: it brings the tokens before load_end, from block load_low on.
  uint64_t load_end = 0;
  uint64_t load_low = 0;
  std::vector<LoadCell> cells;  // not filled yet
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

// A word per token, and one of padding.
KvLayout LayoutOf(const KvGeometry& geometry) {
  KvLayout layout;
  layout.slot_bytes = (geometry.block_tokens + 1) * sizeof(uint64_t);
  for (const uint32_t window : geometry.windows) {
    layout.groups.push_back({.window = window, .used_bytes = geometry.block_tokens * sizeof(uint64_t)});
  }
  return layout;
}

class Driver {
 public:
  explicit Driver(const PrefixModelRun& run)
      : run_(run),
        random_(run.seed),
        manager_(run.geometry, PolicyOf(run), nullptr, true),
        layout_(LayoutOf(run.geometry)),
        arena_(uint64_t{run.geometry.slots} * run.geometry.block_tokens, 0),
        counted_(arena_.size(), 0),
        secret_(run.geometry.slots, false) {}

  PrefixModelReport Go() && {
    for (uint64_t i = 0; i < run_.operations && report_.problems.empty(); ++i) {
      manager_.SetNow(Nanos(i * 10'000'000));
      if (run_.hints) manager_.EvictExpired(static_cast<uint32_t>(random_.Below(4)));
      Operation();
      Scrub();
      WatchSome();
      CheckAll();
      CheckWatches();
    }
    while (!holds_.empty()) ReleaseOne();
    while (!runs_.empty() && report_.problems.empty()) {
      FreeOne();
      Scrub();
      CheckAll();
    }
    if (manager_.available_slots() != run_.geometry.slots) Problem("{} slots left", manager_.available_slots());
    report_.evicted_slots = manager_.evicted_slots();
    report_.expired_slots = manager_.expired_slots();
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
    } else if (run_.loads && dice < 46) {
      for (uint64_t moves = 1 + random_.Below(8); moves > 0; --moves) MoveOneLoad();
    } else if (run_.hints && dice < 30) {
      holds_.size() < 2 ? HoldOne() : ReleaseOne();
    } else if (run_.hints && dice == 30 && random_.Below(4) == 0) {
      manager_.EvictAllIdle();
    } else {
      GrowSome();
    }
  }

  RetentionHints AnyHints() {
    if (!run_.hints) return {};
    RetentionHints hints{.priority = static_cast<RetentionPriority>(random_.Below(3)), .scrub = random_.Below(3) == 0};
    if (random_.Below(2) == 0) hints.ttl = Nanos(10'000'000 * random_.Below(60));
    return hints;
  }

  void HoldOne() {
    const CacheSalt salt{0, random_.Below(run_.salts)};
    const std::vector<TokenId> tokens = AnyPrompt();
    const SequenceId id = manager_.Hold({salt, 0}, tokens, tokens.size());
    holds_.push_back({id, salt, tokens, manager_.Length(id), 0});
    report_.held_tokens += holds_.back().length;
  }

  void ReleaseOne() {
    manager_.Free(holds_.back().id);
    holds_.pop_back();
  }

  // Overwrites what is to be, and notes what will have to be.
  void Scrub() {
    const uint32_t block_tokens = run_.geometry.block_tokens;
    for (const SlotId slot : manager_.TakeToScrub()) {
      std::fill_n(arena_.begin() + static_cast<ptrdiff_t>(uint64_t{slot.value} * block_tokens), block_tokens, 0);
      secret_[slot.value] = false;
      ++report_.scrubbed_slots;
    }
    for (const Run& run : runs_) {
      for (uint32_t group = 0; run.scrub && group < run_.geometry.windows.size(); ++group) {
        const PageTableRef pages = manager_.Pages(run.id, group);
        for (uint32_t i = 0; i < pages.slot_count; ++i) secret_[pages.slots[i]] = true;
      }
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
    const RetentionHints hints = AnyHints();
    const SequenceId id = manager_.Create(scope, hints);
    const AttachedPrefix attached = manager_.Attach(id, prompt, limit);
    Scrub();
    for (const BlockCopy& copy : attached.copies) Copy(copy);
    if (attached.tokens > view.tokens) Problem("{} tokens attached, {} found", attached.tokens, view.tokens);
    if (room && manager_.evicted_slots() == 0 && AllFull()) {
      ++report_.exact_checks;
      if (attached.tokens < std::min(limit, findable.surely) || attached.tokens > std::min(limit, findable.perhaps)) {
        Problem("{} tokens attached, {} to {} expected", attached.tokens, findable.surely, findable.perhaps);
      }
    }
    CheckAccount(attached, prompt.size(), room);
    report_.attached_tokens += attached.tokens;
    if (!attached.copies.empty()) ++report_.partial_copies;
    if (attached.tokens > 0 && attached.tokens + 1 == prompt.size()) ++report_.whole_hits;
    runs_.push_back({id, salt, prompt, attached.tokens, prompt.size(), hints.scrub});
    if (run_.loads && random_.Below(2) == 0) BeginLoad(runs_.back());
    known_.push_back({salt, prompt, 0});
    if (known_.size() > 200) known_.erase(known_.begin(), known_.begin() + 50);
    CheckWords(runs_.back());
  }

  void BeginLoad(Run& run) {
    const uint64_t left = run.tokens.size() - 1 - run.length;
    if (left == 0) return;
    run.load_end = run.length + 1 + random_.Below(left);
    run.load_low = BlocksFor(run.load_end, run_.geometry.block_tokens);
    manager_.BeginLoad(run.id, run.load_end);
  }

  // Claims more of it, gives some of it up, fills a cell or, once both sides touch and all are filled, ends it.
  void MoveOneLoad() {
    std::vector<Run*> loading;
    for (Run& run : runs_) {
      if (run.load_end > 0) loading.push_back(&run);
    }
    if (loading.empty()) return;
    Run& run = *loading[random_.Below(loading.size())];
    const uint64_t block_tokens = run_.geometry.block_tokens, front = BlocksFor(run.length, run_.geometry.block_tokens);
    const uint64_t low_token = std::min(run.load_low * block_tokens, run.load_end);
    if (run.length == low_token && run.cells.empty()) return EndLoad(run, low_token);
    const uint64_t dice = random_.Below(10);
    if (dice < 5 && run.load_low > front) {
      Claim(run, run.load_low - 1 - random_.Below(run.load_low - front));
    } else if (dice == 5) {
      run.load_low += random_.Below(BlocksFor(run.load_end, run_.geometry.block_tokens) - run.load_low + 1);
      manager_.DropLoad(run.id, run.load_low);
      std::erase_if(run.cells, [&](const LoadCell& cell) { return cell.block < run.load_low; });
    } else {
      while (!run.cells.empty() && random_.Below(6) > 0) Fill(run);
    }
  }

  void Claim(Run& run, uint64_t first) {
    const std::optional<std::vector<LoadCell>> cells = manager_.ClaimLoad(run.id, first);
    Scrub();
    if (!cells) {
      ++report_.refusals;
      return;
    }
    run.load_low = first;
    for (const LoadCell& cell : *cells) {
      run.cells.push_back(cell);
      if (run.scrub) secret_[cell.slot.value] = true;
    }
  }

  void Fill(Run& run) {
    const size_t at = random_.Below(run.cells.size());
    const LoadCell cell = run.cells[at];
    run.cells.erase(run.cells.begin() + static_cast<ptrdiff_t>(at));
    const uint64_t block_tokens = run_.geometry.block_tokens, begin = cell.block * block_tokens;
    for (uint64_t i = 0; i < std::min(block_tokens, run.load_end - begin); ++i) {
      arena_[cell.slot.value * block_tokens + i] = Mix(HashOf(run, begin + i), cell.group);
    }
  }

  void EndLoad(Run& run, uint64_t from) {
    manager_.EndLoad(run.id, std::span(run.tokens).subspan(from, run.load_end - from));
    report_.loaded_tokens += run.load_end - from;
    report_.met += from > 0 && from < run.load_end;
    run.length = std::exchange(run.load_end, 0);
  }

  void CheckAccount(const AttachedPrefix& attached, uint64_t prompt, bool room) {
    const HitAccount& account = attached.account;
    const uint64_t sum = std::accumulate(account.tokens.begin(), account.tokens.end(), uint64_t{0});
    if (sum != prompt) Problem("{} tokens accounted for, {} asked for", sum, prompt);
    const uint64_t hit = account[TokenClass::kShared] + account[TokenClass::kOwn];
    if (hit != attached.tokens) Problem("{} tokens accounted for as found, {} were", hit, attached.tokens);
    if (!run_.hints && account[TokenClass::kExpired] + account[TokenClass::kCleared] + account[TokenClass::kOff] > 0) {
      Problem("tokens are accounted for as lost in ways that there are not");
    }
    if (manager_.evicted_slots() > 0) return;
    if (account.refault_tokens > 0) Problem("{} refaults though nothing was evicted", account.refault_tokens);
    if (room && AllFull() && account[TokenClass::kGranularity] > 0) Problem("what is there was not found");
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
    if (runs_[parent].length < runs_[parent].prompt || runs_[parent].load_end > 0) return;
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
      const uint64_t low = std::min(run.load_low * run_.geometry.block_tokens, run.load_end);
      const uint64_t left = (run.load_end > 0 ? low : run.tokens.size()) - run.length;
      if (left == 0 && run.load_end > 0) continue;
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
    Scrub();
    for (const BlockCopy& copy : step->copies()) Copy(copy);
    for (const size_t i : who) WriteRows(i, growth);
    for (const size_t i : who) CheckWords(runs_[i]);
    CheckLedger();
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

  // Of prompts that wait, which are looked at after every operation.
  void WatchSome() {
    if (random_.Below(8) == 0 && !watched_.empty()) watched_.erase(watched_.begin());
    if (random_.Below(4) != 0 || watched_.size() >= 12) return;
    std::vector<TokenId> prompt = AnyPrompt();
    const uint64_t limit = random_.Below(10) == 0 ? 0 : prompt.size() - 1;
    const PrefixScope scope{{0, random_.Below(run_.salts)}, random_.Below(3) * run_.geometry.block_tokens};
    auto watched = std::make_unique<Watched>(Watched{scope, std::move(prompt), limit, nullptr});
    watched->watch = std::make_unique<PrefixWatch>(scope, watched->prompt, limit);
    manager_.Watch(*watched->watch);
    watched_.push_back(std::move(watched));
  }

  void CheckWatches() {
    for (const auto& w : watched_) {
      const uint64_t found = manager_.Find(w->scope, w->prompt, w->limit).full_tokens;
      if (w->watch->tokens() != found) Problem("{} tokens watched, {} found", w->watch->tokens(), found);
      if (found > 0) ++report_.watched_hits;
    }
  }

  // Those that the sequence may still read and that were not counted this time.
  uint64_t CountWords(const Run& run) {
    uint64_t words = 0;
    const uint64_t length = run.length;
    for (uint32_t group = 0; group < run_.geometry.windows.size(); ++group) {
      const uint64_t window = run_.geometry.windows[group];
      const uint64_t first = window == 0 || length < window ? 0 : length - window + 1;
      for (uint64_t p = first; p < length; ++p) {
        const uint64_t* word = WordAt(run.id, group, p);
        if (word == nullptr) return words;
        words += std::exchange(counted_[static_cast<size_t>(word - arena_.data())], counts_) != counts_;
      }
      const uint64_t seen = window == 0 || run.load_end < window ? 0 : run.load_end - window + 1;
      const uint64_t from = std::max(seen, std::min(run.load_low * run_.geometry.block_tokens, run.load_end));
      words += run.load_end - from;
    }
    return words;
  }

  // The words that some sequence may still read are counted one by one.
  void CheckLedger() {
    const KvLedger ledger = manager_.Ledger(layout_);
    if (ledger.Sum() != ledger.total_bytes || ledger.total_bytes != run_.geometry.slots * layout_.slot_bytes) {
      Problem("the ledger has {} of {} bytes", ledger.Sum(), ledger.total_bytes);
    }
    ++counts_;
    uint64_t live = 0;
    for (const std::vector<Run>* runs : {&runs_, &holds_}) {
      for (const Run& run : *runs) live += CountWords(run);
    }
    const uint64_t held = ledger.live_bytes + ledger.transit_bytes;
    if (held != live * sizeof(uint64_t)) Problem("{} live bytes, {} words", held, live);
  }

  void CheckAll() {
    for (const SlotId slot : manager_.Snapshot().free) {
      if (secret_[slot.value]) Problem("slot {} is free and was not scrubbed", slot.value);
    }
    for (const Run& hold : holds_) {
      if (hold.length % run_.geometry.block_tokens != 0) Problem("{} tokens are held", hold.length);
      CheckWords(hold);
    }
    for (std::string& violation : Violations(manager_.Snapshot())) report_.problems.push_back(std::move(violation));
    CheckLedger();
    for (const Run& run : runs_) {
      if (manager_.Length(run.id) != run.length) Problem("sequence {} length", run.id.value);
      CheckWords(run);
    }
  }

  const PrefixModelRun& run_;
  SplitMix64 random_;
  KvManager manager_;
  const KvLayout layout_;
  std::vector<uint64_t> arena_;    // [slot][token of the block]
  std::vector<uint64_t> counted_;  // by word: in which of CheckLedger's counts
  uint64_t counts_ = 0;
  std::vector<Run> runs_;
  std::vector<Known> known_;  // to begin prompts with
  std::vector<Known> ended_;
  std::vector<Run> holds_;
  std::vector<bool> secret_;  // by slot: a run that wishes it scrubbed has had it
  struct Watched {
    PrefixScope scope;
    std::vector<TokenId> prompt;
    uint64_t limit;
    std::unique_ptr<PrefixWatch> watch;
  };
  std::vector<std::unique_ptr<Watched>> watched_;
  PrefixModelReport report_;
};

}  // namespace

PrefixModelReport RunPrefixModel(const PrefixModelRun& run) { return Driver(run).Go(); }

}  // namespace cachalot::kv
