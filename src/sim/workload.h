// Workloads: traces made up after what serving looks like, for tests and for trying policies without data of one's own.
// Threads:   pure functions.
// Ownership: none.
// Invariant: the same name and options give the same trace on one build; what Trace promises holds. The text of all
//            requests and answers is told, so that a prompt which repeats an answer is known to.
// Cost:      linear in the tokens of the trace; memory of a stream for the conversations that are open at a time.
//
// chat:         people talk: a few shared system prompts, think times about two minutes; the longer a talk, the
// likelier
//               it goes on.
// system:       single questions to services, each behind a long system prompt of its service.
// agent:        programs talk: a long shared tool prompt, many steps, one or two seconds between most of them; now and
//               then a person is asked, which takes minutes.
// rag:          questions about documents, some of them asked about far more than others (Zipf); the document comes
//               before the question.
// rag-ordered:  questions behind six passages out of thousands, which stand in one order whatever the question.
// rag-shuffled: the same, but passages stand in the order of how well they fit, which differs from question to
// question. document:     a long document each, and several questions about it. code:         completions while
// somebody types: the file up to the cursor, every few seconds; sometimes the cursor
//               moves back.
// scan:         chat, and now and then a burst of long prompts that never come back.
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

// The same one after the other: a block's id is then a hash of its words and all before.
Status StreamWorkload(std::string_view name, const WorkloadOptions& options, const RequestSink& sink);

}  // namespace cachalot::sim
