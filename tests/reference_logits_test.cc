// --reference agrees with Hugging Face transformers in f32 on real models.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cpu/cpu_model.h"
#include "exec/device_memory.h"
#include "kernels/kernel_table.h"
#include "model/fetch.h"
#include "model/gguf.h"

namespace cachalot {
namespace {

constexpr uint32_t kChunk = 256;

// The last row's logits of a prompt.
std::vector<float> LogitsOf(const exec::CpuModel& model, ThreadPool& pool, const std::vector<TokenId>& ids) {
  const uint64_t blocks = (ids.size() + 15) / 16, groups = model.layout().groups.size();
  auto memory = exec::MakeCpuMemory(model.layout().slot_bytes, static_cast<uint32_t>(blocks * groups));
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  const auto executor = exec::MakeCpuExecutor(model, **memory, {kChunk, 1}, *kernels::RunnableTables().front(), pool);
  std::vector<std::vector<uint32_t>> slots(groups);
  std::vector<PageTableRef> pages;
  for (uint64_t g = 0; g < groups; ++g) {
    for (uint64_t b = 0; b < blocks; ++b) slots[g].push_back(static_cast<uint32_t>(g * blocks + b));
    pages.push_back({slots[g].data(), static_cast<uint32_t>(blocks), 0});
  }
  std::vector<float> last;
  for (size_t done = 0; done < ids.size(); done += kChunk) {
    const size_t count = std::min<size_t>(kChunk, ids.size() - done);
    const exec::SequenceRows rows{{ids.data() + done, count}, done, pages, done + count == ids.size() ? 1u : 0u};
    const auto logits = executor->Run({{&rows, 1}});
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    if (logits->rows == 1) last.assign(logits->row(0).begin(), logits->row(0).end());
  }
  return last;
}

void ExpectAgreement(const std::string& name, size_t longest) {
  const auto path = model::ResolveModel(name, model::DefaultFetchOptions());
  ASSERT_TRUE(path.ok()) << path.status().message();
  const auto file = model::GgufFile::Open(*path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ThreadPool pool(2);
  const auto model = exec::CpuModel::Load(*file, {.reference = true}, pool, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().message();

  std::ifstream in(CACHALOT_SOURCE_DIR "/tests/data/oracle/logits-" + name + ".json");
  const nlohmann::json recorded = nlohmann::json::parse(in);
  ASSERT_EQ(recorded["cases"].size(), 5u);
  for (const auto& c : recorded["cases"]) {
    const std::vector<TokenId> ids = c["ids"];
    if (ids.size() > longest) continue;
    const std::vector<float> logits = LogitsOf(*model, pool, ids);
    const double range = c["max"].get<double>() - c["min"].get<double>();
    double worst = 0;
    for (const auto& [id, value] : c["sample"].items()) {
      worst = std::max(worst, std::abs(logits[std::stoul(id)] - value.get<double>()));
    }
    std::printf("%s, %zu tokens: largest difference %.2e of the range\n", name.c_str(), ids.size(), worst / range);
    EXPECT_LE(worst / range, 2e-3) << ids.size() << " tokens";
    EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), c["argmax"].get<int64_t>());
  }
}

TEST(ReferenceLogits, OfSmolLm2AgreeUpTo700Tokens) { ExpectAgreement("smollm2", 700); }
TEST(ReferenceLogitsSlow, OfSmolLm2AgreeUpTo4000Tokens) { ExpectAgreement("smollm2", 4000); }
TEST(ReferenceLogitsSlow, OfGemmaAgreeUpTo4000TokensAndBeyondItsWindow) { ExpectAgreement("gemma3-270m", 4000); }

}  // namespace
}  // namespace cachalot
