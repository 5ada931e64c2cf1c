// Opens a session journal over arbitrary files, changes it, and opens it again: the same sessions, and the change.
//
// The input is a list of files: a byte for kind and number, a byte for how its bytes are made right, two for its size,
// then its bytes. Checksums are made right where asked, or nothing would get past them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/testing/fault_file_system.h"
#include "tier/session_journal.h"

namespace cachalot::tier {
namespace {

using Bytes = std::vector<std::byte>;

void PutCrc(Bytes& bytes, size_t at, uint32_t crc) {
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(crc >> (8 * i));
}

uint32_t U32At(const Bytes& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

// Magic numbers and checksums of all records that follow each other from `begin` on.
void MakeRecordsRight(Bytes& bytes, size_t begin, uint32_t seed) {
  while (bytes.size() - begin >= kSessionRecordHeadBytes) {
    for (size_t i = 0; i < 4; ++i) bytes[begin + i] = static_cast<std::byte>(kSessionRecordMagic[i]);
    const size_t payload = begin + kSessionRecordHeadBytes;
    const uint64_t payload_bytes = std::min<uint64_t>(U32At(bytes, begin + 16), bytes.size() - payload);
    PutCrc(bytes, begin + 20, Crc32c(std::span(bytes).subspan(payload, payload_bytes), seed));
    PutCrc(bytes, begin + 24, Crc32c(std::span(bytes).subspan(begin, 24), seed));
    begin = payload + payload_bytes;
  }
}

void AddFile(FaultFileSystem& disk, uint8_t name, uint8_t repair, Bytes bytes) {
  const auto kind = static_cast<SessionFileName>(name % 3);
  const uint64_t number = name / 3;
  if ((repair & 1) != 0) {
    SessionFileHeader header{static_cast<SessionFileKind>(1 + repair / 2 % 3), number, repair / 8U, repair / 32U, {}};
    const Bytes head = EncodeSessionFileHeader(header);
    MakeRecordsRight(bytes, 0, SessionRecordSeed(header.uuid));
    bytes.insert(bytes.begin(), head.begin(), head.end());
  }
  disk.SetContents("j/" + NameOfSessionFile(kind, number), bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FaultFileSystem disk;
  CACHALOT_CHECK(disk.MakeFolder("j").ok());
  auto input = std::as_bytes(std::span(data, size));
  while (input.size() >= 4) {
    const auto at = [&](size_t i) { return static_cast<uint8_t>(input[i]); };
    const size_t bytes = std::min<size_t>(at(2) + 256U * at(3), input.size() - 4);
    AddFile(disk, at(0), at(1), Bytes(input.begin() + 4, input.begin() + 4 + static_cast<ptrdiff_t>(bytes)));
    input = input.subspan(4 + bytes);
  }
  SessionJournalOptions options;
  options.uuid[0] = 1;
  Result<SessionJournal::Opened> opened = SessionJournal::Open(disk, "j", options);
  if (!opened.ok()) {
    CACHALOT_CHECK(opened.status().code() == Code::kInvalid);
    return 0;
  }
  StoredSession added;
  added.key = {"fuzz", "added"};
  added.tokens = {1, 2, 3};
  std::vector<StoredSession> sessions = opened->sessions;
  std::erase_if(sessions, [&](const StoredSession& session) { return session.key == added.key; });
  sessions.push_back(added);
  std::ranges::sort(sessions, {}, &StoredSession::key);
  CACHALOT_CHECK(opened->journal->Put(added).ok());
  CACHALOT_CHECK(opened->journal->Sync().ok());
  const auto after = disk.AfterCrash(Unsynced::kKept);
  const Result<SessionJournal::Opened> again = SessionJournal::Open(*after, "j", options);
  CACHALOT_CHECK(again.ok() && again->sessions == sessions);
  return 0;
}

}  // namespace cachalot::tier
