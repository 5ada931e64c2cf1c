#include "plan/testing/shapes.h"

#include <gtest/gtest.h>

#include "model/hf_config.h"
#include "plan/models.h"

namespace cachalot::plan {

ModelShape KnownModel(const std::string& name) {
  const CatalogueModel* known = FindModel(name);
  EXPECT_NE(known, nullptr) << name;
  if (known == nullptr) return {};
  const Result<model::HfConfig> config = model::ParseHfConfig(known->config, name);
  EXPECT_TRUE(config.ok()) << config.status().message();
  if (!config.ok()) return {};
  const Result<ModelShape> shape = ShapeOf(*config, name, std::string(known->source));
  EXPECT_TRUE(shape.ok()) << shape.status().message();
  return shape.ok() ? *shape : ModelShape{};
}

PlanRequest RequestFor(const ModelShape& model, const std::string& device, uint64_t tokens) {
  PlanRequest request;
  request.model = model;
  request.machine.device = *FindDevice(device);
  request.weight_format = PublishedFormat(model);
  request.kv.format = *FindKvFormat("f16");
  request.kv.reference_tokens = tokens;
  request.context_tokens = tokens;
  return request;
}

KvSizes SizesOf(const ModelShape& model, const std::string& format, uint64_t reference_tokens) {
  const Result<KvSizes> sizes = SizeKv(model, {.format = *FindKvFormat(format), .reference_tokens = reference_tokens});
  EXPECT_TRUE(sizes.ok()) << sizes.status().message();
  return sizes.ok() ? *sizes : KvSizes{};
}

}  // namespace cachalot::plan
