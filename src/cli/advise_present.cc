#include "cli/advise_present.h"

#include <fmt/format.h>

#include "base/units.h"
#include "cli/known_shape.h"
#include "cli/step_curve_flag.h"
#include "plan/plan.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kLongContext = 131'072;  // of a model without a limit

bool IsMeasured(const AdviseOptions& options) { return !options.profile.empty() || !options.step_curve.empty(); }

Result<plan::PlanRequest> RequestFor(const AdviseOptions& options, const engine::EngineOptions& engine) {
  if (options.model.empty()) return Invalid("expected --model: a config.json, a GGUF, or a known name");
  CACHALOT_ASSIGN_OR_RETURN(const plan::ModelShape model, LoadShape(options.model));
  if (IsMeasured(options) && options.kv_memory.bytes == 0) {
    return Invalid(
        "--profile and --step-curve say how fast a machine is, not what memory it has: --kv-memory must say that");
  }
  if (!options.profile.empty() && !options.step_curve.empty()) {
    return Invalid("expected either --profile or --step-curve");
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
  plan.profile = options.profile;
  CACHALOT_ASSIGN_OR_RETURN(plan::PlanRequest request, RequestOf(plan, options.model, model));
  if (!options.step_curve.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(request.machine.measured, ParseStepCurve(options.step_curve));
  }
  CACHALOT_RETURN_IF_ERROR(plan::MakePlan(request).status());  // whatever is out of range
  return request;
}

std::string ReorderNote(const sim::TrafficProfile& profile) {
  const sim::Divergence& worst = profile.divergences.front();
  if (worst.change == sim::Change::kEdited) {
    return fmt::format("put what changes after token {} behind what stays the same", FormatCount(worst.position));
  }
  return fmt::format("after token {}, put what requests have in common first and always in one order",
                     FormatCount(worst.position));
}

}  // namespace

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
  setting.admission_reserve = engine.admission_reserve;
  setting.max_tokens = options.max_tokens;
  setting.host_slots = options.host_memory.bytes / setting.slot_bytes;
  setting.disk_slots = options.disk_size.bytes / setting.slot_bytes;
  return present;
}

plan::TrafficFacts FactsOf(const sim::TrafficProfile& profile) {
  plan::TrafficFacts facts;
  facts.context_p99 = profile.context.p99;
  facts.context_most = profile.context.most;
  facts.output_p90 = profile.output.p90;
  facts.output_most = profile.output.most;
  facts.asked_most = profile.asked_most;
  facts.distinct_tokens = profile.prompt_tokens - profile.reusable_tokens + profile.output_tokens;
  const uint64_t lost = profile.edited_tokens + profile.moved_tokens;
  facts.reorder = profile.text_known && lost * 100 > profile.prompt_tokens;
  if (facts.reorder) facts.reorder_note = ReorderNote(profile);
  return facts;
}

}  // namespace cachalot::cli
