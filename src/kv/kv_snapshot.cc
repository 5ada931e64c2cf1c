#include "kv/kv_snapshot.h"

#include <optional>

#include <fmt/format.h>

namespace cachalot::kv {
namespace {

class Inspection {
 public:
  explicit Inspection(const KvSnapshot& snapshot)
      : snapshot_(snapshot),
        entries_(snapshot.geometry.slots, 0),
        content_(snapshot.geometry.slots),
        growing_(snapshot.geometry.slots, 0) {}

  std::vector<std::string> Run() && {
    if (snapshot_.references.size() != snapshot_.geometry.slots) {
      return {fmt::format("{} reference counts for {} slots", snapshot_.references.size(), snapshot_.geometry.slots)};
    }
    for (size_t i = 0; i < snapshot_.sequences.size(); ++i) {
      if (i > 0 && snapshot_.sequences[i - 1].id >= snapshot_.sequences[i].id) {
        Add("sequence {} is listed after sequence {}", snapshot_.sequences[i].id.value,
            snapshot_.sequences[i - 1].id.value);
      }
      InspectSequence(snapshot_.sequences[i]);
    }
    InspectSlots();
    InspectReserved();
    return std::move(problems_);
  }

 private:
  struct Content {
    size_t group;
    uint64_t block;
    bool operator==(const Content&) const = default;
  };

  template <class... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  bool Known(SlotId slot, const char* where) {
    if (slot.value < snapshot_.geometry.slots) return true;
    Add("{} names slot {} of {}", where, slot.value, snapshot_.geometry.slots);
    return false;
  }

  void InspectSequence(const KvSnapshot::Sequence& sequence) {
    const std::vector<uint32_t>& windows = snapshot_.geometry.windows;
    if (sequence.tables.size() != windows.size()) {
      Add("sequence {} has {} page tables for {} layer groups", sequence.id.value, sequence.tables.size(),
          windows.size());
      return;
    }
    const uint32_t block_tokens = snapshot_.geometry.block_tokens;
    const uint64_t end = BlocksFor(sequence.length + sequence.reserved_tokens, block_tokens);
    for (size_t group = 0; group < windows.size(); ++group) {
      const KvSnapshot::Table& table = sequence.tables[group];
      const uint64_t begin = FirstBlockKept(windows[group], sequence.length, block_tokens);
      if (table.first_block != begin || table.first_block + table.slots.size() != end) {
        Add("sequence {} group {} holds blocks {} to {}; length {}, {} reserved and window {} call for {} to {}",
            sequence.id.value, group, table.first_block, table.first_block + table.slots.size(), sequence.length,
            sequence.reserved_tokens, windows[group], begin, end);
      }
      InspectTable(sequence, group);
    }
  }

  void InspectTable(const KvSnapshot::Sequence& sequence, size_t group) {
    const KvSnapshot::Table& table = sequence.tables[group];
    for (size_t i = 0; i < table.slots.size(); ++i) {
      const SlotId slot = table.slots[i];
      if (!Known(slot, "a page table")) continue;
      ++entries_[slot.value];
      growing_[slot.value] |= sequence.reserved_tokens > 0;
      const Content content{group, table.first_block + i};
      if (content_[slot.value] && content_[slot.value] != content) {
        Add("slot {} is block {} of group {} and block {} of group {}", slot.value, content_[slot.value]->block,
            content_[slot.value]->group, content.block, group);
      }
      content_[slot.value] = content;
      const bool written =
          sequence.reserved_tokens > 0 && content.block >= sequence.length / snapshot_.geometry.block_tokens;
      if (written && snapshot_.references[slot.value] > 1) {
        Add("sequence {} is about to write slot {}, which has {} references", sequence.id.value, slot.value,
            snapshot_.references[slot.value]);
      }
    }
  }

  void InspectSlots() {
    std::vector<uint32_t> free(snapshot_.geometry.slots, 0);
    for (const SlotId slot : snapshot_.free) {
      if (Known(slot, "the free list")) ++free[slot.value];
    }
    for (uint32_t slot = 0; slot < snapshot_.geometry.slots; ++slot) {
      const uint32_t references = snapshot_.references[slot];
      if (references != entries_[slot]) {
        Add("slot {} has {} references; {} page-table entries name it", slot, references, entries_[slot]);
      }
      if (free[slot] > 1) Add("slot {} is on the free list {} times", slot, free[slot]);
      if (free[slot] > 0 && references > 0) Add("slot {} is free and has {} references", slot, references);
      if (free[slot] == 0 && references == 0) Add("slot {} is neither free nor referenced", slot);
    }
  }

  void InspectReserved() {
    std::vector<uint8_t> seen(snapshot_.geometry.slots, 0);
    for (const SlotId slot : snapshot_.reserved) {
      if (!Known(slot, "the reservation")) continue;
      if (seen[slot.value]++) Add("slot {} is reserved twice", slot.value);
      if (snapshot_.references[slot.value] != 1 || !growing_[slot.value]) {
        Add("reserved slot {} has {} references{}", slot.value, snapshot_.references[slot.value],
            growing_[slot.value] ? "" : " and no growing sequence");
      }
    }
  }

  const KvSnapshot& snapshot_;
  std::vector<uint32_t> entries_;                // page-table entries that name the slot
  std::vector<std::optional<Content>> content_;  // what they say it holds
  std::vector<uint8_t> growing_;                 // whether a sequence with a reservation names it
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> Violations(const KvSnapshot& snapshot) { return Inspection(snapshot).Run(); }

}  // namespace cachalot::kv
