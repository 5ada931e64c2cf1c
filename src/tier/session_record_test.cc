#include "tier/session_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/hash.h"

namespace cachalot::tier {
namespace {

constexpr uint32_t kSeed = 77;

SessionChange Example() {
  SessionChange change;
  change.kind = SessionChangeKind::kExtend;
  change.sequence = 0x0102030405060708;
  change.previous = 3;
  change.from_position = 4;
  change.session.key = {"owner", std::string("i\0d", 3)};
  change.session.identity.fill(0xAB);
  change.session.scope = {{11, 12}, 13};
  change.session.tokens = {1, 0xFFFFFFFF, 0x00020003};
  change.session.created = 5;
  change.session.last_used = 6;
  change.session.ttl_seconds = 7;
  change.session.pinned = true;
  return change;
}

StoredSession Suspended(StoredSession session) {
  session.suspended = true;
  return session;
}

SessionFileHeader ExampleHeader() {
  SessionFileHeader header{SessionFileKind::kSnapshot, 0x1122, 0x3344, 5, {}};
  for (size_t i = 0; i < header.uuid.size(); ++i) header.uuid[i] = static_cast<uint8_t>(i);
  return header;
}

std::optional<SessionChange> Decoded(std::span<const std::byte> bytes, uint32_t seed = kSeed) {
  if (bytes.size() < kSessionRecordHeadBytes) return std::nullopt;
  const auto head = DecodeSessionRecordHead(bytes.first(kSessionRecordHeadBytes), seed);
  return head ? DecodeSessionRecord(*head, bytes.subspan(kSessionRecordHeadBytes), seed) : std::nullopt;
}

std::vector<std::byte> Encoded(const SessionChange& change) {
  std::vector<std::byte> bytes;
  AppendSessionRecord(change, kSeed, bytes);
  return bytes;
}

TEST(SessionRecord, SaysWhetherASessionIsPinnedSuspendedOrBoth) {
  SessionChange change = Example();
  for (const bool pinned : {false, true}) {
    change.session.pinned = pinned;
    for (const StoredSession& session : {change.session, Suspended(change.session)}) {
      const auto decoded = Decoded(Encoded({.kind = SessionChangeKind::kHold, .sequence = 1, .session = session}));
      ASSERT_TRUE(decoded);
      EXPECT_EQ(decoded->session, session);
    }
  }
}

TEST(SessionRecord, DecodesToWhatWasEncoded) {
  const SessionChange change = Example();
  const std::vector<std::byte> bytes = Encoded(change);
  EXPECT_EQ(bytes.size(), SessionRecordBytes(change.session));
  const auto decoded = Decoded(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->kind, change.kind);
  EXPECT_EQ(decoded->sequence, change.sequence);
  EXPECT_EQ(decoded->previous, change.previous);
  EXPECT_EQ(decoded->from_position, change.from_position);
  EXPECT_EQ(decoded->session, change.session);
}

TEST(SessionRecord, AnyFlippedBitCutOrOtherSeedIsRefused) {
  std::vector<std::byte> bytes = Encoded(Example());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(Decoded(bytes)) << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(Decoded(std::span(bytes).first(size))) << size;
  EXPECT_FALSE(Decoded(bytes, kSeed + 1));
  EXPECT_TRUE(Decoded(bytes));
}

TEST(SessionRecord, LimitsHoldThoughChecksumsAreRight) {
  SessionChange change = Example();
  change.sequence = 0;
  EXPECT_FALSE(Decoded(Encoded(change)));
  change.sequence = kSessionSequenceLimit;
  EXPECT_FALSE(Decoded(Encoded(change)));
  change = Example();
  change.session.key.id = std::string(kSessionNameBytes + 1, 'x');
  EXPECT_FALSE(Decoded(Encoded(change)));
  change = Example();
  change.kind = static_cast<SessionChangeKind>(8);
  EXPECT_FALSE(Decoded(Encoded(change)));
  change = Example();
  change.session.tokens.resize(kSessionTokens + 1);
  EXPECT_FALSE(Decoded(Encoded(change)));
}

TEST(SessionFileHeader, SurvivesDamageOfEitherCopy) {
  const std::vector<std::byte> whole = EncodeSessionFileHeader(ExampleHeader());
  ASSERT_EQ(whole.size(), kSessionFileHeaderBytes);
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::vector<std::byte> bytes = whole;
    bytes[byte] ^= std::byte{0x40};
    EXPECT_EQ(DecodeSessionFileHeader(bytes).value(), ExampleHeader());
    bytes[(byte + kSessionFileHeaderBytes / 2) % kSessionFileHeaderBytes] ^= std::byte{0x40};
    EXPECT_EQ(DecodeSessionFileHeader(bytes).status().code(), Code::kCorrupt);
  }
  for (size_t size = 0; size < kSessionFileHeaderBytes / 2; ++size) {
    EXPECT_EQ(DecodeSessionFileHeader(std::span(whole).first(size)).status().code(), Code::kCorrupt);
  }
}

// A change of the bytes on disk is a new version.
TEST(SessionFormat, StaysAsItIs) {
  EXPECT_EQ(HexOf(Sha256Of(Encoded(Example()))), "67769aed71401dba1a2e88f6c8644d8530d8c03e74759f361b0eb14cbf2c129e");
  EXPECT_EQ(HexOf(Sha256Of(EncodeSessionFileHeader(ExampleHeader()))),
            "878819cbb8efeda9c461d35771bfc9eb8f60698b826a5fb81fe5b3f1a102c8c4");
}

}  // namespace
}  // namespace cachalot::tier
