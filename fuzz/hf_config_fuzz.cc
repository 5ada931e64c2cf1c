// Any bytes as a config.json: reading fails with a one-line kInvalid, or gives a model that can be sized.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/kv_layout.h"
#include "base/utf8.h"
#include "model/hf_config.h"
#include "plan/plan.h"

namespace cachalot {
namespace {

void CheckPlan(const plan::ModelShape& model) {
  plan::PlanRequest request;
  request.model = model;
  request.machine.device = *plan::FindDevice("h100");
  request.context_tokens = model.context_tokens == 0 ? 4096 : model.context_tokens;
  request.kv.format = *plan::FindKvFormat("f16");
  request.kv.reference_tokens = request.context_tokens;
  request.weight_format = plan::PublishedFormat(model);
  const Result<plan::Plan> planned = plan::MakePlan(request);
  if (!planned.ok()) {
    CACHALOT_CHECK(planned.status().code() == Code::kInvalid);
    return;
  }
  const uint64_t tokens = request.context_tokens;
  CACHALOT_CHECK(plan::PagedBytes(planned->sizes, tokens) <= plan::ReservedBytes(planned->sizes, tokens));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<model::HfConfig> config = model::ParseHfConfig(text, "fuzz");
  if (!config.ok()) {
    const std::string message = config.status().message();
    CACHALOT_CHECK(config.status().code() == Code::kInvalid);
    CACHALOT_CHECK(message.find('\n') == std::string::npos && FindInvalidUtf8(message) == std::string_view::npos);
    return 0;
  }
  CACHALOT_CHECK(!config->layers.empty());
  const Result<plan::ModelShape> shape = plan::ShapeOf(*config, "fuzz", "fuzz");
  if (shape.ok()) CheckPlan(*shape);
  return 0;
}

}  // namespace cachalot
