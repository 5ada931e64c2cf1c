// Workloads: traces made up after what serving looks like, for tests and for trying policies without data of one's own.
// Threads:   pure functions.
// Ownership: none.
// Invariant: the same name and options give the same trace on one build; what Trace promises holds.
// Cost:      linear in the blocks of the trace.
//
// chat:  people talk: a few shared system prompts, think times about two minutes; the longer a talk, the likelier it
//        goes on.
// agent: programs talk: a long shared tool prompt, many steps, one or two seconds between most of them.
// rag:   questions about documents, some of them asked about far more than others (Zipf); the document comes before
//        the question.
// scan:  chat, and now and then a burst of long prompts that never come back.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "sim/trace.h"

namespace cachalot::sim {

struct WorkloadOptions {
  uint64_t seed = 1;
  uint32_t requests = 10'000;
  uint32_t block_tokens = 512;
};

std::span<const std::string_view> WorkloadNames();

// kInvalid, with the names, for any other; kInvalid for blocks of 0 tokens or more than ten million requests.
Result<Trace> MakeWorkload(std::string_view name, const WorkloadOptions& options);

}  // namespace cachalot::sim
