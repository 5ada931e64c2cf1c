#include "tier/session_record.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "tier/byte_fields.h"

namespace cachalot::tier {
namespace {

constexpr std::array<uint8_t, 8> kFileMagic = {0xCA, 'C', 'H', 'S', 'E', 'S', 'S', 0x0A};
constexpr uint32_t kVersion = 2;
constexpr uint32_t kPinned = 1, kSuspended = 2;
constexpr size_t kHeaderCopyBytes = kSessionFileHeaderBytes / 2;
constexpr size_t kFixedPayloadBytes = 8 * 8 + std::tuple_size_v<Digest> + 4 * 4;
constexpr uint64_t kPayloadBytes = kFixedPayloadBytes + 2 * kSessionNameBytes + kSessionTokens * sizeof(TokenId);

void WriteName(FieldWriter& writer, const std::string& name) {
  writer.U32(static_cast<uint32_t>(name.size()));
  writer.Bytes({reinterpret_cast<const uint8_t*>(name.data()), name.size()});
}

std::string ReadName(FieldReader& reader) {
  const std::span<const std::byte> raw = reader.Take(reader.U32());
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

std::optional<uint32_t> VersionOf(std::span<const std::byte> copy) {
  if (copy.size() < kHeaderCopyBytes) return std::nullopt;
  FieldReader reader(copy.first(kHeaderCopyBytes));
  if (reader.Bytes<kFileMagic.size()>() != kFileMagic) return std::nullopt;
  const auto version = reader.U32();
  FieldReader crc(copy.subspan(kHeaderCopyBytes - sizeof(uint32_t)));
  if (Crc32c(copy.first(kHeaderCopyBytes - sizeof(uint32_t))) != crc.U32()) return std::nullopt;
  return version;
}

std::optional<SessionFileHeader> DecodeHeaderCopy(std::span<const std::byte> copy) {
  FieldReader reader(copy.subspan(kFileMagic.size() + sizeof(kVersion)));
  SessionFileHeader header;
  const auto kind = reader.U32();
  header.kind = static_cast<SessionFileKind>(kind);
  header.number = reader.U64();
  header.first_sequence = reader.U64();
  header.snapshot_records = reader.U64();
  header.uuid = reader.Bytes<std::tuple_size_v<JournalUuid>>();
  const bool known = kind >= 1 && kind <= static_cast<uint8_t>(SessionFileKind::kDeletions);
  const uint64_t greatest = std::max({header.number, header.first_sequence, header.snapshot_records});
  if (!known || greatest >= kSessionSequenceLimit) return std::nullopt;
  return header;
}

}  // namespace

std::vector<std::byte> EncodeSessionFileHeader(const SessionFileHeader& header) {
  std::vector<std::byte> copy;
  FieldWriter writer(copy);
  writer.Bytes(kFileMagic);
  writer.U32(kVersion);
  writer.U32(static_cast<uint32_t>(header.kind));
  writer.U64(header.number);
  writer.U64(header.first_sequence);
  writer.U64(header.snapshot_records);
  writer.Bytes(header.uuid);
  copy.resize(kHeaderCopyBytes - sizeof(uint32_t));
  writer.U32(Crc32c(copy));
  std::vector<std::byte> both = copy;
  both.insert(both.end(), copy.begin(), copy.end());
  return both;
}

Result<SessionFileHeader> DecodeSessionFileHeader(std::span<const std::byte> bytes) {
  for (size_t begin = 0; begin < kSessionFileHeaderBytes && begin < bytes.size(); begin += kHeaderCopyBytes) {
    const auto copy = bytes.subspan(begin);
    const std::optional<uint32_t> version = VersionOf(copy);
    if (!version) continue;
    if (*version != kVersion) {
      return Invalid(fmt::format("format version {} of the session journal, expected {}", *version, kVersion));
    }
    if (const auto header = DecodeHeaderCopy(copy)) return *header;
  }
  return Corrupt("no whole header of a session journal");
}

uint32_t SessionRecordSeed(const JournalUuid& uuid) { return Crc32c(std::as_bytes(std::span(uuid))); }

uint64_t SessionRecordBytes(const StoredSession& session) {
  return kSessionRecordHeadBytes + kFixedPayloadBytes + session.key.owner.size() + session.key.id.size() +
         session.tokens.size() * sizeof(TokenId);
}

void AppendSessionRecord(const SessionChange& change, uint32_t seed, std::vector<std::byte>& out) {
  const StoredSession& session = change.session;
  std::vector<std::byte> payload;
  payload.reserve(SessionRecordBytes(session));
  FieldWriter writer(payload);
  writer.U64(change.previous);
  writer.U64(change.from_position);
  writer.U64(session.created);
  writer.U64(session.last_used);
  writer.U64(session.ttl_seconds);
  writer.U32((session.pinned ? kPinned : 0) | (session.suspended ? kSuspended : 0));
  writer.Bytes(session.identity);
  writer.U64(session.scope.salt.high);
  writer.U64(session.scope.salt.low);
  writer.U64(session.scope.public_tokens);
  WriteName(writer, session.key.owner);
  WriteName(writer, session.key.id);
  writer.U32(static_cast<uint32_t>(session.tokens.size()));
  for (const TokenId token : session.tokens) writer.U32(token);

  const size_t begin = out.size();
  FieldWriter head(out);
  head.Bytes(kSessionRecordMagic);
  head.U32(static_cast<uint32_t>(change.kind));
  head.U64(change.sequence);
  head.U32(static_cast<uint32_t>(payload.size()));
  head.U32(Crc32c(payload, seed));
  head.U32(Crc32c(std::span(out).subspan(begin), seed));
  out.insert(out.end(), payload.begin(), payload.end());
}

std::optional<SessionRecordHead> DecodeSessionRecordHead(std::span<const std::byte> bytes, uint32_t seed) {
  FieldReader reader(bytes);
  if (reader.Bytes<kSessionRecordMagic.size()>() != kSessionRecordMagic) return std::nullopt;
  const auto kind = reader.U32();
  SessionRecordHead head;
  head.sequence = reader.U64();
  head.payload_bytes = reader.U32();
  head.payload_crc = reader.U32();
  const auto crc = reader.U32();
  if (!reader.ok() || crc != Crc32c(bytes.first(kSessionRecordHeadBytes - sizeof(crc)), seed)) return std::nullopt;
  if (kind < 1 || kind > static_cast<uint32_t>(SessionChangeKind::kClearAll)) return std::nullopt;
  if (head.sequence == 0 || head.sequence >= kSessionSequenceLimit) return std::nullopt;
  if (head.payload_bytes < kFixedPayloadBytes || head.payload_bytes > kPayloadBytes) return std::nullopt;
  head.kind = static_cast<SessionChangeKind>(kind);
  return head;
}

std::optional<SessionChange> DecodeSessionRecord(const SessionRecordHead& head, std::span<const std::byte> payload,
                                                 uint32_t seed) {
  if (payload.size() != head.payload_bytes || Crc32c(payload, seed) != head.payload_crc) return std::nullopt;
  FieldReader reader(payload);
  SessionChange change;
  change.kind = head.kind;
  change.sequence = head.sequence;
  change.previous = reader.U64();
  change.from_position = reader.U64();
  StoredSession& session = change.session;
  session.created = reader.U64();
  session.last_used = reader.U64();
  session.ttl_seconds = reader.U64();
  const uint32_t held = reader.U32();
  session.pinned = (held & kPinned) != 0;
  session.suspended = (held & kSuspended) != 0;
  session.identity = reader.Bytes<std::tuple_size_v<Digest>>();
  session.scope.salt.high = reader.U64();
  session.scope.salt.low = reader.U64();
  session.scope.public_tokens = reader.U64();
  session.key.owner = ReadName(reader);
  session.key.id = ReadName(reader);
  const uint64_t tokens = reader.U32();
  if (!reader.ok() || tokens > kSessionTokens || reader.left() != tokens * sizeof(TokenId)) return std::nullopt;
  if (std::max(session.key.owner.size(), session.key.id.size()) > kSessionNameBytes) return std::nullopt;
  session.tokens.resize(tokens);
  for (TokenId& token : session.tokens) token = reader.U32();
  return change;
}

}  // namespace cachalot::tier
