// SessionArchive is what the engine sees of the place where sessions are saved by name with their KV, and read again.
// Threads:   belongs to the engine thread.
// Ownership: that of the implementation; room for the bytes of one part is the archive's.
// Invariant: one file at a time; every call that begins something ends exactly once, through Poll. A file that a
//            restore was begun with is whole and was written by this server: all of it was read before that ended.
// Cost:      no call waits for the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "tier/archive_file.h"

namespace cachalot::tier {

class SessionArchive {
 public:
  struct Ended {
    Status status;
    std::optional<ArchiveHeader> header;  // of a BeginRestore that went well
    std::vector<uint32_t> groups;         // of ReadPart, as in ArchivedKv
    std::span<const std::byte> bytes;     // likewise; until the next part or Close
    uint64_t file_bytes = 0;              // so far, or of the whole file
  };

  virtual ~SessionArchive() = default;

  // Begin: kInvalid for a bad name, kOverloaded while another file is open. Each other call requires that the one
  // before has ended well. Every owner has names of their own; a saved session belongs to its owner.
  virtual Status BeginSave(const std::string& name, const ArchiveHeader& header) = 0;
  // For the bytes of the part that is written next, until that has ended. kUnavailable: there is no room.
  virtual Result<std::span<std::byte>> PartRoom(uint64_t bytes) = 0;
  // Of the blocks whose bytes lie in that room.
  virtual void WritePart(std::vector<uint32_t> groups) = 0;
  virtual void FinishSave() = 0;
  virtual Status BeginRestore(const std::string& owner, const std::string& name) = 0;
  virtual void ReadPart() = 0;
  // The file is closed; one that was being saved leaves nothing. Requires that nothing is under way.
  virtual void Close() = 0;

  virtual bool under_way() const = 0;
  virtual std::optional<Ended> Poll() = 0;
  // Called from any thread whenever there is something to Poll, until it is replaced; not under way once this returns.
  virtual void OnEnd(std::function<void()> call) = 0;
  // When Poll will have something without a call.
  virtual std::optional<Nanos> WakeAt() const = 0;
};

}  // namespace cachalot::tier
