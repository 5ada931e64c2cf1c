#include "kv/kv_snapshot.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "kv/kv_state.h"

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
    if (snapshot_.references.size() != snapshot_.geometry.slots ||
        snapshot_.transfers.slots().size() != snapshot_.geometry.slots) {
      return {fmt::format("{} reference counts and {} states for {} slots", snapshot_.references.size(),
                          snapshot_.transfers.slots().size(), snapshot_.geometry.slots)};
    }
    for (size_t i = 0; i < snapshot_.sequences.size(); ++i) {
      if (i > 0 && snapshot_.sequences[i - 1].id >= snapshot_.sequences[i].id) {
        Add("sequence {} is listed after sequence {}", snapshot_.sequences[i].id.value,
            snapshot_.sequences[i - 1].id.value);
      }
      InspectSequence(snapshot_.sequences[i]);
    }
    InspectNodes();
    InspectSlots();
    InspectReserved();
    InspectIdle();
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
    const uint64_t length = sequence.length;
    const uint64_t end = BlocksFor(length + sequence.reserved_tokens, block_tokens);
    for (size_t group = 0; group < windows.size(); ++group) {
      const KvSnapshot::Table& table = sequence.tables[group];
      const uint64_t begin = FirstBlockKept(windows[group], length, block_tokens);
      if (table.first_block != begin || table.first_block + table.slots.size() != end) {
        Add("sequence {} group {} holds blocks {} to {}; length {}, {} reserved and window {} call for {} to {}",
            sequence.id.value, group, table.first_block, table.first_block + table.slots.size(), sequence.length,
            sequence.reserved_tokens, windows[group], begin, end);
      }
      InspectTable(sequence, group);
    }
    if (sequence.load_end > 0) InspectAbove(sequence);
  }

  void InspectAbove(const KvSnapshot::Sequence& sequence) {
    const KvGeometry& geometry = snapshot_.geometry;
    const uint64_t end = BlocksFor(sequence.load_end, geometry.block_tokens);
    if (BlocksFor(sequence.length + sequence.reserved_tokens, geometry.block_tokens) > sequence.load_low) {
      Add("sequence {} has {} tokens, {} reserved, and loads from block {} on", sequence.id.value, sequence.length,
          sequence.reserved_tokens, sequence.load_low);
    }
    for (size_t group = 0; group < sequence.above.size(); ++group) {
      const KvSnapshot::Table& table = sequence.above[group];
      const uint64_t kept = FirstBlockKept(geometry.windows[group], sequence.load_end, geometry.block_tokens);
      const uint64_t begin = std::clamp<uint64_t>(kept, sequence.load_low, end);
      if (table.slots.size() != end - begin || (begin < end && table.first_block != begin)) {
        Add("sequence {} group {} loads {} blocks from {} on; {} to {} are called for", sequence.id.value, group,
            table.slots.size(), table.first_block, begin, end);
      }
      for (size_t i = 0; i < table.slots.size(); ++i) {
        if (!Known(table.slots[i], "a load")) continue;
        NoteContent(table.slots[i], {group, table.first_block + i});
        if (snapshot_.references[table.slots[i].value] > 1) {
          Add("sequence {} loads into slot {}, which has {} references", sequence.id.value, table.slots[i].value,
              snapshot_.references[table.slots[i].value]);
        }
      }
    }
  }

  void NoteContent(SlotId slot, const Content& content) {
    ++entries_[slot.value];
    if (content_[slot.value] && content_[slot.value] != content) {
      Add("slot {} is block {} of group {} and block {} of group {}", slot.value, content_[slot.value]->block,
          content_[slot.value]->group, content.block, content.group);
    }
    content_[slot.value] = content;
  }

  void InspectTable(const KvSnapshot::Sequence& sequence, size_t group) {
    const KvSnapshot::Table& table = sequence.tables[group];
    for (size_t i = 0; i < table.slots.size(); ++i) {
      const SlotId slot = table.slots[i];
      if (!Known(slot, "a page table")) continue;
      growing_[slot.value] |= sequence.reserved_tokens > 0;
      const Content content{group, table.first_block + i};
      NoteContent(slot, content);
      const bool written =
          sequence.reserved_tokens > 0 && content.block >= sequence.length / snapshot_.geometry.block_tokens;
      if (written && snapshot_.references[slot.value] > 1) {
        Add("sequence {} is about to write slot {}, which has {} references", sequence.id.value, slot.value,
            snapshot_.references[slot.value]);
      }
    }
  }

  bool Listed(const KvSnapshot::Node& node) const {
    return std::ranges::any_of(node.slots, [](uint32_t slot) { return slot != kNoSlot; });
  }

  void InspectNodes() {
    for (size_t i = 0; i < snapshot_.nodes.size(); ++i) {
      const KvSnapshot::Node& node = snapshot_.nodes[i];
      if (node.id >= at_.size()) at_.resize(node.id + 1);
      at_[node.id] = i;
      parent_.push_back(i == 0 ? 0 : at_[node.parent]);
      listed_children_.push_back(0);
      if (i > 0 && Listed(node)) ++listed_children_[parent_[i]];
      InspectNodeSlots(node);
    }
    std::vector<uint32_t> cursors(snapshot_.nodes.size(), 0), covers(snapshot_.nodes.size(), 0);
    for (const KvSnapshot::Sequence& sequence : snapshot_.sequences) {
      if (sequence.cursor) ++cursors[at_[*sequence.cursor]];
    }
    const uint32_t widest = std::ranges::max(snapshot_.geometry.windows);
    for (size_t i = 1; i < snapshot_.nodes.size(); ++i) {
      const KvSnapshot::Node& node = snapshot_.nodes[i];
      if (!node.resume) continue;
      const uint32_t block_tokens = snapshot_.geometry.block_tokens;
      const uint64_t first = FirstBlockKept(widest, uint64_t{node.block} * block_tokens + node.tokens, block_tokens);
      for (size_t at = i; at != 0 && snapshot_.nodes[at].block >= first; at = parent_[at]) ++covers[at];
    }
    for (size_t i = 0; i < snapshot_.nodes.size(); ++i) {
      const KvSnapshot::Node& node = snapshot_.nodes[i];
      if (node.cursors != cursors[i]) Add("node {} counts {} cursors of {}", node.id, node.cursors, cursors[i]);
      if (node.covers != covers[i]) Add("node {} counts {} covers of {}", node.id, node.covers, covers[i]);
      const bool rank = i > 0 && Listed(node) && node.cursors == 0 && listed_children_[i] == 0;
      if (node.ranked != rank) Add("node {} is {}ranked", node.id, node.ranked ? "" : "not ");
      if (i > 0 && !Listed(node) && node.cursors == 0 && node.writer.value == 0 &&
          std::ranges::count(parent_, i) == 0) {
        Add("node {} is there for nothing", node.id);
      }
    }
  }

  void InspectNodeSlots(const KvSnapshot::Node& node) {
    for (size_t group = 0; group < node.slots.size(); ++group) {
      if (node.slots[group] == kNoSlot) continue;
      const SlotId slot(node.slots[group]);
      if (!Known(slot, "the index")) continue;
      ++entries_[slot.value];
      const Content content{group, node.block};
      if (content_[slot.value] && content_[slot.value] != content) {
        Add("slot {} is listed as block {} of group {}, and is another", slot.value, content.block, group);
      }
      content_[slot.value] = content;
    }
  }

  void InspectIdle() {
    uint32_t idle = 0, full_in_use = 0;
    std::vector<uint8_t> counted(snapshot_.geometry.slots, 0);
    for (size_t i = 0; i < snapshot_.nodes.size(); ++i) {
      const KvSnapshot::Node& node = snapshot_.nodes[i];
      for (size_t group = 0; group < node.slots.size(); ++group) {
        if (node.slots[group] == kNoSlot || snapshot_.references[node.slots[group]] != 1) continue;
        ++idle;
        const bool evictable = snapshot_.geometry.windows[group] == 0 ? node.ranked || listed_children_[i] > 0
                                                                      : node.covers > 0 || node.loose || node.ranked;
        if (!evictable) Add("slot {} of node {} is idle and nothing will evict it", node.slots[group], node.id);
        counted[node.slots[group]] = 1;
      }
    }
    for (uint32_t slot = 0; slot < snapshot_.geometry.slots; ++slot) {
      const bool full = content_[slot] && snapshot_.geometry.windows[content_[slot]->group] == 0;
      if (full && counted[slot] == 0) ++full_in_use;
    }
    if (idle != snapshot_.idle) Add("{} slots are idle, the pool counts {}", idle, snapshot_.idle);
    if (full_in_use != snapshot_.full_in_use) {
      Add("{} slots of full attention are in use, the pool counts {}", full_in_use, snapshot_.full_in_use);
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
      const bool copied = snapshot_.transfers.slot(SlotId(slot)).released;
      if (free[slot] == 0 && references == 0 && !copied) Add("slot {} is neither free nor referenced", slot);
    }
    std::ranges::copy(Violations(snapshot_.transfers, snapshot_.free, snapshot_.references),
                      std::back_inserter(problems_));
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
  std::vector<size_t> at_;                       // by node id: where it stands in snapshot.nodes
  std::vector<size_t> parent_;                   // by place: its parent's
  std::vector<uint32_t> listed_children_;        // by place
  std::vector<std::string> problems_;
};

void AddNode(const PrefixNode& node, uint32_t groups, KvSnapshot* snapshot) {
  snapshot->nodes.push_back({.id = node.id,
                             .parent = node.parent == nullptr ? node.id : node.parent->id,
                             .block = node.block,
                             .tokens = node.count,
                             .cursors = node.cursors,
                             .writer = node.writer,
                             .resume = node.resume,
                             .covers = node.covers,
                             .ranked = node.ranked,
                             .loose = node.loose_hook.is_linked(),
                             .slots = {node.slots, node.slots + groups}});
}

// Parents before children, without recursion: chains are as long as contexts.
void AddNodes(const PrefixNode& root, uint32_t groups, KvSnapshot* snapshot) {
  std::vector<const PrefixNode*> pending = {&root};
  while (!pending.empty()) {
    const PrefixNode& node = *pending.back();
    pending.pop_back();
    AddNode(node, groups, snapshot);
    for (const PrefixNode& child : node.children) pending.push_back(&child);
  }
}

void AddAbove(const Sequence& sequence, const KvGeometry& geometry, KvSnapshot::Sequence* out) {
  out->load_end = sequence.above.end;
  out->load_low = sequence.above.low;
  const auto end = static_cast<uint32_t>(BlocksFor(sequence.above.end, geometry.block_tokens));
  for (const PageTable& table : sequence.above.tables) {
    const PageTableRef pages = table.Ref();
    KvSnapshot::Table& listed = out->above.emplace_back();
    listed.first_block = end - pages.slot_count;
    for (uint32_t i = pages.slot_count; i > 0; --i) listed.slots.push_back(SlotId(pages.slots[i - 1]));
  }
}

}  // namespace

KvSnapshot KvManager::State::Snapshot() const {
  KvSnapshot snapshot;
  snapshot.geometry = geometry;
  snapshot.references.reserve(pool.slots());
  for (uint32_t slot = 0; slot < pool.slots(); ++slot) snapshot.references.push_back(pool.references(SlotId(slot)));
  snapshot.free.assign(pool.free_list().begin(), pool.free_list().end());
  snapshot.transfers = pool.transfers();
  snapshot.idle = pool.idle_count();
  snapshot.full_in_use = pool.in_use(SlotUse::kFull);
  if (open) {
    for (const BlockCopy& copy : copies) snapshot.reserved.push_back(copy.to);
  }
  for (const auto& sequence : live) {
    KvSnapshot::Sequence& out = snapshot.sequences.emplace_back();
    out.id = sequence->id;
    out.length = sequence->length;
    out.reserved_tokens = sequence->step_tokens;
    if (sequence->cursor != nullptr) out.cursor = sequence->cursor->id;
    const uint64_t committed_end = BlocksFor(sequence->length, geometry.block_tokens);
    for (const PageTable& table : sequence->tables) {
      const PageTableRef pages = table.Ref();
      KvSnapshot::Table& listed = out.tables.emplace_back();
      listed.first_block = pages.first_block;
      for (uint32_t i = 0; i < pages.slot_count; ++i) {
        listed.slots.push_back(SlotId(pages.slots[i]));
        if (pages.first_block + i >= committed_end) snapshot.reserved.push_back(SlotId(pages.slots[i]));
      }
    }
    if (sequence->above.end > 0) AddAbove(*sequence, geometry, &out);
  }
  if (index != nullptr) AddNodes(index->root(), groups(), &snapshot);
  return snapshot;
}

std::vector<std::string> Violations(const KvSnapshot& snapshot) { return Inspection(snapshot).Run(); }

}  // namespace cachalot::kv
