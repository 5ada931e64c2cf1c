#include "text/spelling_index.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace cachalot::text {

SpellingIndex::SpellingIndex(size_t expected) : slots_(std::bit_ceil(std::max<size_t>(expected * 2, 4))) {}

size_t SpellingIndex::SlotOf(std::string_view spelling, uint64_t hash) const {
  const uint64_t mixed = (hash ^ hash >> 32) * kHashBase;
  size_t i = (mixed ^ mixed >> 32) & (slots_.size() - 1);
  while (slots_[i].data != nullptr &&
         (slots_[i].hash != hash || std::string_view(slots_[i].data, slots_[i].size) != spelling))
    i = (i + 1) & (slots_.size() - 1);
  return i;
}

void SpellingIndex::Grow() {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  for (const Slot& slot : old)
    if (slot.data != nullptr) slots_[SlotOf({slot.data, slot.size}, slot.hash)] = slot;
}

bool SpellingIndex::Add(std::string_view spelling, TokenId id) {
  if ((size_ + 1) * 2 > slots_.size()) Grow();
  const uint64_t hash = Hash(spelling);
  Slot& slot = slots_[SlotOf(spelling, hash)];
  if (slot.data != nullptr) return false;
  slot = {spelling.data(), static_cast<uint32_t>(spelling.size()), id, hash};
  ++size_;
  return true;
}

std::optional<TokenId> SpellingIndex::Find(std::string_view spelling, uint64_t hash) const {
  const Slot& slot = slots_[SlotOf(spelling, hash)];
  return slot.data == nullptr ? std::nullopt : std::optional(slot.id);
}

}  // namespace cachalot::text
