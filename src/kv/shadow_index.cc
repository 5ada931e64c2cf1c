#include "kv/shadow_index.h"

#include <algorithm>

#include "base/check.h"

namespace cachalot::kv {
namespace {

constexpr uint64_t kRememberedPools = 8;
constexpr uint64_t kLeastRemembered = 65536;
constexpr size_t kFirstPlaces = 1024;  // a power of two

uint64_t RememberedBlocks(const KvGeometry& geometry) {
  const uint64_t slots_per_block = std::max<uint64_t>(1, FullPart(geometry).windows.size());
  return std::max(kLeastRemembered, kRememberedPools * geometry.slots / slots_per_block);
}

}  // namespace

ShadowIndex::ShadowIndex(const KvGeometry& geometry) : ShadowIndex(geometry, RememberedBlocks(geometry)) {}

ShadowIndex::ShadowIndex(const KvGeometry& geometry, uint64_t remembered_blocks)
    : geometry_(geometry), limit_(remembered_blocks), stack_(kFirstPlaces, kNone), sums_(kFirstPlaces + 1, 0) {
  CACHALOT_CHECK(remembered_blocks > 0 && remembered_blocks < kNone);
}

ShadowVisit ShadowIndex::Arrive(const PrefixScope& scope, std::span<const TokenId> prompt, ShadowSight* sight) {
  FindPath(scope, prompt);
  ListLost();
  *sight = {.seen_tokens = path_.size() * geometry_.block_tokens, .lost = lost_};
  MeasureHits(sight);
  CompareTurns(prompt, sight);
  sight->others_tokens = OthersTokens();

  const ShadowVisit id = MakeVisit();
  visits_[id].prompt_tokens = prompt.size();
  visits_[id].prompt_content = ContentAt(prompt, prompt.size());
  TakePath(id);
  return id;
}

// What is remembered of the prompt, by those that hold it; and the contents of all of it.
void ShadowIndex::FindPath(const PrefixScope& scope, std::span<const TokenId> prompt) {
  const uint64_t block_tokens = geometry_.block_tokens;
  contents_at_.clear();
  path_.clear();
  runs_.clear();
  BlockChain chain;
  bool known = true;
  for (uint64_t end = block_tokens; end <= prompt.size(); end += block_tokens) {
    const std::span<const TokenId> tokens = prompt.subspan(end - block_tokens, block_tokens);
    chain.content = ExtendContent(chain.content, tokens);
    contents_at_.push_back(chain.content);
    if (!known) continue;
    chain.owned = ExtendOwned(chain.owned, chain.content, SaltAt(scope, end));
    const uint32_t* const found = blocks_of_.Find(chain.owned);
    known = found != nullptr && JoinRun(*found);
  }
}

// False when the block does not continue the path: two hashes are equal that should not be.
bool ShadowIndex::JoinRun(uint32_t at) {
  const Block& block = blocks_[at];
  const auto number = static_cast<uint32_t>(path_.size());
  if (block.number != number) return false;
  if (runs_.empty() || runs_.back().visit != block.visit) {
    const Visit& visit = visits_[block.visit];
    if (visit.first != number) return false;
    runs_.push_back({block.visit, number, number, SlotsAbove(visit.place)});
  }
  runs_.back().end = number + 1;
  path_.push_back(at);
  return true;
}

// The most blocks, up to `blocks`, that so many slots hold.
uint32_t ShadowIndex::BlocksWithin(uint64_t slots, uint32_t blocks) const {
  if (SlotsOf(blocks) <= slots) return blocks;
  uint32_t fits = 0, too_many = blocks;
  while (fits + 1 < too_many) {
    const uint32_t middle = fits + (too_many - fits) / 2;
    (SlotsOf(middle) <= slots ? fits : too_many) = middle;
  }
  return fits;
}

void ShadowIndex::MeasureHits(ShadowSight* sight) const {
  for (size_t cache = 0; cache < kShadowSizes.size(); ++cache) {
    const auto size = static_cast<uint64_t>(kShadowSizes[cache] * geometry_.slots);
    for (const Run& run : runs_) {
      const uint32_t blocks = run.above > size ? 0 : BlocksWithin(size - run.above, run.end - run.begin);
      sight->hit_tokens[cache] += uint64_t{blocks} * geometry_.block_tokens;
      if (blocks < run.end - run.begin) break;
    }
  }
  sight->hit_tokens.back() = sight->seen_tokens;
}

void ShadowIndex::ListLost() {
  lost_.clear();
  uint64_t distance = 0;
  for (const Run& run : runs_) {
    for (uint32_t i = run.begin; i < run.end; ++i) {
      const Loss loss = blocks_[path_[i]].loss;
      if (loss == Loss::kNone) continue;
      const uint64_t begin = uint64_t{i} * geometry_.block_tokens;
      if (lost_.empty() || lost_.back().loss != loss || lost_.back().end != begin)
        lost_.push_back({begin, begin, loss});
      lost_.back().end = begin + geometry_.block_tokens;
      distance = std::max(distance, run.above + SlotsOf(i + 1 - run.begin));
      lost_.back().distance = distance;
    }
  }
}

// Of the prompt's first tokens, which need not end with a block.
uint64_t ShadowIndex::ContentAt(std::span<const TokenId> prompt, uint64_t tokens) const {
  const uint64_t whole = tokens / geometry_.block_tokens, rest = tokens % geometry_.block_tokens;
  const uint64_t content = whole == 0 ? 0 : contents_at_[whole - 1];
  return rest == 0 ? content : ExtendContent(content, prompt.subspan(tokens - rest, rest));
}

// Whether the visit that holds the last block known is an earlier turn: one whose whole prompt this one goes on from.
void ShadowIndex::CompareTurns(std::span<const TokenId> prompt, ShadowSight* sight) const {
  sight->own_from = sight->seen_tokens;
  if (runs_.empty()) return;
  const Visit& last = visits_[runs_.back().visit];
  if (last.prompt_tokens >= prompt.size() || ContentAt(prompt, last.prompt_tokens) != last.prompt_content) return;
  sight->own_from = uint64_t{runs_.back().begin} * geometry_.block_tokens;
  const bool answered = last.tokens > last.prompt_tokens;
  const bool repeated = last.tokens <= prompt.size() ? ContentAt(prompt, last.tokens) == last.content
                                                     : path_.size() == contents_at_.size();
  if (answered && !repeated) sight->rendered_differently_to = std::min<uint64_t>(last.tokens, prompt.size());
}

uint64_t ShadowIndex::OthersTokens() {
  size_t blocks = path_.size();
  while (blocks < contents_at_.size() && contents_.Find(contents_at_[blocks]) != nullptr) ++blocks;
  return blocks * geometry_.block_tokens;
}

void ShadowIndex::TakePath(ShadowVisit id) {
  for (const Run& run : runs_) {
    Visit& from = visits_[run.visit];
    Resize(from, run.end, from.count - (run.end - run.begin));
    DropIfUnused(run.visit);
  }
  Visit& visit = visits_[id];
  for (const uint32_t at : path_) {
    blocks_[at].visit = id;
    blocks_[at].previous = visit.tail;
    visit.tail = at;
  }
  Resize(visit, 0, static_cast<uint32_t>(path_.size()));
}

ShadowVisit ShadowIndex::Fork(ShadowVisit from, uint64_t tokens) {
  const ShadowVisit id = MakeVisit();
  visits_[id].first = static_cast<uint32_t>(tokens / geometry_.block_tokens);
  visits_[id].prompt_tokens = visits_[from].prompt_tokens;
  visits_[id].prompt_content = visits_[from].prompt_content;
  return id;
}

void ShadowIndex::Seal(ShadowVisit id, uint32_t number, const BlockChain& chain) {
  Visit& visit = visits_[id];
  if (visit.count == 0) visit.first = number;
  const bool follows = !visit.cut && number == visit.first + visit.count;  // else its chain goes on elsewhere
  uint32_t at = kNone;
  if (const uint32_t* const found = blocks_of_.Find(chain.owned)) {
    at = *found;
    blocks_[at].loss = Loss::kNone;
    const ShadowVisit holder = blocks_[at].visit;
    Visit& from = visits_[holder];
    if (!follows || from.place >= visit.place || from.first != number) return;
    Resize(from, number + 1, from.count - 1);
    DropIfUnused(holder);
  } else if (follows) {
    at = Remember(chain);
  } else {
    return;
  }
  Block& block = blocks_[at];
  block.number = number;
  block.visit = id;
  block.previous = visit.tail;
  visit.tail = at;
  Resize(visit, visit.first, visit.count + 1);
  if (blocks() > limit_) ForgetOldest();
}

uint32_t ShadowIndex::Remember(const BlockChain& chain) {
  uint32_t at = static_cast<uint32_t>(blocks_.size());
  if (spare_blocks_.empty()) {
    blocks_.emplace_back();
  } else {
    at = spare_blocks_.back();
    spare_blocks_.pop_back();
  }
  blocks_[at] = {.chain = chain};
  blocks_of_.Insert(chain.owned, at);
  if (uint32_t* const count = contents_.Find(chain.content)) {
    ++*count;
  } else {
    contents_.Insert(chain.content, 1);
  }
  return at;
}

void ShadowIndex::End(ShadowVisit id, uint64_t tokens, uint64_t content) {
  Visit& visit = visits_[id];
  CACHALOT_CHECK(visit.open);
  visit.open = false;
  visit.tokens = tokens;
  visit.content = content;
  DropIfUnused(id);
}

void ShadowIndex::OnEvicted(const BlockChain& chain, Loss loss) {
  if (const uint32_t* found = blocks_of_.Find(chain.owned)) blocks_[*found].loss = loss;
}

// The stack.

ShadowVisit ShadowIndex::MakeVisit() {
  if (next_place_ == stack_.size()) Renumber();
  ShadowVisit id = static_cast<ShadowVisit>(visits_.size());
  if (spare_visits_.empty()) {
    visits_.emplace_back();
  } else {
    id = spare_visits_.back();
    spare_visits_.pop_back();
  }
  visits_[id] = {.place = next_place_, .open = true};
  stack_[next_place_++] = id;
  return id;
}

void ShadowIndex::Resize(Visit& visit, uint32_t first, uint32_t count) {
  const uint64_t before = SlotsOf(visit.count), now = SlotsOf(count);
  visit.first = first;
  visit.count = count;
  slots_ += now - before;
  AddAt(visit.place, now - before);  // modulo 2^64, as sums are
  if (count > 0) oldest_ = std::min(oldest_, visit.place);
}

// The last block of the oldest request that holds any.
void ShadowIndex::ForgetOldest() {
  while (stack_[oldest_] == kNone || visits_[stack_[oldest_]].count == 0) ++oldest_;
  const ShadowVisit id = stack_[oldest_];
  Visit& visit = visits_[id];
  const uint32_t at = visit.tail;
  const Block& block = blocks_[at];
  blocks_of_.Erase(block.chain.owned);
  if (--*contents_.Find(block.chain.content) == 0) contents_.Erase(block.chain.content);
  spare_blocks_.push_back(at);
  visit.tail = block.previous;
  visit.cut = true;
  Resize(visit, visit.first, visit.count - 1);
  DropIfUnused(id);
}

void ShadowIndex::DropIfUnused(ShadowVisit id) {
  Visit& visit = visits_[id];
  if (visit.open || visit.count > 0) return;
  stack_[visit.place] = kNone;
  spare_visits_.push_back(id);
}

void ShadowIndex::AddAt(uint64_t place, uint64_t slots) {
  for (uint64_t i = place + 1; i < sums_.size(); i += i & -i) sums_[i] += slots;
}

uint64_t ShadowIndex::SlotsAbove(uint64_t place) const {
  uint64_t up_to = 0;
  for (uint64_t i = place + 1; i > 0; i -= i & -i) up_to += sums_[i];
  return slots_ - up_to;
}

// Closes the gaps in the stack; makes it larger if that leaves too little.
void ShadowIndex::Renumber() {
  uint64_t places = 0;
  for (const uint32_t id : stack_) {
    if (id == kNone) continue;
    visits_[id].place = places;
    stack_[places++] = id;
  }
  if (2 * places > stack_.size()) stack_.resize(2 * stack_.size());
  std::fill(stack_.begin() + static_cast<ptrdiff_t>(places), stack_.end(), kNone);
  sums_.assign(stack_.size() + 1, 0);
  for (uint64_t place = 0; place < places; ++place) AddAt(place, SlotsOf(visits_[stack_[place]].count));
  next_place_ = places;
  oldest_ = 0;
}

}  // namespace cachalot::kv
