#include "plan/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/testing/shapes.h"

namespace cachalot::plan {
namespace {

Report ReportFor(const std::string& name, const std::string& device = "h100") {
  PlanRequest request = RequestFor(KnownModel(name), device, 2048);
  request.users = 16;
  request.host_bytes = uint64_t{1} << 38;
  request.disk_bytes = uint64_t{1} << 40;
  request.concurrency = ConcurrencyProfile{.mean = 20, .p50 = 18, .p99 = 60, .peak = 90};
  request.prices = {.device_hour = 2.5, .storage_gib_month = 0.1, .keep_hours = 1};
  const Result<Plan> plan = MakePlan(request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? BuildReport(*plan) : Report{};
}

const Table* Find(const Report& report, const std::string& key) {
  for (const Table& table : report.tables) {
    if (table.key == key) return &table;
  }
  return nullptr;
}

TEST(Cells, AlwaysHaveAUnit) {
  EXPECT_EQ(FormatCell(Bytes(327'680)), "327,680 B");
  EXPECT_EQ(FormatCell(Bytes(uint64_t{10} << 30)), "10 GiB");
  EXPECT_EQ(FormatCell(Seconds(0.429)), "429 ms");
  EXPECT_EQ(FormatCell(Seconds(0)), "0 us");
  EXPECT_EQ(FormatCell(Rate(25.6e9)), "25.6 GB/s");
  EXPECT_EQ(FormatCell(Speed(15'974.2)), "15,974 tokens/s");
  EXPECT_EQ(FormatCell(Tokens(1)), "1 token");
  EXPECT_EQ(FormatCell(Sequences(2)), "2 sequences");
  EXPECT_EQ(FormatCell(Share(0.123)), "12.3 %");
  EXPECT_EQ(FormatCell(Bits(4.5)), "4.5 bits");
  EXPECT_EQ(FormatCell(Dollars(0.25)), "$ 0.25");
}

TEST(Report, HasARowAndAColumnForEveryCellOfEveryKnownModel) {
  for (const std::string name : {"llama-3.1-8b", "deepseek-v3", "gemma-3n-e4b", "jamba-v0.1", "mamba-2.8b", "falcon-7b",
                                 "opt-13b", "gpt-oss-20b", "kimi-linear-48b"}) {
    const Report report = ReportFor(name);
    for (const Table& table : report.tables) {
      for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << name << " " << table.key;
    }
    for (const char* key :
         {"model", "kv", "kv_formats", "weights", "memory", "fits_by_context", "fits_by_concurrency", "tensor_shards",
          "context_shards", "tiers", "waste", "moving", "decoding", "all_reduce", "devices", "concurrency", "price"}) {
      EXPECT_NE(Find(report, key), nullptr) << name << " " << key;
    }
  }
}

TEST(Report, ShowsTheMeanSizedMemoryFailing) {
  const Report report = ReportFor("llama-3.1-8b");
  const Table* table = Find(report, "concurrency");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(FormatCell(table->rows[0][4]), "40 sequences");
  EXPECT_EQ(FormatCell(table->rows[0][6]), "fails at p99");
  EXPECT_EQ(FormatCell(table->rows[2][6]), "holds at p99");
  EXPECT_EQ(FormatCell(table->rows[3][6]), "holds always");
  EXPECT_NE(report.answers.back().find("sized for the mean of 20 sequences fails"), std::string::npos);
}

TEST(Report, AsJsonCarriesEveryTableAndUnit) {
  const Report report = ReportFor("llama-3.1-8b");
  const nlohmann::json json = nlohmann::json::parse(ReportAsJson(report));
  EXPECT_EQ(json["tables"].size(), report.tables.size());
  for (const Table& table : report.tables) {
    EXPECT_EQ(json["tables"][table.key]["rows"].size(), table.rows.size()) << table.key;
  }
  EXPECT_EQ(json["tables"]["kv"]["rows"][0]["bytes"]["value"], 131'072);
  EXPECT_EQ(json["tables"]["kv"]["rows"][0]["bytes"]["unit"], "B");
}

TEST(Report, AsTextHasEveryTitle) {
  const Report report = ReportFor("llama-3.1-8b");
  const std::string text = ReportAsText(report);
  for (const Table& table : report.tables) EXPECT_NE(text.find("\n" + table.title + "\n"), std::string::npos);
}

TEST(Report, AsHtmlStandsAlone) {
  const std::string html = ReportAsHtml(ReportFor("llama-3.1-8b"));
  EXPECT_NE(html.find("<svg"), std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_EQ(html.find("href="), std::string::npos);
}

TEST(Report, NamesFromAFileCannotBecomeMarkup) {
  PlanRequest request = RequestFor(KnownModel("llama-3.1-8b"), "h100", 2048);
  request.model.name = "<script>alert(1)</script>&\"";
  const std::string html = ReportAsHtml(BuildReport(MakePlan(request).value()));
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
}

TEST(Report, AnswersForTheDevicesThatAreGiven) {
  PlanRequest request = RequestFor(KnownModel("llama-3.1-8b"), "l40s", 8192);
  request.machine.shards.tensor = 2;
  request.choose_shards = false;
  EXPECT_TRUE(BuildReport(MakePlan(request).value())
                  .answers[0]
                  .ends_with("need 2 x NVIDIA L40S: 1 group(s) of 2 tensor shard(s), room for 71 sequences."));
  request.users = 72;
  EXPECT_NE(BuildReport(MakePlan(request).value()).answers[0].find("4 x NVIDIA L40S: 2 group(s) of 2"),
            std::string::npos);
  request.model = KnownModel("llama-3.1-70b");
  EXPECT_NE(BuildReport(MakePlan(request).value()).answers[0].find("not even for one sequence of 8,192 tokens on 2"),
            std::string::npos);
}

}  // namespace
}  // namespace cachalot::plan
