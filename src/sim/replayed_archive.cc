#include "sim/replayed_archive.h"

#include <bit>
#include <utility>

namespace cachalot::sim {
namespace {

Status Logged(Code code) { return code == Code::kOk ? OkStatus() : Status(code, "so it was when it was logged"); }

}  // namespace

void ReplayedArchive::Begin(engine::ArchiveAnswers answers) {
  answers_ = std::move(answers);
  begun_ = ended_ = headers_ = 0;
}

// What is not in the log is refused, as where another file is open.
Status ReplayedArchive::BeginFile(Job job) {
  const Code code = begun_ < answers_.begins.size() ? answers_.begins[begun_++] : Code::kOverloaded;
  if (code != Code::kOk) return Logged(code);
  if (std::exchange(open_, true)) return Overloaded("another session is being saved or restored");
  job_ = job;
  return OkStatus();
}

Result<std::span<std::byte>> ReplayedArchive::PartRoom(uint64_t bytes) {
  if (room_.bytes().size() < bytes) {
    CACHALOT_ASSIGN_OR_RETURN(room_, AddressRange::Reserve(bytes));
  }
  return room_.bytes().first(bytes);
}

std::optional<tier::SessionArchive::Ended> ReplayedArchive::Poll() {
  if (job_ == Job::kNone || ended_ == answers_.ends.size()) return std::nullopt;
  Ended ended;
  ended.status = Logged(answers_.ends[ended_].code);
  ended.file_bytes = answers_.ends[ended_].file_bytes;
  const Job job = std::exchange(job_, Job::kNone);
  if (ended.status.ok() && job == Job::kReadHeader) ended.status = GiveHeader(&ended);
  if (ended.status.ok() && job == Job::kReadPart) ended.status = GivePart(&ended);
  ++ended_;
  return ended;
}

Status ReplayedArchive::GiveHeader(Ended* ended) {
  if (headers_ == answers_.headers.size()) return Corrupt("the log does not say what the saved session is");
  ended->header = std::move(answers_.headers[headers_++]);
  return OkStatus();
}

// The bytes are those of nothing: nobody looks at them.
Status ReplayedArchive::GivePart(Ended* ended) {
  uint64_t slots = 0;
  for (const uint32_t groups : answers_.ends[ended_].groups) {
    ended->groups.push_back(groups & static_cast<uint32_t>(groups_));
    slots += static_cast<uint64_t>(std::popcount(ended->groups.back()));
  }
  CACHALOT_ASSIGN_OR_RETURN(ended->bytes, PartRoom(slots * slot_bytes_));
  return OkStatus();
}

}  // namespace cachalot::sim
