// TenantTerms are what a tenant may have at once, and its share of the machine where several want it.
// Threads:   plain data.
// Ownership: none.
// Invariant: a cap of 0 is no cap; a weight is at least 1.
// Cost:      none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/ids.h"

namespace cachalot {

using TenantId = Id<struct TenantTag>;  // who a request is charged to; dense, from 0

// What a request asks for, or what several ask for together. As a cap: the most of each.
struct Load {
  uint64_t context_tokens = 0;  // of a sequence at its end: the prompt and what may be generated
  uint64_t output_tokens = 0;   // that may be generated, all sequences together
  uint64_t sequences = 0;
  uint64_t kv_blocks = 0;  // that may be held at one time; what is shared counts for each who shares it

  Load& operator+=(const Load& other) {
    context_tokens += other.context_tokens;
    output_tokens += other.output_tokens;
    sequences += other.sequences;
    kv_blocks += other.kv_blocks;
    return *this;
  }
};

struct TenantTerms {
  Load request;        // most of one request
  Load tenant;         // most of all that run at once
  uint64_t queue = 0;  // most requests that wait
  uint32_t weight = 1;

  // Of one request, by both caps.
  Load Most() const {
    const auto least = [](uint64_t a, uint64_t b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); };
    return {least(request.context_tokens, tenant.context_tokens), least(request.output_tokens, tenant.output_tokens),
            least(request.sequences, tenant.sequences), least(request.kv_blocks, tenant.kv_blocks)};
  }

  template <class F>
  void Visit(F&& f) {
    f("request-context", request.context_tokens,
      "Most tokens of one request, prompt and answer; 0: the model's context.");
    f("request-output", request.output_tokens, "Most tokens that one request may generate, all choices; 0: no cap.");
    f("request-sequences", request.sequences, "Most sequences (n) of one request; 0: no cap but --max-sequences.");
    f("request-blocks", request.kv_blocks, "Most KV blocks that one request may come to hold; 0: no cap but the pool.");
    f("tenant-context", tenant.context_tokens,
      "Most tokens, prompts and answers, of a tenant's running requests; 0: no cap.");
    f("tenant-output", tenant.output_tokens, "Most tokens that a tenant's running requests may generate; 0: no cap.");
    f("tenant-sequences", tenant.sequences, "Most sequences of a tenant that run at once; 0: no cap.");
    f("tenant-blocks", tenant.kv_blocks,
      "Most KV blocks that a tenant's running requests may come to hold; 0: no cap.");
    f("tenant-queue", queue,
      "Most requests of a tenant that wait; 0: all of --max-queue for a single tenant, else as many as places are "
      "free.");
  }
};

}  // namespace cachalot
