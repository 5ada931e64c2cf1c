#include "cli/known_shape.h"

#include <filesystem>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"
#include "cli/advise_present.h"
#include "cli/plan_options.h"
#include "cli/replay_run.h"
#include "model/fingerprint.h"
#include "model/gguf.h"
#include "model/testing/tiny_model.h"
#include "sim/workload.h"

namespace cachalot::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string PathOf(const std::string& name) { return testing::TempDir() + "known_shape_" + name; }

std::string WriteModel(const std::string& name, uint64_t seed) {
  const std::string path = PathOf(name + ".gguf");
  EXPECT_TRUE(WriteFileAtomically(path, model::TinyModel({.seed = seed}).Build()).ok());
  return path;
}

std::string FingerprintOf(const std::string& path) {
  return HexOf(model::ModelFingerprint(model::GgufFile::Open(path).value()));
}

std::string WriteCalibrationOf(const std::string& model) {
  const std::string path = PathOf("calibration.json");
  const cost::CalibrationProfile profile{
      .key = {.model = FingerprintOf(model), .numerics = "cpu-1", .isa = "avx2", .threads = 2, .kv_type = "f16"},
      .source = "a test",
      .curve = {0.01, 5e-5, 4e-9, 0, 2e-5},
      .tiers = {}};
  EXPECT_TRUE(WriteFileAtomically(path, cost::ProfileText(profile)).ok());
  return path;
}

TEST(Calibration, OfAnotherModelIsRefusedByWhoeverIsToldBoth) {
  const std::string own = WriteModel("own", 1), other = WriteModel("other", 2);
  const std::string path = WriteCalibrationOf(own);
  EXPECT_TRUE(ReadCalibrationOf(path, own).ok());
  const auto names_both = AllOf(HasSubstr(FingerprintOf(own)), HasSubstr(FingerprintOf(other)), HasSubstr(other));
  EXPECT_THAT(ReadCalibrationOf(path, other).status().message(), names_both);

  const auto by_plan = [&](const std::string& model) {
    PlanOptions options;
    options.profile = path;
    return RequestOf(options, model, LoadShape(model).value()).status().message();
  };
  EXPECT_EQ(by_plan(own), "");
  EXPECT_EQ(RequestOf({.profile = path}, own, LoadShape(own).value())->activations_by,
            "this server's executor, in 32 bits");
  EXPECT_THAT(by_plan(other), names_both);
  EXPECT_THAT(by_plan("llama-3.1-8b"), AllOf(HasSubstr(FingerprintOf(own)), HasSubstr("of llama-3.1-8b there is")));

  const AdviseOptions advise{.model = "llama-3.1-8b", .profile = path, .kv_memory = {uint64_t{1} << 30}};
  EXPECT_THAT(PresentOf(advise, {}).status().message(), HasSubstr("of llama-3.1-8b there is a config only"));

  const sim::Trace trace = sim::MakeWorkload("chat", {.requests = 3, .block_tokens = 64}).value();
  EngineReplayOptions replay{.engine = true, .profile = path, .kv_blocks = 4000, .kv_model = "llama-3.1-70b"};
  EXPECT_THAT(EngineReplay(trace, replay, {}).status().message(), HasSubstr("of llama-3.1-70b there is a config only"));
  replay.kv_model = "";
  const Result<EngineReplayed> replayed = EngineReplay(trace, replay, {});  // whose KV it is, nobody says
  ASSERT_TRUE(replayed.ok());
  EXPECT_EQ(replayed->machine.step_costs, "a test");
}

TEST(KnownShape, AFolderWithoutAConfigIsNotTakenForAName) {
  const std::string folder = PathOf("folder");
  std::filesystem::create_directories(folder);
  EXPECT_EQ(LoadShape(folder).status().message(), "the folder " + folder + " has no config.json");
}

}  // namespace
}  // namespace cachalot::cli
