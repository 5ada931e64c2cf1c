#include "cli/replay_run.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/replay_files.h"
#include "sim/block_replay.h"
#include "sim/stack_distance.h"
#include "sim/trace_serving.h"

namespace cachalot::cli {
namespace {

Json Count(uint64_t count) { return static_cast<int64_t>(count); }

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

sim::BlockReplayOptions BlockOptionsOf(const ReplayOptions& options) {
  return {.policy = options.policy,
          .capacity_blocks = options.capacity_blocks,
          .ghosts_per_block = options.ghosts_per_block,
          .warm_up_requests = options.warm_up_requests,
          .positions_per_row = options.positions_per_row,
          .leaves_only = options.leaves_only};
}

void AddQuantiles(std::string_view name, const DurationHistogram& times, Json::Object* out) {
  for (const auto& [label, share] : {std::pair{"p50", 0.5}, std::pair{"p90", 0.9}, std::pair{"p99", 0.99}}) {
    Json seconds;  // of nothing there are none
    if (times.count() > 0) seconds = ToSeconds(times.Quantile(share));
    out->emplace_back(fmt::format("{}_{}_seconds", name, label), std::move(seconds));
  }
}

// What kept the machine busy, and what its memory held.
void AddLoad(const sim::TraceServingReport& report, Json::Object* out) {
  const engine::TierStats& tiers = report.last.tiers;
  out->emplace_back("steps", Count(report.last.steps));
  out->emplace_back("compute_seconds", ToSeconds(report.time.compute));
  out->emplace_back("transfer_seconds", ToSeconds(report.time.transfers));
  out->emplace_back("idle_seconds", ToSeconds(report.time.idle));
  out->emplace_back("bytes_from_pool", Count(report.moved.from_pool));
  out->emplace_back("bytes_to_pool", Count(report.moved.to_pool));
  out->emplace_back("disk_bytes_read", Count(report.moved.disk_read));
  out->emplace_back("disk_bytes_written", Count(report.moved.disk_written));
  out->emplace_back("host_evicted_blocks", Count(tiers.host_evicted_cells));
  out->emplace_back("host_refused_blocks", Count(tiers.host_dropped_blocks));
  out->emplace_back("disk_refused_blocks", Count(tiers.refused_blocks));
  out->emplace_back("prefetched_tokens", Count(tiers.prefetched_tokens));
  out->emplace_back("kv_blocks", Count(report.last.total_slots));
  out->emplace_back("mean_pool_in_use", report.mean_in_use);
  out->emplace_back("mean_waste", report.mean_waste);
}

Nanos SampleEvery(const sim::Trace& trace, const EngineReplayOptions& options) {
  if (options.series_every > 0) return Nanos(std::llround(options.series_every * 1e9));
  constexpr double kSamples = 300, kLeast = 0.1, kMost = 1e6;
  if (trace.requests.empty() || !(options.rate > 0)) return Nanos(std::chrono::seconds(1));
  const double span = ToSeconds(trace.requests.back().arrival - trace.requests.front().arrival);
  return Nanos(std::llround(std::clamp(span / options.rate / kSamples, kLeast, kMost) * 1e9));
}

// What no simulation could begin with.
Status CheckRanges(const EngineReplayOptions& options) {
  constexpr uint32_t kMostBlockTokens = 1024;
  constexpr uint64_t kMostContext = uint64_t{1} << 32, kMostTokenBytes = uint64_t{1} << 22;
  constexpr double kMostSeconds = 1e6;
  if (options.kv_memory.bytes == 0 && (options.kv_blocks == 0 || options.kv_blocks > kMostKvBlocks)) {
    return Invalid(
        fmt::format("--kv-blocks is {}; expected 1 to {}, or --kv-memory", options.kv_blocks, kMostKvBlocks));
  }
  if (options.kv_block_tokens == 0 || options.kv_block_tokens % 16 != 0 || options.kv_block_tokens > kMostBlockTokens) {
    return Invalid(fmt::format("--kv-block-tokens is {}; expected a multiple of 16 up to {}", options.kv_block_tokens,
                               kMostBlockTokens));
  }
  if (options.context && (*options.context == 0 || *options.context > kMostContext)) {
    return Invalid(fmt::format("--context is {}; expected 1 to {}", *options.context, kMostContext));
  }
  if (options.kv_bytes_per_token == 0 || options.kv_bytes_per_token > kMostTokenBytes) {
    return Invalid(
        fmt::format("--kv-bytes-per-token is {}; expected 1 to {}", options.kv_bytes_per_token, kMostTokenBytes));
  }
  if (!(options.host_latency >= 0 && options.host_latency <= kMostSeconds)) {
    return Invalid(fmt::format("--host-latency is {}; expected 0 to {} seconds", options.host_latency, kMostSeconds));
  }
  if (options.series_every != 0 && !(options.series_every >= 0.001 && options.series_every <= kMostSeconds)) {
    return Invalid(
        fmt::format("--series-every is {}; expected 0, or .001 to {} seconds", options.series_every, kMostSeconds));
  }
  return OkStatus();
}

Json::Object BlockFigures(const ReplayOptions& options, uint32_t block_tokens, const sim::BlockReplayResult& result) {
  Json::Object out;
  out.emplace_back("policy", options.policy);
  out.emplace_back("capacity_blocks", Count(options.capacity_blocks));
  out.emplace_back("block_tokens", Count(block_tokens));
  out.emplace_back("requests", Count(result.requests));
  out.emplace_back("blocks", Count(result.blocks));
  out.emplace_back("hit_blocks", Count(result.hit_blocks));
  out.emplace_back("block_hit_rate", result.BlockHitRate());
  out.emplace_back("input_tokens", Count(result.input_tokens));
  out.emplace_back("hit_tokens", Count(result.hit_tokens));
  out.emplace_back("token_hit_rate", result.TokenHitRate());
  out.emplace_back("saved_work_rate", result.SavedWorkRate());
  out.emplace_back("inserted_blocks", Count(result.inserted_blocks));
  out.emplace_back("evicted_blocks", Count(result.evicted_blocks));
  return out;
}

}  // namespace

Result<Json::Object> BlockReplay(const sim::Trace& trace, const ReplayOptions& options) {
  CACHALOT_ASSIGN_OR_RETURN(const sim::BlockReplayResult result, sim::ReplayBlocks(trace, BlockOptionsOf(options)));
  return BlockFigures(options, trace.block_tokens, result);
}

Result<StreamReplayed> StreamReplay(const TraceSource& source, const ReplayOptions& options) {
  CACHALOT_ASSIGN_OR_RETURN(sim::BlockReplay replay, sim::BlockReplay::Make(BlockOptionsOf(options)));
  CACHALOT_ASSIGN_OR_RETURN(sim::TraceFacts facts,
                            StreamTrace(source, [&](const sim::TraceRequest& request, uint32_t block_tokens) {
                              return replay.Take(request, block_tokens);
                            }));
  CACHALOT_ASSIGN_OR_RETURN(const sim::BlockReplayResult result, replay.Finish());
  Json::Object figures = BlockFigures(options, facts.block_tokens, result);
  return StreamReplayed{std::move(facts), std::move(figures)};
}

Result<Json::Array> CurveReplay(const sim::Trace& trace, const ReplayOptions& options) {
  CACHALOT_ASSIGN_OR_RETURN(
      const sim::StackDistances lru,
      sim::MeasureStackDistances(trace, {.sampled = options.sampled, .warm_up_requests = options.warm_up_requests}));
  Json::Array rows;
  for (const uint32_t capacity : options.curve) {
    sim::BlockReplayOptions bound = BlockOptionsOf(options);
    bound.policy = sim::kOptimumPolicy;
    bound.capacity_blocks = capacity;
    CACHALOT_ASSIGN_OR_RETURN(const sim::BlockReplayResult optimum, sim::ReplayBlocks(trace, bound));
    Json::Object row;
    row.emplace_back("capacity_blocks", Count(capacity));
    row.emplace_back("lru_block_hit_rate", lru.BlockHitRate(capacity));
    row.emplace_back("lru_token_hit_rate", lru.TokenHitRate(capacity));
    row.emplace_back("optimum_block_hit_rate", optimum.BlockHitRate());
    row.emplace_back("optimum_token_hit_rate", optimum.TokenHitRate());
    rows.emplace_back(std::move(row));
  }
  return rows;
}

Result<EngineReplayed> EngineReplay(const sim::Trace& trace, const EngineReplayOptions& options,
                                    const engine::EngineOptions& engine) {
  CACHALOT_RETURN_IF_ERROR(CheckRanges(options));
  if (engine.sessions.idle_seconds > 0 && !options.sessions) {
    return Invalid("--idle-timeout is of sessions, and without --sessions requests name none");
  }
  sim::TraceServingOptions serving;
  serving.engine = engine;
  CACHALOT_ASSIGN_OR_RETURN(ReplayMachine machine, MachineOf(options));
  serving.model = machine.model;
  serving.tiers = machine.tiers;
  serving.slots = machine.kv_blocks;
  serving.max_tokens = options.max_tokens;
  serving.rate = options.rate;
  serving.tenants = options.tenants;
  serving.sessions = options.sessions;
  serving.ttft_target = Nanos(static_cast<Nanos::rep>(engine.ttft_target * 1e9));
  serving.sample_every = SampleEvery(trace, options);
  CACHALOT_ASSIGN_OR_RETURN(Lines log, Lines::Open(options.request_log));
  if (!options.request_log.empty()) {
    serving.on_request = [&](const sim::ReplayedRequest& request) { log.Add(LogLine(request)); };
  }
  CACHALOT_ASSIGN_OR_RETURN(sim::TraceServingReport report, sim::ServeTrace(trace, serving));
  CACHALOT_RETURN_IF_ERROR(log.Close());
  if (!options.series.empty()) CACHALOT_RETURN_IF_ERROR(WriteSeries(options.series, report.samples));
  return EngineReplayed{std::move(report), std::move(machine.facts)};
}

Json::Object EngineFigures(const sim::TraceServingReport& report) {
  const double seconds = ToSeconds(report.duration);
  const auto per_second = [&](uint64_t amount) { return seconds > 0 ? static_cast<double>(amount) / seconds : 0; };
  Json::Object out;
  out.emplace_back("served_requests", Count(report.served));
  out.emplace_back("refused_requests", Count(report.refused));
  out.emplace_back("first_refusal", report.first_refusal.empty() ? Json() : Json(report.first_refusal));
  out.emplace_back("duration_seconds", seconds);
  out.emplace_back("prompt_tokens", Count(report.prompt_tokens));
  out.emplace_back("cached_tokens", Count(report.cached_tokens));
  out.emplace_back("token_hit_rate",
                   report.served == 0 ? Json() : Json(Share(report.cached_tokens, report.prompt_tokens)));
  out.emplace_back("hot_tokens", Count(report.cached_tokens - report.host_tokens - report.disk_tokens));
  out.emplace_back("host_tokens", Count(report.host_tokens));
  out.emplace_back("disk_tokens", Count(report.disk_tokens));
  out.emplace_back("output_tokens", Count(report.output_tokens));
  out.emplace_back("output_tokens_per_second", per_second(report.output_tokens));
  out.emplace_back("goodput_requests_per_second", per_second(report.within_target));
  AddQuantiles("ttft", report.ttft, &out);
  AddQuantiles("itl", report.itl, &out);
  AddQuantiles("e2e", report.e2e, &out);
  AddLoad(report, &out);
  const engine::EngineStats& stats = report.last;
  out.emplace_back("preemptions", Count(stats.preemptions));
  out.emplace_back("recomputed_tokens", Count(stats.tokens_recomputed));
  out.emplace_back("refault_tokens", Count(stats.refault_tokens));
  out.emplace_back("evicted_blocks", Count(stats.slots_evicted));
  out.emplace_back("pressure_some_seconds", ToSeconds(stats.pressure.some.total));
  out.emplace_back("pressure_full_seconds", ToSeconds(stats.pressure.full.total));
  out.emplace_back("limit_decreases", Count(stats.limit_decreases));
  for (size_t i = 0; i < kTokenClassNames.size(); ++i) {
    out.emplace_back(fmt::format("prompt_tokens_{}", kTokenClassNames[i]), Count(stats.hits.tokens[i]));
  }
  for (size_t i = 0; i < kShadowNames.size(); ++i) {
    out.emplace_back(fmt::format("hit_tokens_at_pool_x{}", kShadowNames[i]), Count(stats.hits.shadow_tokens[i]));
  }
  return out;
}

}  // namespace cachalot::cli
