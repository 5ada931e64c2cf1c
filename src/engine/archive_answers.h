// What a SessionArchive answers an engine in one step, as an input log holds it.
// Threads:   plain data.
// Ownership: values.
// Invariant: each list is in the order of the answers.
// Cost:      a byte per save or restore that begins; per end 17, 4 per block of a part and, where a restore begins, the
//            session with its tokens. Nothing of the KV.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace cachalot::tier {
struct ArchiveHeader;
}

namespace cachalot::engine {

struct ArchiveEnd {
  Code code = Code::kOk;
  std::vector<uint32_t> groups;  // by block of a part that was read
  uint64_t file_bytes = 0;
};

// Whoever makes or moves one includes tier/archive_file.h.
struct ArchiveAnswers {
  std::vector<Code> begins;  // of saves and restores
  std::vector<ArchiveEnd> ends;
  std::vector<tier::ArchiveHeader> headers;  // one per restore whose first end is well

  bool empty() const { return begins.empty() && ends.empty(); }
};

}  // namespace cachalot::engine
