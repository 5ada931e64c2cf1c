#include "sim/papers/papers.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cachalot::sim {
namespace {

constexpr std::string_view kMooncakeTrace =
    "FAST25-release/traces/conversation_trace.jsonl of github.com/kvcache-ai/Mooncake";

constexpr Paper kPapers[] = {
    {.name = "pagedattention",
     .title = "Share of KV memory that holds tokens",
     .source = "PagedAttention (Kwon et al., SOSP 2023), figure 2",
     .differs = "lengths are drawn from log-normal laws with ShareGPT's means instead of ShareGPT; the spread of "
                "outputs is fitted to the first row, so that only the others are predictions",
     .trace = {},
     .run = PagedAttention},
    {.name = "sglang",
     .title = "Depth-first order of a radix tree computes each edge once",
     .source = "SGLang (Zheng et al., NeurIPS 2024), theorem 3.1",
     .differs = "edges are whole blocks (to the token, the block that is copied from needs a place as well), and the "
                "engine's queue lets nobody be overtaken more than 16 times",
     .trace = {},
     .run = SgLang},
    {.name = "mooncake",
     .title = "Block hit rate by policy and capacity",
     .source = "Mooncake (Qin et al., FAST 2025), released conversation trace",
     .differs = "the paper's own table is of a trace that was not released: these are independent figures of the "
                "released one; cost is the server's own policy",
     .trace = kMooncakeTrace,
     .run = Mooncake},
    {.name = "vllm-watermark",
     .title = "A share of the pool kept free at admission",
     .source = "vLLM, pull request 44594",
     .differs = "steps take what a cost curve like theirs says (a 7B model on a GB200), and optimistic admission "
                "charges a whole prompt, where vLLM's charges its first chunk",
     .trace = {},
     .run = VllmWatermark},
    {.name = "lightllm",
     .title = "The future peak of a batch that grows and ends",
     .source = "LightLLM's past-future scheduler (Gong et al., ASPLOS 2025)",
     .differs = "nothing: it is the paper's example",
     .trace = {},
     .run = LightLlm},
    {.name = "block-size",
     .title = "How much of a shared beginning is used again",
     .source = "whole blocks of 64 against 16, as prefix caches work",
     .differs = "the server finds prefixes to the token and copies the block in which they end, so the size of blocks "
                "matters only where whole blocks are asked for",
     .trace = {},
     .run = BlockSize},
    {.name = "survivors",
     .title = "Blocks that come free when tokens are evicted",
     .source = "the closed form (1 - p)^B, for p of the tokens kept and blocks of B",
     .differs = "tokens are kept by chance, where attention keeps neighbours more often; the server evicts no single "
                "tokens, for this reason",
     .trace = {},
     .run = Survivors},
    {.name = "concur",
     .title = "Thrash of many agents before the pool is full",
     .source = "CONCUR (Chen et al., ICML 2026)",
     .differs = "made-up agents on a cost curve instead of Qwen3-32B on GPUs; CONCUR's control acts every ten "
                "seconds, and usage is what running requests hold",
     .trace = {},
     .run = Concur},
    {.name = "cake",
     .title = "Where computing from the front meets loading from the back",
     .source = "Cake (Jin et al., 2024)",
     .differs = "a cost curve and a link without latency; the loader comes down in parts of several blocks, and the "
                "front stops anywhere",
     .trace = {},
     .run = Cake},
};

}  // namespace

std::span<const Paper> Papers() { return kPapers; }

Result<const Paper*> FindPaper(std::string_view name) {
  const auto found = std::ranges::find(kPapers, name, &Paper::name);
  if (found != std::end(kPapers)) return &*found;
  std::vector<std::string_view> names;
  for (const Paper& paper : kPapers) names.push_back(paper.name);
  return Invalid(fmt::format("unknown paper \"{}\"; expected one of {}", name, fmt::join(names, ", ")));
}

Result<PaperResult> RunPaper(const Paper& paper, const PaperInput& input) {
  if (!paper.trace.empty() && input.trace == nullptr) {
    return Invalid(fmt::format("\"{}\" needs --trace: {}", paper.name, paper.trace));
  }
  return paper.run(input);
}

}  // namespace cachalot::sim
