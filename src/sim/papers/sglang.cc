// Depth-first order of a radix tree computes each of its edges once, with a cache of no more than the longest request
// (SGLang, Theorem 3.1); other orders beside it, all through the server's prefix index.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "kv/eviction.h"
#include "kv/kv_manager.h"
#include "sched/waiting_order.h"
#include "sim/papers/papers.h"
#include "sim/sim_server.h"

namespace cachalot::sim {
namespace {

constexpr uint32_t kBlockTokens = 16;
constexpr uint32_t kVocabulary = 50'000;
constexpr uint32_t kDepth = 4;  // edges from the root to a request

using Tokens = std::vector<TokenId>;

// Requests of a random radix tree in depth-first order.
struct Tree {
  std::vector<Tokens> requests;
  uint64_t edge_tokens = 0;
  size_t longest = 0;
};

class TreeMaker {
 public:
  explicit TreeMaker(uint64_t seed) : random_(seed) {}
  Tree Make() {
    Grow({}, 0);
    return std::move(tree_);
  }

 private:
  // Edges are whole blocks, the last one a token short: with that of the answer it is whole too.
  void Grow(const Tokens& path, uint32_t depth) {
    if (depth == kDepth) {
      tree_.longest = std::max(tree_.longest, path.size());
      tree_.requests.push_back(path);
      return;
    }
    const uint64_t children = depth == 0 ? 3 : 2 + random_.Below(4);
    for (uint64_t child = 0; child < children; ++child) {
      Tokens longer = path;
      const uint64_t edge = kBlockTokens * (1 + random_.Below(12)) - (depth + 1 == kDepth ? 1 : 0);
      for (uint64_t i = 0; i < edge; ++i) longer.push_back(static_cast<TokenId>(random_.Below(kVocabulary)));
      tree_.edge_tokens += edge;
      Grow(longer, depth + 1);
    }
  }
  SplitMix64 random_;
  Tree tree_;
};

uint32_t BlocksOf(uint64_t tokens) { return static_cast<uint32_t>(kv::BlocksFor(tokens, kBlockTokens)); }

// A prefix index and requests that run one by one.
class Server {
 public:
  static Result<std::unique_ptr<Server>> Make(uint32_t slots) {
    CACHALOT_ASSIGN_OR_RETURN(auto policy, kv::MakeEvictionPolicy("lru"));
    return std::unique_ptr<Server>(new Server(slots, std::move(policy)));
  }
  // How many tokens had to be computed.
  Result<uint64_t> Run(const Tokens& request) {
    kv_.SetNow(Nanos(++time_));
    const SequenceId sequence = kv_.Create();
    const uint64_t found = kv_.Attach(sequence, request, request.size()).tokens;
    const std::span<const TokenId> rest = std::span(request).subspan(found);
    const kv::Growth growth{sequence, static_cast<uint32_t>(rest.size()), rest};
    CACHALOT_ASSIGN_OR_RETURN(kv::StepReservation step, kv_.Reserve({&growth, 1}));
    std::move(step).Commit();
    kv_.Free(sequence);
    return rest.size();
  }
  uint64_t Resident(const Tokens& request) const { return kv_.FindWhole({}, request, request.size()); }

 private:
  Server(uint32_t slots, std::unique_ptr<kv::EvictionPolicy> policy)
      : kv_({.block_tokens = kBlockTokens, .windows = {0}, .slots = slots}, std::move(policy)) {}
  kv::KvManager kv_;
  uint64_t time_ = 0;
};

// Tokens computed when requests run in this order.
Result<uint64_t> InOrder(const std::vector<Tokens>& requests, uint32_t slots) {
  CACHALOT_ASSIGN_OR_RETURN(const auto server, Server::Make(slots));
  uint64_t computed = 0;
  for (const Tokens& request : requests) {
    CACHALOT_ASSIGN_OR_RETURN(const uint64_t own, server->Run(request));
    computed += own;
  }
  return computed;
}

// When the next is always the one of which most is resident, as the scheduler orders those that wait.
Result<uint64_t> LongestPrefixFirst(std::vector<Tokens> waiting, uint32_t slots) {
  CACHALOT_ASSIGN_OR_RETURN(const auto server, Server::Make(slots));
  sched::WaitingOrder order;
  std::vector<sched::WaitingView> views;
  uint64_t computed = 0;
  while (!waiting.empty()) {
    views.clear();
    for (const Tokens& request : waiting) views.push_back({.resident_tokens = server->Resident(request)});
    const uint32_t next = order.Of(views, UINT32_MAX).front();
    CACHALOT_ASSIGN_OR_RETURN(const uint64_t own, server->Run(waiting[next]));
    computed += own;
    waiting.erase(waiting.begin() + next);
  }
  return computed;
}

// When all wait in the engine's queue, and it runs one at a time.
Result<uint64_t> InEngine(const std::vector<Tokens>& requests, uint32_t slots) {
  engine::EngineOptions options{.max_queue = static_cast<uint32_t>(requests.size()), .max_sequences = 1};
  const exec::SimOptions model{.vocabulary = kVocabulary, .curve = {1e-3, 1e-5, 0, 0, 0}};
  CACHALOT_ASSIGN_OR_RETURN(const auto server, SimServer::Make(options, model, slots));
  engine::StepInput input;
  for (const Tokens& request : requests) {
    engine::GenerateRequest& asked = input.arrivals.emplace_back();
    asked.id = RequestId(input.arrivals.size());
    asked.prompt = request;
    asked.max_tokens = 1;
    asked.sampling.temperature = 0;
  }
  engine::StepOutput output = server->Step(std::move(input));
  if (!output.rejections.empty()) return Invalid(output.rejections.front().message);
  while (!server->engine().idle()) output = server->Step({});
  return output.stats.prompt_tokens_computed;
}

void Shuffle(std::vector<Tokens>& requests, uint64_t seed) {
  SplitMix64 random(seed);
  for (size_t i = requests.size(); i > 1; --i) std::swap(requests[i - 1], requests[random.Below(i)]);
}

}  // namespace

Result<PaperResult> SgLang(const PaperInput& input) {
  const Tree tree = TreeMaker(input.seed).Make();
  const auto slots = BlocksOf(tree.longest + 1);
  std::vector<Tokens> shuffled = tree.requests;
  Shuffle(shuffled, input.seed);
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t depth_first, InOrder(tree.requests, slots));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t longest_first, LongestPrefixFirst(shuffled, slots));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t engine, InEngine(shuffled, slots));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t random, InOrder(shuffled, slots));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t large, InOrder(shuffled, 4 * slots));
  CACHALOT_ASSIGN_OR_RETURN(
      const uint64_t all, InOrder(shuffled, BlocksOf(tree.edge_tokens) + static_cast<uint32_t>(tree.requests.size())));

  const auto edges = static_cast<double>(tree.edge_tokens);
  const auto row = [&](std::string figure, uint64_t computed) {
    return EqualRow(std::move(figure), FigureUnit::kCount, static_cast<double>(computed), edges);
  };
  const auto above = [&](std::string figure, uint64_t computed) {
    return ClaimRow(std::move(figure), FigureUnit::kCount, static_cast<double>(computed), "more than the edges",
                    computed > tree.edge_tokens);
  };
  uint64_t prompts = 0;
  for (const Tokens& request : tree.requests) prompts += request.size();
  return PaperResult{
      .setting = fmt::format("{} requests, the leaves of a random tree of depth {}, the longest of {} tokens; edges of "
                             "whole blocks of {}; cache of {} blocks",
                             tree.requests.size(), kDepth, tree.longest, kBlockTokens, slots),
      .rows = {row("tokens computed, depth-first", depth_first),
               row("tokens computed, longest resident prefix first", longest_first),
               ClaimRow("tokens computed, the engine's own queue", FigureUnit::kCount, static_cast<double>(engine),
                        "fewer than in order of arrival", engine < random),
               above("tokens computed, random order", random),
               above("tokens computed, random order, cache of 4 x", large),
               row("tokens computed, random order, all fits", all),
               ShownRow("tokens of all prompts", FigureUnit::kCount, static_cast<double>(prompts))}};
}

}  // namespace cachalot::sim
