#include "plan/report.h"

#include <map>
#include <utility>
#include <variant>

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

std::vector<std::string> CellsOf(const Table& table, size_t row) {
  std::vector<std::string> cells;
  for (const Cell& cell : table.rows[row]) cells.push_back(FormatCell(cell));
  return cells;
}

TEST(Report, ShowsTheMeanSizedMemoryFailingAndWhatItsDevicesHold) {
  const Report report = ReportFor("llama-3.1-8b");
  const Table* table = Find(report, "concurrency");
  ASSERT_NE(table, nullptr);
  using Cells = std::vector<std::string>;
  EXPECT_EQ(CellsOf(*table, 0), (Cells{"mean", "20 sequences", "5 GiB", "fails at p99", "1 device", "227 sequences",
                                       "0 sequences", "0 sequences", "holds always"}));
  EXPECT_EQ(CellsOf(*table, 2)[3], "holds at p99");
  EXPECT_EQ(CellsOf(*table, 3)[3], "holds always");
  EXPECT_EQ(report.answers.back(),
            "KV memory for no more than the mean of 20 sequences fails: at p99 40 of 60 have no room, at the peak 70 "
            "of 90; the 1 x NVIDIA H100 SXM 80 GB that it takes holds 227: enough for the peak.");
}

TEST(Report, DevicesForTheMeanFailWhereTheyHoldNoMore) {
  // An L4 holds 9 sequences of 2,048 tokens, so that of three one is for the mean.
  PlanRequest request = RequestFor(KnownModel("llama-3.1-8b"), "l4", 2048);
  request.machine.shards.tensor = 1;
  request.choose_shards = false;
  const uint64_t held = MakePlan(request).value().group.sequences;
  ASSERT_GT(held, 2u);
  request.concurrency = ConcurrencyProfile{.mean = held - 1, .p50 = held - 1, .p99 = 2 * held, .peak = 3 * held};
  const Report report = BuildReport(MakePlan(request).value());
  const Table& table = *Find(report, "concurrency");
  EXPECT_EQ(CellsOf(table, 0)[6], FormatCell(Sequences(held)));
  EXPECT_EQ(CellsOf(table, 0)[8], "fails at p99");
  EXPECT_EQ(CellsOf(table, 2)[4], "2 devices");
  EXPECT_EQ(CellsOf(table, 2)[8], "holds at p99");
  EXPECT_EQ(CellsOf(table, 3)[8], "holds always");
}

TEST(Report, NamesTheContextShardsOfAGroup) {
  PlanRequest request = RequestFor(KnownModel("llama-3.1-8b"), "h100", 2048);
  request.users = 128;
  request.machine.shards = {.tensor = 8, .context = 4};
  request.choose_shards = false;
  EXPECT_NE(BuildReport(MakePlan(request).value())
                .answers[0]
                .find("need 32 x NVIDIA H100 SXM 80 GB: 1 group(s) of 8 tensor shard(s) x 4 context shards, room for"),
            std::string::npos);
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

TEST(Report, TheMemoryChartIsOfTheGroupsFixedBytesAndOneSequenceMoreEach) {
  PlanRequest request = RequestFor(KnownModel("llama-3.1-8b"), "l40s", 2048);
  request.users = 16;
  request.concurrency = ConcurrencyProfile{.mean = 20, .p50 = 18, .p99 = 60, .peak = 900};
  request.machine.shards.tensor = 2;
  request.choose_shards = false;
  const Plan plan = MakePlan(request).value();
  const Chart chart = BuildReport(plan).chart;
  const DeviceMemory& memory = plan.group.memory;
  EXPECT_EQ(chart.fixed_bytes, 2 * (memory.weight_bytes + memory.activation_bytes));
  EXPECT_EQ(chart.sequence_bytes, uint64_t{2048} * 131'072);
  EXPECT_EQ(chart.most_sequences, 900u * 5 / 4);
  std::vector<std::pair<std::string, uint64_t>> marks;
  for (const Chart::Mark& mark : chart.concurrencies) marks.emplace_back(mark.label, mark.value);
  for (const Chart::Mark& mark : chart.capacities) marks.emplace_back(mark.label, mark.value);
  const uint64_t usable = memory.usable_bytes;
  EXPECT_EQ(marks, (std::vector<std::pair<std::string, uint64_t>>{{"users", 16},
                                                                  {"mean", 20},
                                                                  {"p50", 18},
                                                                  {"p99", 60},
                                                                  {"peak", 900},
                                                                  {"2 x l40s", 2 * usable},
                                                                  {"4 x l40s", 4 * usable},
                                                                  {"8 x l40s", 8 * usable}}));
}

TEST(Report, SaysWhichLinksBearAllReduce) {
  const Report report = ReportFor("llama-3.1-70b");
  const Table& table = *Find(report, "all_reduce");
  std::map<std::string, std::string> verdicts;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string> cells = CellsOf(table, i);
    verdicts[cells[0]] = cells[6];
    const double share = std::get<double>(table.rows[i][5].value);
    EXPECT_EQ(cells[6], share < 0.1 ? "fine" : share < 0.5 ? "costly" : "the link is the bottleneck") << cells[0];
  }
  EXPECT_EQ(verdicts.at("NVLink 4, eighteen links"), "fine");
  EXPECT_EQ(verdicts.at("Ethernet 1 Gbit/s"), "the link is the bottleneck");
  EXPECT_EQ(verdicts.at("Internet, 1 Gbit/s over 20 ms"), "the link is the bottleneck");
}

// By its name.
std::vector<std::string> RowOf(const Table& table, const std::string& name) {
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (FormatCell(table.rows[i][0]) == name) return CellsOf(table, i);
  }
  return {};
}

TEST(Report, LinksAndDisksThatWereMeasuredStandForThoseOfTheSheet) {
  PlanRequest request = RequestFor(KnownModel("llama-3.1-8b"), "a100", 4096);
  request.prices = {.device_hour = 2.5, .storage_gib_month = 0.1, .keep_hours = 1};
  const std::string on_sheet = "NVMe disk on PCIe 4.0 x4", disk = "Disk, measured", link = "Host link, measured";
  const auto report_of = [&] { return BuildReport(MakePlan(request).value()); };
  EXPECT_FALSE(RowOf(*Find(report_of(), "moving"), on_sheet).empty());

  request.machine.tiers[TierIndex(TierId::kDisk)][static_cast<size_t>(Direction::kUp)] = TierRate{0.001, 2e9};
  request.machine.measured = StepCurve{0, 2e-5, 0, 0, 0};
  request.machine.measured_by = "p.json";
  Report report = report_of();
  const Table& moving = *Find(report, "moving");
  EXPECT_TRUE(RowOf(moving, on_sheet).empty());
  EXPECT_FALSE(RowOf(moving, "PCIe 4.0 x16").empty());  // was not measured
  EXPECT_EQ(
      moving.notes[0],
      "80 % of a link's stated rate, but of those that were measured what was; computing as calibrated (p.json).");
  // 4,096 tokens of 131,072 bytes at 2 GB/s, and a millisecond; computing takes 20 us a token.
  std::vector<std::string> cells = RowOf(moving, disk);
  ASSERT_FALSE(cells.empty());
  EXPECT_EQ(cells.back(), "never within the context");
  cells.resize(5);
  EXPECT_EQ(cells, (std::vector<std::string>{disk, "2 GB/s", "512 MiB", "269 ms", "81.9 ms"}));
  EXPECT_EQ(RowOf(*Find(report, "decoding"), disk).at(1), "2 GB/s");
  EXPECT_FALSE(RowOf(*Find(report, "price"), "prompt, cached, over " + disk).empty());

  request.machine.tiers[TierIndex(TierId::kHost)][static_cast<size_t>(Direction::kUp)] = TierRate{0, 20e9};
  report = report_of();
  EXPECT_TRUE(RowOf(*Find(report, "moving"), "PCIe 4.0 x16").empty());
  EXPECT_EQ(RowOf(*Find(report, "moving"), link).at(3), "26.8 ms");
  EXPECT_EQ(RowOf(*Find(report, "moving"), link).at(7), "6 tokens");
  EXPECT_EQ(RowOf(*Find(report, "all_reduce"), link).at(1), "20 GB/s");
}

TEST(Report, SaysWhoseActivationsTheyAre) {
  PlanRequest request = RequestFor(KnownModel("llama-3.1-8b"), "h100", 2048);
  const auto note = [&] { return Find(BuildReport(MakePlan(request).value()), "memory")->notes.back(); };
  EXPECT_EQ(note(), "Activations are an estimate for steps of 512 rows, in 16 bits, as devices keep them.");
  request.activation_bytes = 1 << 20;
  request.activations_by = "this server's executor, in 32 bits";
  EXPECT_EQ(note(), "Activations are those of this server's executor, in 32 bits, for steps of 512 rows.");
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
