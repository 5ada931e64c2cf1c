// The bytes of the session journal: a header per file, a record per change (docs/session_format.md).
// Threads:   pure functions over values.
// Ownership: none.
// Invariant: what decodes was encoded so, but for one damage in 2^32; every limit is checked before memory is taken.
// Cost:      linear in the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tier/stored_session.h"

namespace cachalot::tier {

inline constexpr size_t kSessionNameBytes = 128;                      // most of an id or an owner
inline constexpr uint64_t kSessionTokens = uint64_t{4} << 20;         // most of a session
inline constexpr uint64_t kSessionSequenceLimit = uint64_t{1} << 62;  // of sequence and file numbers
inline constexpr size_t kSessionFileHeaderBytes = 128;                // two copies
inline constexpr size_t kSessionRecordHeadBytes = 28;                 // before the payload
inline constexpr std::array<uint8_t, 4> kSessionRecordMagic = {0xCA, 0xC5, 0xE5, 0xA1};

using JournalUuid = std::array<uint8_t, 16>;

enum class SessionFileKind : uint8_t {
  kLog = 1,        // changes
  kSnapshot = 2,   // all sessions, then changes; replaces every file of a lower number
  kDeletions = 3,  // second copies of those changes that delete
};

struct SessionFileHeader {
  SessionFileKind kind = SessionFileKind::kLog;
  uint64_t number = 0;            // also in the file's name
  uint64_t first_sequence = 0;    // of changes; those in earlier files from here on are void
  uint64_t snapshot_records = 0;  // that precede them
  JournalUuid uuid{};             // of whoever wrote the file
  bool operator==(const SessionFileHeader&) const = default;
};

std::vector<std::byte> EncodeSessionFileHeader(const SessionFileHeader& header);
// kCorrupt when neither copy is whole, kInvalid when a whole one has another version.
Result<SessionFileHeader> DecodeSessionFileHeader(std::span<const std::byte> bytes);

enum class SessionChangeKind : uint8_t {
  kPut = 1,
  kExtend = 2,
  kTouch = 3,
  kHold = 4,  // pinned or suspended, or no longer
  kDelete = 5,
  kClearOwner = 6,
  kClearAll = 7,
};

inline bool IsDeletion(SessionChangeKind kind) { return kind >= SessionChangeKind::kDelete; }

struct SessionChange {
  SessionChangeKind kind = SessionChangeKind::kPut;
  uint64_t sequence = 0;
  uint64_t previous = 0;       // kExtend, kTouch, kHold: sequence of the put or extension that it builds on
  uint64_t from_position = 0;  // kExtend: what stands from here on is replaced
  StoredSession session;       // what the kind needs of it
};

// Checksums start from the writer's uuid: no other journal's record passes, nor a prompt that imitates one.
uint32_t SessionRecordSeed(const JournalUuid& uuid);

uint64_t SessionRecordBytes(const StoredSession& session);
void AppendSessionRecord(const SessionChange& change, uint32_t seed, std::vector<std::byte>& out);

struct SessionRecordHead {
  SessionChangeKind kind = SessionChangeKind::kPut;
  uint64_t sequence = 0;
  uint32_t payload_bytes = 0;
  uint32_t payload_crc = 0;
};

// Nothing when it is not a whole head within the limits. `bytes` are kSessionRecordHeadBytes.
std::optional<SessionRecordHead> DecodeSessionRecordHead(std::span<const std::byte> bytes, uint32_t seed);
// Nothing when the payload is not what the head says.
std::optional<SessionChange> DecodeSessionRecord(const SessionRecordHead& head, std::span<const std::byte> payload,
                                                 uint32_t seed);

}  // namespace cachalot::tier
