// ReplayedArchive is the place where a server's sessions are saved as its input log tells of it.
// Threads:   one.
// Ownership: owns what is left of the log's answers.
// Invariant: the engine that asked then is told what it was told. Whatever a log says: one file at a time, a restore
//            that begins well brings a header, groups are those of the layout, and their slots have room.
// Cost:      addresses for the largest part, which nobody fills.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/kv_layout.h"
#include "engine/archive_answers.h"
#include "sim/address_range.h"
#include "tier/session_archive.h"

namespace cachalot::sim {

class ReplayedArchive final : public tier::SessionArchive {
 public:
  explicit ReplayedArchive(const KvLayout& layout)
      : slot_bytes_(layout.slot_bytes), groups_((uint64_t{1} << layout.groups.size()) - 1) {}

  // Of the next step.
  void Begin(engine::ArchiveAnswers answers);

  Status BeginSave(const std::string&, const tier::ArchiveHeader&) override { return BeginFile(Job::kWrite); }
  Result<std::span<std::byte>> PartRoom(uint64_t bytes) override;
  void WritePart(std::vector<uint32_t>) override { job_ = Job::kWrite; }
  void FinishSave() override { job_ = Job::kWrite; }
  Status BeginRestore(const std::string&, const std::string&) override { return BeginFile(Job::kReadHeader); }
  void ReadPart() override { job_ = Job::kReadPart; }
  void Close() override { open_ = false; }

  bool under_way() const override { return job_ != Job::kNone; }
  std::optional<Ended> Poll() override;
  void OnEnd(std::function<void()>) override {}
  std::optional<Nanos> WakeAt() const override { return std::nullopt; }

 private:
  enum class Job : uint8_t { kNone, kWrite, kReadHeader, kReadPart };

  Status BeginFile(Job job);
  Status GiveHeader(Ended* ended);
  Status GivePart(Ended* ended);

  const uint64_t slot_bytes_;
  const uint64_t groups_;  // bits
  engine::ArchiveAnswers answers_;
  size_t begun_ = 0, ended_ = 0, headers_ = 0;  // of them
  bool open_ = false;
  Job job_ = Job::kNone;  // under way
  AddressRange room_;     // of one part
};

}  // namespace cachalot::sim
