// Share of the KV memory that holds tokens, where sequences get one piece of memory each, and where they get blocks.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/kv_ledger.h"
#include "sim/papers/buddy_heap.h"
#include "sim/papers/closed_loop.h"
#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

constexpr uint32_t kContext = 2048;       // OPT
constexpr uint32_t kPoolTokens = 15'696;  // 12 GB of an A100 beside OPT-13B, in whole blocks of 16
constexpr uint32_t kRequests = 2000;
constexpr uint32_t kConcurrency = 128;

// ShareGPT's means as the paper gives them. It does not say how lengths spread: that of outputs is taken with which the
// longest reservation comes out as there.
constexpr LengthLaw kPrompts{161.31, 1.0};
constexpr LengthLaw kOutputs{337.99, 0.95};

// What is set aside for a sequence when it begins.
uint32_t Longest(const RequestLengths&) { return kContext; }
uint32_t PowerOfTwo(const RequestLengths& request) {
  return std::min(request.prompt_tokens + std::bit_ceil(request.output_tokens), kContext);
}
uint32_t Exact(const RequestLengths& request) { return request.prompt_tokens + request.output_tokens; }

// The mean share of the heap that holds tokens, while others wait; who comes first begins first.
double ContiguousShare(const std::vector<RequestLengths>& requests, uint32_t (*reserve)(const RequestLengths&)) {
  struct Running {
    uint32_t at, reserved, held, left;
  };
  BuddyHeap heap(kPoolTokens);
  std::vector<Running> running;
  double held = 0;
  uint64_t steps = 0;
  for (size_t next = 0; next < requests.size();) {
    for (; next < requests.size(); ++next) {
      const uint32_t reserved = reserve(requests[next]);
      const std::optional<uint32_t> at = heap.Take(reserved);
      if (!at) break;
      running.push_back({*at, reserved, requests[next].prompt_tokens, requests[next].output_tokens});
    }
    for (Running& sequence : running) {
      held += sequence.held++;
      if (--sequence.left == 0) heap.Give(sequence.at, sequence.reserved);
    }
    ++steps;
    std::erase_if(running, [](const Running& sequence) { return sequence.left == 0; });
  }
  return held / static_cast<double>(steps) / kPoolTokens;
}

struct PagedShares {
  double of_blocks = 0;  // of the blocks that sequences have
  double of_pool = 0;
};

// The same by the engine's own ledger.
Result<PagedShares> Paged(const std::vector<RequestLengths>& requests) {
  ClosedLoopOptions options{.requests = requests};
  options.concurrency = kConcurrency;
  options.slots = kPoolTokens / 16;
  options.model.context_tokens = 2 * kContext;
  options.model.curve = {0.02, 5e-5, 4e-9, 0, 1e-6};
  options.engine.max_sequences = kConcurrency;
  options.engine.admission = "optimistic";
  options.engine.admission_reserve = 0;
  options.engine.prefix_cache = false;
  options.engine.shadow_index = false;
  options.engine.thrash_control = false;
  double live = 0, taken = 0, all = 0;
  options.on_step = [&](Nanos begun, Nanos ended, const engine::EngineStats& stats) {
    if (stats.waiting_requests == 0) return;
    const double seconds = ToSeconds(ended - begun);
    const KvLedger& ledger = stats.ledger;
    live += seconds * static_cast<double>(ledger.live_bytes);
    taken += seconds * static_cast<double>(ledger.total_bytes - ledger.free_bytes);
    all += seconds * static_cast<double>(ledger.total_bytes);
  };
  CACHALOT_RETURN_IF_ERROR(ServeClosedLoop(options).status());
  return PagedShares{.of_blocks = live / taken, .of_pool = live / all};
}

}  // namespace

Result<PaperResult> PagedAttention(const PaperInput& input) {
  SplitMix64 random(input.seed);
  std::vector<RequestLengths> requests;
  for (uint32_t i = 0; i < kRequests; ++i) {
    const uint32_t prompt = kPrompts.Draw(random, kContext / 2);
    requests.push_back({prompt, kOutputs.Draw(random, kContext - prompt)});
  }
  using enum FigureUnit;
  PaperResult result{
      .setting = fmt::format("{} requests, {} tokens of KV; log-normal lengths with ShareGPT's means: {:.0f} tokens in "
                             "(deviation {:.0f} %), {:.0f} out ({:.0f} %)",
                             kRequests, kPoolTokens, kPrompts.mean, kPrompts.variation * 100, kOutputs.mean,
                             kOutputs.variation * 100),
      .rows = {}};
  result.rows.push_back(NearRow("contiguous, the longest", kPercent, ContiguousShare(requests, Longest), .204, .02));
  result.rows.push_back(
      NearRow("contiguous, power of two", kPercent, ContiguousShare(requests, PowerOfTwo), .268, .05));
  result.rows.push_back(NearRow("contiguous, length known", kPercent, ContiguousShare(requests, Exact), .382, .05));
  CACHALOT_ASSIGN_OR_RETURN(const PagedShares paged, Paged(requests));
  result.rows.push_back(NearRow("paged, of the blocks taken", kPercent, paged.of_blocks, .963, .03));
  result.rows.push_back(NearRow("paged, of the whole pool", kPercent, paged.of_pool, .963, .03));
  return result;
}

}  // namespace cachalot::sim
