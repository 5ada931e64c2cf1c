// What `cachalot plan`, `advise` and `calibrate` print, write and refuse, and what a replay leaves in files.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/known_shape.h"
#include "cli/plan_options.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/executor.h"
#include "model/gguf.h"
#include "model/model_spec.h"
#include "model/testing/tiny_model.h"

namespace cachalot::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string PathOf(const std::string& name) { return testing::TempDir() + "planning_commands_" + name; }

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What the command prints; it must go well.
std::string Printed(Status (*command)(const Arguments&), const Arguments& arguments) {
  testing::internal::CaptureStdout();
  const Status status = command(arguments);
  std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(status.ok()) << status.message();
  return printed;
}

std::string WriteGguf() {
  const std::string path = PathOf("tiny.gguf");
  EXPECT_TRUE(WriteFileAtomically(path, model::TinyModel({}).Build()).ok());
  return path;
}

TEST(PlanCommand, OfAGgufCountsItsTensorsAndItsKv) {
  const std::string path = WriteGguf();
  const model::GgufFile file = model::GgufFile::Open(path).value();
  uint64_t bytes = 0, values = 0;
  for (const model::GgufTensor& tensor : file.tensors()) bytes += tensor.bytes.size();
  const plan::ModelShape shape = LoadShape(path).value();
  EXPECT_EQ(shape.file_bytes, bytes);
  // By hand: of 2 layers Q and output (40 x 40), K and V (40 x 8), three matrices of 40 x 48; the tied embedding.
  values = 2 * (2 * 40 * 40 + 2 * 40 * 8 + 3 * 40 * 48) + 67 * 40;
  EXPECT_EQ(shape.weights.stored(), values);
  ASSERT_EQ(shape.kv_layers.size(), 2u);
  EXPECT_EQ(shape.kv_layers[0], (LayerKvShape{.kv_heads = 1, .k_dim = 8, .v_dim = 8}));

  const json report = json::parse(Printed(PlanCommand, {path, "--json"}));
  EXPECT_EQ(report["tables"]["kv"]["rows"][0]["bytes"]["value"], 2 * (8 + 8) * 2);  // f16
  EXPECT_EQ(report["tables"]["memory"]["rows"][2]["bytes"]["value"], bytes);
}

TEST(PlanCommand, OfAGgufOnTheHostTakesTheActivationsOfThisServersExecutor) {
  const std::string path = WriteGguf();
  const model::ModelSpec spec = model::ReadModelSpec(model::GgufFile::Open(path).value()).value();
  const uint64_t own = exec::CpuWorkspaceBytes(spec, {512, 64}, 256);
  const auto activations = [&](Arguments more) -> uint64_t {
    more.insert(more.end(), {path, "--json"});
    return json::parse(Printed(PlanCommand, more))["tables"]["memory"]["rows"][3]["bytes"]["value"];
  };
  EXPECT_EQ(activations({"--device=epyc-9654"}), own);
  EXPECT_EQ(activations({"--device=epyc-9654", "--step-rows=64"}), exec::CpuWorkspaceBytes(spec, {64, 64}, 256));
  EXPECT_EQ(activations({"--device=epyc-9654", "--activations=5KiB"}), 5u << 10);
  EXPECT_THAT(Printed(PlanCommand, {path, "--device=epyc-9654"}),
              HasSubstr("those of this server's executor, in 32 bits, for steps of 512"));
  // A device with memory of its own: as of a config.
  EXPECT_EQ(activations({"--device=h100"}), plan::ActivationBytes(LoadShape(path).value(), 512, 64));
  EXPECT_THAT(Printed(PlanCommand, {path, "--device=h100"}),
              HasSubstr("an estimate for steps of 512 rows, in 16 bits, as devices keep them"));
}

// What `serve smollm2` says when it starts.
TEST(PlanCommand, TheServersActivationsOfSmolLm2) {
  const model::ModelSpec spec{.architecture = "llama",
                              .layers = 30,
                              .width = 576,
                              .heads = 9,
                              .kv_heads = 3,
                              .head_dim = 64,
                              .ffn_width = 1536,
                              .vocabulary = 49'152,
                              .context_tokens = 8192,
                              .ropes = {{}},
                              .layer = {}};
  EXPECT_EQ(FormatBytes(exec::CpuWorkspaceBytes(spec, {512, 64}, 8192)), "26.8 MiB");
}

TEST(PlanCommand, WritesJsonAndHtmlOfItsDefaults) {
  const std::string html = PathOf("plan.html");
  const json report = json::parse(Printed(PlanCommand, {"llama-3.1-8b", "--json", "--html=" + html}));
  EXPECT_THAT(report["title"].get<std::string>(), HasSubstr("Llama 3.1 8B on NVIDIA H100"));
  EXPECT_THAT(report["answers"][0].get<std::string>(), StartsWith("1 user(s) at 8,192 tokens need 1 x NVIDIA H100"));
  const std::string written = ContentsOf(html);
  EXPECT_THAT(written, StartsWith("<!doctype html>"));
  EXPECT_THAT(written, HasSubstr("<svg"));
  EXPECT_THAT(written, HasSubstr("Llama 3.1 8B on NVIDIA H100"));
}

TEST(PlanningCommands, NameWhatIsNotKnown) {
  EXPECT_THAT(PlanCommand({"gpt-9"}).message(), StartsWith("model \"gpt-9\" is no file, folder or known name"));
  EXPECT_THAT(PlanCommand({"llama-3.1-8b", "--device=abacus"}).message(),
              StartsWith("--device \"abacus\" is not known, expected one of "));
  EXPECT_THAT(PlanCommand({"llama-3.1-8b", "--kv-format=int7"}).message(), HasSubstr("\"int7\" is not known"));
  EXPECT_EQ(PlanCommand({}).message(), "expected MODEL, or --list-models");
  EXPECT_THAT(AdviseCommand({"--workload=chat", "--model=gpt-9"}).message(), StartsWith("model \"gpt-9\""));
  EXPECT_THAT(AdviseCommand({"--workload=chat", "--model=llama-3.1-8b", "--device=abacus"}).message(),
              StartsWith("--device \"abacus\""));
  EXPECT_THAT(AdviseCommand({"--workload=chat"}).message(), StartsWith("expected --model"));
  EXPECT_THAT(CalibrateCommand({"gpt-9"}).message(), HasSubstr("gpt-9"));
  EXPECT_THAT(CalibrateCommand({PathOf("no such file.gguf")}).message(), HasSubstr("no such file.gguf"));
}

TEST(AdviseCommand, PrintsJsonOfItsDefaults) {
  const json report = json::parse(
      Printed(AdviseCommand, {"--workload=chat", "--requests=20", "--model=llama-3.1-8b", "--json", "--threads=1"}));
  EXPECT_THAT(report["title"].get<std::string>(), StartsWith("Advice for Llama 3.1 8B on NVIDIA H100"));
  for (const char* table : {"traffic", "prefixes", "capacity", "cost", "constraints", "no_help"}) {
    EXPECT_TRUE(report["tables"].contains(table)) << table;
  }
}

TEST(ReplayFiles, HaveALinePerRequestAndTheStateOverTime) {
  const std::string log = PathOf("requests.jsonl"), series = PathOf("series.csv");
  const json figures = json::parse(
      Printed(ReplayCommand, {"--workload=chat", "--requests=40", "--engine", "--step-curve=0.01,5e-5,4e-9,0,2e-5",
                              "--kv-blocks=2000", "--request-log=" + log, "--series=" + series, "--json"}));
  std::istringstream lines(ContentsOf(log));
  uint64_t served = 0, refused = 0, cached = 0, output = 0;
  for (std::string line; std::getline(lines, line);) {
    const json request = json::parse(line);
    if (request.contains("refused")) {
      ++refused;
      continue;
    }
    ++served;
    cached += request["cached_tokens"].get<uint64_t>();
    output += request["output_tokens"].get<uint64_t>();
    EXPECT_LE(request["cached_tokens"], request["prompt_tokens"]);
    EXPECT_GT(request["ttft_seconds"], 0);
    EXPECT_GE(request["e2e_seconds"], request["ttft_seconds"]);
  }
  EXPECT_EQ(served + refused, 40u);
  EXPECT_EQ(served, figures["served_requests"]);
  EXPECT_EQ(cached, figures["cached_tokens"]);
  EXPECT_EQ(output, figures["output_tokens"]);

  std::istringstream rows(ContentsOf(series));
  std::string heading;
  std::getline(rows, heading);
  EXPECT_THAT(heading, StartsWith("seconds,running_sequences,waiting_requests,pool_in_use,pool_idle,"));
  const auto columns = std::ranges::count(heading, ',');
  double last = -1, generated = 0;
  size_t count = 0;
  for (std::string row; std::getline(rows, row); ++count) {
    EXPECT_EQ(std::ranges::count(row, ','), columns);
    std::vector<double> values;
    std::istringstream cells(row);
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(std::stod(cell));
    EXPECT_GT(values[0], last);
    EXPECT_GE(values[7], generated);
    EXPECT_LE(values[3] + values[4], 1.0001);  // of the pool
    last = values[0];
    generated = values[7];
  }
  EXPECT_GT(count, 20u);
  EXPECT_LE(generated, figures["output_tokens"]);
  EXPECT_GT(generated, figures["output_tokens"].get<double>() / 2);
}

}  // namespace
}  // namespace cachalot::cli
