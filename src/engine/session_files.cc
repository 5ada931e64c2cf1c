// Sessions that are saved by name, and restored: the KV in the pool, part by part, from slots to a file and back.
#include <algorithm>
#include <bit>

#include "base/log.h"
#include "engine/engine_state.h"
#include "kv/geometry.h"

namespace cachalot::engine {
namespace {

// Leading blocks of a history that may be kept in a file, and until when.
struct Savable {
  uint64_t blocks = 0;
  Nanos until = kv::kNever;
};

Savable SavableOf(const kv::ListedBlocks& listed, uint64_t blocks, Nanos now) {
  Savable savable;
  while (savable.blocks < blocks && listed.wanted_until[savable.blocks] > now) {
    savable.until = std::min(savable.until, listed.wanted_until[savable.blocks++]);
  }
  return savable;
}

// Each to its place in `to`; returns once all are there.
Status CopySlots(exec::DeviceMemory& memory, std::span<const SlotId> slots, std::span<std::byte> to) {
  std::vector<exec::CopyTicket> tickets;
  for (const SlotId slot : slots) {
    tickets.push_back(memory.CopyOut(slot, to.first(memory.slot_bytes())));
    to = to.subspan(memory.slot_bytes());
  }
  Status first;
  for (const exec::CopyTicket ticket : tickets) {
    if (Status status = memory.Wait(ticket); first.ok()) first = std::move(status);
  }
  return first;
}

// Slots of the short block where the history ends, of all groups; empty if it has none, or not all of it is there.
std::vector<SlotId> TailOf(const kv::ListedBlocks& listed, uint64_t whole_blocks, size_t groups) {
  std::vector<SlotId> slots;
  if (listed.wanted_until.size() <= whole_blocks) return slots;
  for (const uint32_t slot : std::span(listed.slots).subspan(whole_blocks * groups, groups)) {
    if (slot == kv::kNoSlot) return {};
    slots.push_back(SlotId(slot));
  }
  return slots;
}

// At least one.
uint64_t SecondsUntil(Nanos moment, Nanos now) {
  return std::max<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(moment - now).count(), 1);
}

// When the KV of a saved session has to go; nothing: it has had its time. A wall clock that went back gives it no more
// than it had.
std::optional<Nanos> KvEndOf(const tier::ArchiveHeader& header, Nanos now, uint64_t unix_seconds) {
  if (header.kv_seconds == 0) return kv::kNever;
  const uint64_t age = unix_seconds - std::min(unix_seconds, header.saved);
  if (age >= header.kv_seconds) return std::nullopt;
  constexpr uint64_t kMost = uint64_t{1} << 31;
  return now + std::chrono::seconds(std::min(header.kv_seconds - age, kMost));
}

}  // namespace

void Engine::State::BeginSave(const std::string& file_name, SessionMove* move) {
  if (archive == nullptr) return move->Fail(Invalid("no folder for saved sessions was given: --session-files"));
  if (InUse(move->name)) return move->Fail(Invalid("a request of the session waits or runs"));
  const Session& session = *sessions.Find(move->name);
  if (session.record.identity != identity) return move->Fail(Invalid("the session is of another model"));
  if (const Status named = tier::CheckArchiveName(file_name); !named.ok()) return move->Fail(named);
  move->file_name = file_name;
  move->prefetch = BeginPrefetch(session.record.scope, KvTokensOf(session), now, PrefetchFor::kCommand);
}

// What there is of its KV is hot now, as far as there was room.
void Engine::State::StartSave(SessionMove* move) {
  const Session& session = *sessions.Find(move->name);
  const std::span<const TokenId> tokens = KvTokensOf(session);
  SessionFile saved{.command = move->answer.id, .save = true};
  saved.sequence = kv.Hold(session.record.scope, tokens, tokens.size());
  if (budget.promised() + kv.full_slots_in_use() > budget.total()) {
    kv.Free(saved.sequence);
    return move->Fail(Overloaded("all of the KV pool is promised to requests"));
  }
  const uint32_t block_tokens = kv.geometry().block_tokens;
  const kv::ListedBlocks listed = kv.Listed(session.record.scope, tokens);
  const uint64_t whole = kv.Length(saved.sequence) / block_tokens;
  std::vector<SlotId> tail;
  if (whole == tokens.size() / block_tokens) tail = TailOf(listed, whole, kv.geometry().windows.size());
  const Savable savable = SavableOf(listed, whole + (tail.empty() ? 0 : 1), now);
  saved.blocks = savable.blocks;
  if (saved.blocks > whole) {
    saved.tail.resize(tail.size() * memory.slot_bytes());
    if (const Status copied = CopySlots(memory, tail, saved.tail); !copied.ok()) {
      kv.Free(saved.sequence);
      return move->Fail(copied);
    }
  }
  const uint64_t kv_tokens = std::min<uint64_t>(saved.blocks * block_tokens, tokens.size());
  const uint64_t part_blocks = PartBlocks();
  const Status begun = archive->BeginSave(
      move->file_name, {.session = session.record,
                        .slot_bytes = memory.slot_bytes(),
                        .block_tokens = block_tokens,
                        .kv_tokens = static_cast<uint32_t>(kv_tokens),
                        .parts = static_cast<uint32_t>((saved.blocks + part_blocks - 1) / part_blocks),
                        .saved = unix_seconds,
                        .kv_seconds = savable.until == kv::kNever ? 0 : SecondsUntil(savable.until, now)});
  if (!begun.ok()) {
    kv.Free(saved.sequence);
    return move->Fail(begun);
  }
  move->answer.moved_tokens = kv_tokens;
  move->file = true;
  file = std::move(saved);
}

void Engine::State::BeginRestore(const SessionCommand& command, SessionMove* move) {
  if (archive == nullptr) return move->Fail(Invalid("no folder for saved sessions was given: --session-files"));
  if (const Status named = CheckName(command.name); !named.ok()) return move->Fail(named);
  if (sessions.Find(command.name) != nullptr) return move->Fail(Invalid("a session of this name exists already"));
  if (InUse(command.name)) return move->Fail(Invalid("a request of the session waits or runs"));
  const Status begun = archive->BeginRestore(command.name.owner, command.other);
  if (!begun.ok()) return move->Fail(begun);
  file = SessionFile{.command = move->answer.id, .salt = command.scope.salt};
  move->file = true;
}

// Blocks of one part of a file.
uint64_t Engine::State::PartBlocks() const {
  const uint64_t block_bytes = memory.slot_bytes() * kv.geometry().windows.size();
  return std::clamp<uint64_t>(tier::kArchivedKvBytes / block_bytes, 1, tier::kArchivedKvBlocks);
}

void Engine::State::PollFile() {
  if (archive == nullptr) return;
  std::optional<tier::SessionArchive::Ended> ended = archive->Poll();
  if (!ended) return;
  SessionMove& move =
      *std::ranges::find_if(moves, [&](const SessionMove& m) { return m.file && m.answer.id == file->command; });
  Status status = ended->status;
  if (status.ok()) status = move.answer.status;  // its session may have been deleted meanwhile
  if (status.ok()) {
    move.answer.moved_bytes = std::max(move.answer.moved_bytes, ended->file_bytes);
    status = file->save ? SaveOn() : RestoreOn(*ended, &move);
  }
  // What cannot be read is kCorrupt or kUnavailable.
  if (!file->save && ended->status.code() == Code::kInvalid) move.answer.found = false;
  if (!status.ok() || !archive->under_way()) EndFile(status, &move);
}

// The next part, or the end.
Status Engine::State::SaveOn() {
  if (file->next_block < file->blocks) {
    CACHALOT_ASSIGN_OR_RETURN(std::vector<uint32_t> part, NextPart());
    archive->WritePart(std::move(part));
  } else if (!std::exchange(file->finishing, true)) {
    archive->FinishSave();
  }
  return OkStatus();
}

// The layer groups of its blocks, whose KV is where the archive made room for it.
Result<std::vector<uint32_t>> Engine::State::NextPart() {
  const uint64_t begin = file->next_block, end = std::min(file->blocks, begin + PartBlocks());
  const auto groups = static_cast<uint32_t>(kv.geometry().windows.size());
  std::vector<uint32_t> part;
  std::vector<SlotId> slots;
  for (uint64_t block = begin; block < end; ++block) {
    part.push_back(0);
    for (uint32_t group = 0; group < groups; ++group) {
      const PageTableRef pages = kv.Pages(file->sequence, group);
      if (block < pages.first_block || block - pages.first_block >= pages.slot_count) continue;
      part.back() |= 1u << group;
      slots.push_back(SlotId(pages.slots[block - pages.first_block]));
    }
  }
  const std::span<const std::byte> tail = end == file->blocks ? std::span(file->tail) : std::span<std::byte>();
  if (!tail.empty()) part.back() = (1u << groups) - 1;
  const uint64_t held_bytes = slots.size() * memory.slot_bytes();
  CACHALOT_ASSIGN_OR_RETURN(const std::span<std::byte> room, archive->PartRoom(held_bytes + tail.size()));
  CACHALOT_RETURN_IF_ERROR(CopySlots(memory, slots, room));
  std::ranges::copy(tail, room.begin() + static_cast<ptrdiff_t>(held_bytes));
  file->next_block = end;
  return part;
}

// The file is whole and ours, or another part of it has come.
Status Engine::State::RestoreOn(const tier::SessionArchive::Ended& ended, SessionMove* move) {
  if (ended.header) {
    CACHALOT_RETURN_IF_ERROR(PutRestored(*ended.header, move));
    if (!BeginFill(*ended.header)) return OkStatus();  // its KV is of no use, or there is no room for it: it is cold
  } else {
    CACHALOT_RETURN_IF_ERROR(FillOn(ended));
  }
  if (file->parts > 0) {
    --file->parts;
    archive->ReadPart();
    return OkStatus();
  }
  if (file->filled < file->cells.size()) return Corrupt("the saved session lacks some of its KV");
  kv.EndLoad(file->sequence, file->tokens);
  move->answer.moved_tokens = kv.Length(file->sequence);
  return OkStatus();
}

Status Engine::State::PutRestored(const tier::ArchiveHeader& header, SessionMove* move) {
  if (sessions.Find(move->name) != nullptr || InUse(move->name)) {
    return Invalid("a session of this name came meanwhile");
  }
  Session session{.record = header.session, .handed_down = false};
  session.record.key = KeyOf(move->name);
  session.record.scope.salt = file->salt;
  session.record.last_used = unix_seconds;
  session.record.pinned = session.record.suspended = false;
  if (!PutSession(std::move(session), now)) {
    return Overloaded("there is no room for another session: see --max-sessions and --session-memory");
  }
  if (session_store != nullptr) session_store->NotePut(KeyOf(move->name));
  AwaitSync(move);
  return OkStatus();
}

// Takes slots for its KV, unless requests that run may need them.
bool Engine::State::BeginFill(const tier::ArchiveHeader& header) {
  const kv::KvGeometry& geometry = kv.geometry();
  if (header.session.identity != identity || header.slot_bytes != memory.slot_bytes() ||
      header.block_tokens != geometry.block_tokens) {
    LogWarning(
        "a session is restored without its KV: it was saved with another model, or with settings under which KV is "
        "another");
    return false;
  }
  const std::optional<Nanos> until = KvEndOf(header, now, unix_seconds);
  if (!until) return false;
  const uint64_t blocks = (header.kv_tokens + geometry.block_tokens - 1) / geometry.block_tokens;
  const uint64_t full = blocks * static_cast<uint64_t>(std::ranges::count(geometry.windows, 0u));
  if (blocks == 0 || !options.prefix_cache) return false;
  if (budget.promised() + kv.full_slots_in_use() + full > budget.total()) return false;
  const PrefixScope scope{file->salt, header.session.scope.public_tokens};
  const SequenceId sequence = kv.Create(scope, {}, *until);
  const std::span<const TokenId> tokens = header.session.tokens;
  file->tokens.assign(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(header.kv_tokens));
  const uint64_t slots = blocks * geometry.windows.size();
  while (FreeForLoad(slots) < slots) AwaitCopy();
  kv.BeginLoad(sequence, file->tokens.size());
  file->cells = kv.ClaimLoad(sequence, 0).value_or(std::vector<kv::LoadCell>{});
  Result<kv::SlotPromise> windows =
      budget.Promise(file->cells.size() - std::min(full, file->cells.size()), kv.full_slots_in_use());
  if (file->cells.empty() || !windows.ok()) {
    kv.Free(sequence);
    return false;
  }
  std::ranges::sort(file->cells, {}, [](const kv::LoadCell& cell) { return std::pair(cell.block, cell.group); });
  file->sequence = sequence;
  file->windows = std::move(*windows);
  file->blocks = blocks;
  file->parts = header.parts;
  return true;
}

Status Engine::State::FillOn(const tier::SessionArchive::Ended& part) {
  std::span<const std::byte> left = part.bytes;
  std::vector<exec::SlotFill> fills;
  for (const uint32_t groups : part.groups) {
    for (uint32_t group = 0; group < kv.geometry().windows.size(); ++group) {
      if ((groups >> group & 1) == 0) continue;
      const std::span<const std::byte> slot = left.first(memory.slot_bytes());
      left = left.subspan(memory.slot_bytes());
      if (file->filled == file->cells.size()) continue;
      const kv::LoadCell& cell = file->cells[file->filled];
      if (cell.block != file->next_block || cell.group != group) continue;
      fills.push_back({slot, cell.slot});
      ++file->filled;
    }
    ++file->next_block;
  }
  return memory.Wait(memory.CopyIn(fills));
}

void Engine::State::EndFile(const Status& status, SessionMove* move) {
  if (file->sequence.value != 0) kv.Free(file->sequence);
  archive->Close();
  move->file = false;
  move->Fail(status);
  if (move->answer.verb == SessionVerb::kSave) move->answer.durable = status.ok();
  file.reset();
  admission_due = true;
}

}  // namespace cachalot::engine
