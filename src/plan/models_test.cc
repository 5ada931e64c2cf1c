#include "plan/models.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "plan/devices.h"
#include "plan/links.h"
#include "plan/report.h"
#include "plan/testing/shapes.h"

namespace cachalot::plan {
namespace {

nlohmann::json Recorded() {
  std::ifstream file(CACHALOT_SOURCE_DIR "/tests/data/plan/models.json");
  return nlohmann::json::parse(file);
}

TEST(Catalogue, HasFortyModelsAndTwentyDevicesWithNamesOfTheirOwn) {
  std::set<std::string_view> models, devices, links;
  for (const CatalogueModel& model : Models()) EXPECT_TRUE(models.insert(model.name).second) << model.name;
  for (const Device& device : Devices()) EXPECT_TRUE(devices.insert(device.name).second) << device.name;
  for (const Link& link : Links()) EXPECT_TRUE(links.insert(link.name).second) << link.name;
  EXPECT_GE(models.size(), 40u);
  EXPECT_GE(devices.size(), 20u);
}

TEST(Catalogue, DevicesNameTheirSourceAndLinksThatExist) {
  for (const Device& device : Devices()) {
    EXPECT_FALSE(device.source.empty()) << device.name;
    EXPECT_GT(device.memory_bytes, 0u) << device.name;
    EXPECT_GT(device.memory_rate, 0) << device.name;
    EXPECT_GT(device.flops16, 0) << device.name;
    EXPECT_NE(FindLink(device.peer_link), nullptr) << device.name;
    EXPECT_TRUE(device.host_link.empty() || FindLink(device.host_link) != nullptr) << device.name;
  }
}

// tools/make_plan_cases.py recorded what transformers builds of the same configs.
TEST(Catalogue, HasTheWeightsThatTransformersBuilds) {
  const nlohmann::json recorded = Recorded();
  for (const CatalogueModel& model : Models()) {
    const double expected = recorded.at(std::string(model.name)).at("weights").get<double>();
    const double counted = static_cast<double>(KnownModel(std::string(model.name)).weights.stored());
    EXPECT_NEAR(counted / expected, 1, 0.002) << model.name;
  }
}

TEST(Catalogue, KeepsTheKvThatTransformersKeeps) {
  const nlohmann::json recorded = Recorded();
  size_t compared = 0;
  for (const CatalogueModel& model : Models()) {
    const nlohmann::json& expected = recorded.at(std::string(model.name)).at("kv_values");
    if (expected.is_null()) continue;
    ++compared;
    const ModelShape shape = KnownModel(std::string(model.name));
    EXPECT_EQ(SizesOf(shape).token_bytes, 2 * expected.get<uint64_t>()) << model.name;
  }
  EXPECT_GE(compared, 40u);
}

TEST(Catalogue, KeepsTheStateThatTransformersKeeps) {
  const nlohmann::json recorded = Recorded();
  size_t compared = 0;
  for (const CatalogueModel& model : Models()) {
    const nlohmann::json& expected = recorded.at(std::string(model.name)).at("state_values");
    if (expected.is_null() || expected == 0) continue;
    ++compared;
    EXPECT_EQ(KnownModel(std::string(model.name)).state_values, expected.get<uint64_t>()) << model.name;
  }
  EXPECT_GE(compared, 4u);
}

TEST(Models, ReadEveryKeyOfTheirConfigsOnWhichKvHangs) {
  for (const CatalogueModel& model : Models()) {
    EXPECT_EQ(IgnoredKeysText(KnownModel(std::string(model.name))), "") << model.name;
  }
  ModelShape shape = KnownModel("llama-3.1-8b");
  shape.ignored_keys = {"kv_lora_rank", "sliding_window"};
  EXPECT_EQ(IgnoredKeysText(shape),
            "llama-3.1-8b: its config has kv_lora_rank, sliding_window, which the architecture llama does not read: KV "
            "is counted without");
  const Report report = BuildReport(MakePlan(RequestFor(shape, "h100", 2048)).value());
  EXPECT_NE(std::ranges::find(report.answers, IgnoredKeysText(shape) + "."), report.answers.end());
}

}  // namespace
}  // namespace cachalot::plan
