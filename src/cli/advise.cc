// `cachalot advise`: which wall traffic hits first on a machine, and what to do about it.
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "cli/advise_run.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/known_shape.h"
#include "cli/plan_options.h"
#include "cli/trace_source.h"
#include "plan/advice_report.h"
#include "sim/reorder.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kLongContext = 131'072;  // of a model without a limit

struct AdviseOptions {
  std::string model;
  std::string device = "h100";
  uint32_t tensor = 1;
  std::string weights;
  std::string kv_format = "f16";
  uint32_t kv_block_tokens = 16;
  uint64_t context = 0;
  std::string profile;
  ByteSize kv_memory;
  ByteSize device_memory;
  double memory_share = PlanOptions{}.memory_share;
  double compute_share = PlanOptions{}.compute_share;
  double link_share = PlanOptions{}.link_share;
  ByteSize host_memory;
  ByteSize disk_size;
  uint32_t max_tokens = 0;
  double rate = 1;
  uint32_t simulate = 2000;
  uint32_t threads = 0;
  bool json = false;
  template <class F>
  void Visit(F&& f) {
    f("model", model, "Model, as `cachalot plan` takes it: config.json, GGUF, or a known name.");
    f("device", device, "Device that it runs on, by name (plan --list-devices).");
    f("tensor", tensor, "Devices that share it.");
    f("weights", weights, "Format of weights: bf16, fp8, q4_k, ...; as published where not given.");
    f("kv-format", kv_format, "Format of KV: f16, fp8, int8, int4, ...");
    f("kv-block-tokens", kv_block_tokens, "Tokens per block of the KV pool.");
    f("context", context, "Most tokens of a sequence; 0: the model's context.");
    f("profile", profile, "Instead of --device, what `cachalot calibrate` measured. Needs --kv-memory.");
    f("kv-memory", kv_memory, "KV pool; 0: what the device has left beside weights and activations.");
    f("device-memory", device_memory, "Memory of a device, instead of its sheet's.");
    f("memory-share", memory_share, "Of a device's memory that is used.");
    f("compute-share", compute_share, "Of the stated arithmetic that computing a prompt reaches.");
    f("link-share", link_share, "Of the stated rate of links and memory that is reached.");
    f("host-memory", host_memory, "Host memory for KV that there is now.");
    f("disk-size", disk_size, "Disk for KV that there is now.");
    f("max-tokens", max_tokens, "Tokens that each request asks for; 0: as many as its answer has.");
    f("rate", rate, "Requests come so much faster than the trace says.");
    f("simulate", simulate, "Requests that are simulated, from the first on; 0: all.");
    f("threads", threads, "Simulations at once; 0: as many as there are processors.");
    f("json", json, "Print JSON.");
  }
};

Result<plan::PlanRequest> RequestFor(const AdviseOptions& options, const engine::EngineOptions& engine) {
  if (options.model.empty()) return Invalid("expected --model: a config.json, a GGUF, or a known name");
  CACHALOT_ASSIGN_OR_RETURN(const plan::ModelShape model, LoadShape(options.model));
  if (!options.profile.empty() && options.kv_memory.bytes == 0) {
    return Invalid("--profile says how fast a machine is, not what memory it has: --kv-memory must say that");
  }
  if (options.tensor == 0) return Invalid("--tensor is 0, expected at least 1");
  PlanOptions plan;
  plan.device = options.device;
  plan.tensor = options.tensor;
  plan.weights = options.weights;
  plan.kv_format = options.kv_format;
  plan.block_tokens = options.kv_block_tokens;
  plan.step_rows = engine.step_rows;
  plan.context = options.context;
  if (plan.context == 0) plan.context = model.context_tokens == 0 ? kLongContext : model.context_tokens;
  plan.device_memory = options.device_memory;
  plan.memory_share = options.memory_share;
  plan.compute_share = options.compute_share;
  plan.link_share = options.link_share;
  plan.calibration = options.profile;
  CACHALOT_ASSIGN_OR_RETURN(const plan::PlanRequest request, RequestOf(plan, model));
  CACHALOT_RETURN_IF_ERROR(plan::MakePlan(request).status());  // whatever is out of range
  return request;
}

Result<plan::Present> PresentOf(const AdviseOptions& options, const engine::EngineOptions& engine) {
  plan::Present present;
  CACHALOT_ASSIGN_OR_RETURN(present.request, RequestFor(options, engine));
  present.kv_bytes = options.kv_memory.bytes;
  CACHALOT_ASSIGN_OR_RETURN(present.setting, plan::SettingOf(present.request, present.kv_bytes));
  plan::Setting& setting = present.setting;
  setting.max_sequences = engine.max_sequences;
  setting.step_rows = engine.step_rows;
  setting.prefill_chunk = engine.prefill_chunk;
  setting.prefix_cache = engine.prefix_cache;
  setting.thrash_control = engine.thrash_control;
  setting.eviction = engine.eviction;
  setting.admission = engine.admission;
  setting.max_tokens = options.max_tokens;
  setting.host_slots = options.host_memory.bytes / setting.slot_bytes;
  setting.disk_slots = options.disk_size.bytes / setting.slot_bytes;
  if (!options.profile.empty()) setting.host_link.reset();
  return present;
}

sim::Trace Beginning(sim::Trace trace, uint32_t requests) {
  if (requests > 0 && trace.requests.size() > requests) trace.requests.resize(requests);
  return trace;
}

std::string ReorderNote(const sim::TrafficProfile& profile) {
  const sim::Divergence& worst = profile.divergences.front();
  if (worst.change == sim::Change::kEdited) {
    return fmt::format("put what changes after token {} behind what stays the same", FormatCount(worst.position));
  }
  return fmt::format("after token {}, put what requests have in common first and always in one order",
                     FormatCount(worst.position));
}

plan::TrafficFacts FactsOf(const sim::TrafficProfile& profile) {
  plan::TrafficFacts facts;
  facts.context_p99 = profile.context.p99;
  facts.context_most = profile.context.most;
  facts.output_p90 = profile.output.p90;
  facts.output_most = profile.output.most;
  facts.distinct_tokens = profile.prompt_tokens - profile.reusable_tokens + profile.output_tokens;
  const uint64_t lost = profile.edited_tokens + profile.moved_tokens;
  facts.reorder = profile.text_known && lost * 100 > profile.prompt_tokens;
  if (facts.reorder) facts.reorder_note = ReorderNote(profile);
  return facts;
}

}  // namespace

Status AdviseCommand(const Arguments& arguments) {
  TraceSource source;
  AdviseOptions options;
  engine::EngineOptions engine;
  FlagSet flags("advise", "Says which wall the traffic of a trace hits first on a machine, and what to do about it.");
  flags.Positional("TRACE", &source.path, kTraceHelp, false);
  flags.AddAll(source);
  flags.AddAll(options);
  flags.AddAll(engine);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  CACHALOT_ASSIGN_OR_RETURN(plan::Present present, PresentOf(options, engine));
  CACHALOT_ASSIGN_OR_RETURN(const sim::TraceFile file, LoadTrace(source));
  plan::AdvisedTraffic traffic{.source = Describe(source, file), .ttft_target = engine.ttft_target};
  traffic.profile = sim::ProfileTraffic(file.trace, sim::FindOverlap(file.trace));
  present.traffic = FactsOf(traffic.profile);

  const sim::Trace simulated = Beginning(file.trace, options.simulate);
  traffic.simulated_requests = simulated.requests.size();
  sim::Trace reordered;
  if (present.traffic.reorder) reordered = sim::Reordered(simulated, sim::FindOverlap(simulated));
  const AdviseRun run(simulated, std::move(reordered),
                      {.engine = engine, .rate = options.rate, .threads = options.threads});
  CACHALOT_ASSIGN_OR_RETURN(const plan::Diagnosis diagnosis, plan::Diagnose(present, std::ref(run)));
  const plan::Report report = plan::BuildAdviceReport(traffic, present, diagnosis);
  fmt::print("{}", options.json ? plan::ReportAsJson(report) : plan::ReportAsText(report));
  return OkStatus();
}

}  // namespace cachalot::cli
