#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "kv/eviction.h"
#include "sim/block_replay.h"
#include "sim/trace.h"
#include "sim/workload.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kMaxTraceBytes = uint64_t{1} << 32;

struct ReplayOptions {
  std::string trace;
  std::string policy{kv::EvictionPolicyNames().front()};
  uint64_t capacity_blocks = 0;
  uint32_t block_tokens = 512;
  uint64_t ghosts_per_block = sim::BlockReplayOptions{}.ghosts_per_block;
  uint64_t warm_up_requests = 0;
  double positions_per_row = 0;
  bool leaves_only = true;
  std::string workload;
  uint64_t seed = 1;
  uint32_t requests = 10'000;
  bool print_trace = false;
  bool json = false;
  template <class F>
  void Visit(F&& f) {
    f("policy", policy,
      fmt::format("Eviction policy: {}, or {}, which looks ahead.", fmt::join(kv::EvictionPolicyNames(), ", "),
                  sim::kOptimumPolicy));
    f("capacity-blocks", capacity_blocks, "Blocks that the cache holds.");
    f("block-tokens", block_tokens, "Tokens per block of the trace.");
    f("ghosts-per-block", ghosts_per_block, "Evicted blocks that are remembered, per block of capacity.");
    f("warm-up-requests", warm_up_requests, "Requests at the beginning that are not counted.");
    f("positions-per-row", positions_per_row,
      "Positions to which attention costs as much as the rest of a row; 0: all blocks cost alike.");
    f("leaves-only", leaves_only, "A block goes only when none that follows it is there, as in the server.");
    f("workload", workload,
      fmt::format("Instead of TRACE, generated requests: {}.", fmt::join(sim::WorkloadNames(), ", ")));
    f("seed", seed, "Of the generated requests.");
    f("requests", requests, "How many are generated.");
    f("print-trace", print_trace, "Print the trace instead of replaying it.");
    f("json", json, "Print JSON.");
  }
};

Result<sim::Trace> Load(const ReplayOptions& options) {
  if (options.trace.empty() == options.workload.empty()) {
    return Invalid("expected either TRACE or --workload");
  }
  if (!options.workload.empty()) {
    return sim::MakeWorkload(
        options.workload, {.seed = options.seed, .requests = options.requests, .block_tokens = options.block_tokens});
  }
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.trace, kMaxTraceBytes));
  Result<sim::Trace> trace = sim::ParseTrace(text, options.block_tokens);
  if (!trace.ok()) return trace.status().Annotate(options.trace);
  return trace;
}

void PrintJson(const ReplayOptions& options, const sim::BlockReplayResult& result) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.Key("trace").String(options.workload.empty() ? options.trace : options.workload);
  w.Key("policy").String(options.policy);
  w.Key("capacity_blocks").UInt(options.capacity_blocks);
  w.Key("block_tokens").UInt(options.block_tokens);
  w.Key("requests").UInt(result.requests);
  w.Key("blocks").UInt(result.blocks);
  w.Key("hit_blocks").UInt(result.hit_blocks);
  w.Key("block_hit_rate").Double(result.BlockHitRate());
  w.Key("input_tokens").UInt(result.input_tokens);
  w.Key("hit_tokens").UInt(result.hit_tokens);
  w.Key("token_hit_rate").Double(result.TokenHitRate());
  w.Key("saved_work_rate").Double(result.SavedWorkRate());
  w.Key("inserted_blocks").UInt(result.inserted_blocks);
  w.Key("evicted_blocks").UInt(result.evicted_blocks);
  w.EndObject();
  fmt::print("{}\n", out);
}

void PrintText(const sim::BlockReplayResult& result) {
  fmt::print("requests   {}\n", FormatCount(result.requests));
  fmt::print("blocks     {}, hit {} ({:.4f})\n", FormatCount(result.blocks), FormatCount(result.hit_blocks),
             result.BlockHitRate());
  fmt::print("tokens     {}, hit {} ({:.4f})\n", FormatCount(result.input_tokens), FormatCount(result.hit_tokens),
             result.TokenHitRate());
  fmt::print("work       {:.4f} of it saved\n", result.SavedWorkRate());
  fmt::print("evicted    {} of {} inserted blocks\n", FormatCount(result.evicted_blocks),
             FormatCount(result.inserted_blocks));
}

}  // namespace

Status ReplayCommand(const Arguments& arguments) {
  ReplayOptions options;
  FlagSet flags("replay", "Replays a request trace through the prefix cache and an eviction policy, without a model.");
  flags.Positional("TRACE", &options.trace, "Mooncake trace: JSON lines of timestamp, input_length, hash_ids", false);
  flags.AddAll(options);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  CACHALOT_ASSIGN_OR_RETURN(const sim::Trace trace, Load(options));
  if (options.print_trace) {
    fmt::print("{}", sim::FormatTrace(trace));
    return OkStatus();
  }
  CACHALOT_ASSIGN_OR_RETURN(const sim::BlockReplayResult result,
                            sim::ReplayBlocks(trace, {.policy = options.policy,
                                                      .capacity_blocks = options.capacity_blocks,
                                                      .ghosts_per_block = options.ghosts_per_block,
                                                      .warm_up_requests = options.warm_up_requests,
                                                      .positions_per_row = options.positions_per_row,
                                                      .leaves_only = options.leaves_only}));
  if (options.json) {
    PrintJson(options, result);
  } else {
    PrintText(result);
  }
  return OkStatus();
}

}  // namespace cachalot::cli
