#include "tier/disk_format.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tier/testing/disk_rig.h"

namespace cachalot::tier {
namespace {

RecordHeader SomeRecord(uint32_t blocks) {
  const KvRun run = TestRun({}, 7, 3, blocks);
  RecordHeader record;
  record.uuid = {1, 2, 3};
  record.sequence = 99;
  record.identity = run.identity;
  record.parent = run.parent;
  record.first_position = run.first_position;
  record.written_unix_seconds = -5;
  for (const KvRunBlock& block : run.blocks)
    record.blocks.push_back({block.key, block.tokens, block.groups, 1024, 1000, 17});
  record.tokens = run.tokens;
  return record;
}

TEST(DiskFormat, HeadersComeBackAsTheyWere) {
  const SegmentHeader segment{{9, 8, 7}, 12345, 1'700'000'000};
  const std::vector<std::byte> page = EncodeSegmentHeader(segment);
  EXPECT_EQ(page.size(), kDiskPage);
  EXPECT_EQ(DecodeSegmentHeader(page).value(), segment);

  for (const uint32_t blocks : {1u, 2u, 64u, kMaxRecordBlocks}) {
    const RecordHeader record = SomeRecord(blocks);
    std::vector<std::byte> bytes = EncodeRecordHeader(record);
    EXPECT_EQ(bytes.size(), HeaderBytes(record));
    EXPECT_EQ(HeaderBytesAt(bytes).value(), bytes.size());
    bytes.resize(bytes.size() + 100);
    EXPECT_EQ(DecodeRecordHeader(bytes).value(), record);
  }
}

TEST(DiskFormat, NoFlippedBitAndNoCutOfAHeaderIsTaken) {
  const std::vector<std::byte> good = EncodeRecordHeader(SomeRecord(2));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(DecodeRecordHeader(bad).ok()) << bit;
  }
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(DecodeRecordHeader(std::span(good).first(bytes)).ok()) << bytes;
  }
  const std::vector<std::byte> page = EncodeSegmentHeader({{1}, 2, 3});
  for (size_t bit = 0; bit < 48 * 8; ++bit) {
    std::vector<std::byte> bad = page;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(DecodeSegmentHeader(bad).ok()) << bit;
  }
}

TEST(DiskFormat, ANewerVersionIsNotOursToJudgeAndAnOlderOneIsGivenUp) {
  std::vector<std::byte> page = EncodeSegmentHeader({{1}, 2, 3});
  page[8] = std::byte{kDiskFormatVersion - 1};
  EXPECT_EQ(DecodeSegmentHeader(page).status().code(), Code::kCorrupt);
  page[8] = std::byte{kDiskFormatVersion + 1};
  const Status status = DecodeSegmentHeader(page).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(), "a segment of version 4; this program reads up to 3");
  page[0] = std::byte{'x'};
  EXPECT_EQ(DecodeSegmentHeader(page).status().message(), "not a segment of Cachalot's disk tier");
}

struct Footer {
  std::vector<FooterRecord> records;
  std::vector<std::byte> bytes;
  uint64_t body_offset = kDiskPage;
  uint64_t file_bytes = 0;
};

Footer SomeFooter() {
  Footer footer;
  std::vector<std::byte> body;
  for (const uint32_t blocks : {1u, 60u, 3u}) {
    FooterRecord record{footer.body_offset, SomeRecord(blocks)};
    const std::vector<std::byte> entry = EncodeFooterRecord(record.offset, EncodeRecordHeader(record.header));
    body.insert(body.end(), entry.begin(), entry.end());
    footer.body_offset += RecordBytes(record.header);
    footer.records.push_back(std::move(record));
  }
  footer.bytes = EncodeFooter({1, 2, 3}, footer.body_offset, 3, body);
  EXPECT_EQ(footer.bytes.size(), FooterBytes(body.size()));
  footer.file_bytes = footer.body_offset + footer.bytes.size();
  return footer;
}

Result<std::vector<FooterRecord>> Decode(const Footer& footer) {
  const std::span<const std::byte> bytes = footer.bytes;
  CACHALOT_ASSIGN_OR_RETURN(const FooterTrailer trailer, DecodeTrailer(bytes.last(kDiskPage), footer.file_bytes));
  return DecodeFooterBody(trailer, bytes.first(trailer.body_bytes));
}

TEST(DiskFormat, AFooterListsItsRecords) {
  const Footer footer = SomeFooter();
  EXPECT_EQ(Decode(footer).value(), footer.records);
}

TEST(DiskFormat, ADamagedFooterIsRefused) {
  const Footer good = SomeFooter();
  SplitMix64 random(1);
  const uint64_t body_bits = DecodeTrailer(std::span(good.bytes).last(kDiskPage), good.file_bytes)->body_bytes * 8;
  for (int i = 0; i < 2000; ++i) {
    Footer bad = good;
    const uint64_t bit = i % 2 == 0 ? random.Below(body_bits) : bad.bytes.size() * 8 - 1 - random.Below(56 * 8);
    bad.bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(Decode(bad).ok()) << bit;
  }
  Footer elsewhere = good;
  elsewhere.file_bytes += kDiskPage;
  EXPECT_EQ(Decode(elsewhere).status().message(), "footer that does not fit its file");
}

TEST(DiskFormat, RecordsThatCannotBeAreRefusedThoughTheirChecksumsAgree) {
  RecordHeader record = SomeRecord(2);
  record.blocks[1].tokens = 15;
  EXPECT_EQ(DecodeRecordHeader(EncodeRecordHeader(record)).status().code(), Code::kCorrupt);
  record = SomeRecord(2);
  record.blocks[0].groups = 0;
  EXPECT_EQ(DecodeRecordHeader(EncodeRecordHeader(record)).status().code(), Code::kCorrupt);
  record = SomeRecord(2);
  for (RecordBlock& block : record.blocks) block.bytes = block.stored_bytes = UINT32_MAX;
  EXPECT_EQ(DecodeRecordHeader(EncodeRecordHeader(record)).status().code(), Code::kCorrupt);
  record = SomeRecord(2);
  record.blocks[0].stored_bytes = record.blocks[0].bytes + 1;
  EXPECT_EQ(DecodeRecordHeader(EncodeRecordHeader(record)).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace cachalot::tier
