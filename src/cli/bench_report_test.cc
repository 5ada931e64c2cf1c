#include "cli/bench_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cachalot::cli {
namespace {

const BenchSetting kSetting = {"a, \"b\"", "avx2", "f16", 1 << 20, 0.5};

std::vector<BenchRow> Rows() {
  BenchRow row;
  row.test = BenchTest::kDecode;
  row.output = 64;
  row.depth = 4096;
  row.sequences = 16;
  row.shared = true;
  row.threads = 2;
  row.rates = {30, 10, 20.5};
  return {row};
}

TEST(BenchReport, MedianOfEvenCountsIsTheMiddleOfTheMiddleTwo) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
}

TEST(BenchReport, MarkdownHasAHeadARuleAndALineForEachRow) {
  const std::string text = BenchReport(BenchFormat::kMarkdown, kSetting, Rows());
  EXPECT_NE(text.find("| decode | yes | 0 | 64 | 4096 | 16 | 2 | 512 | 20.50 | 10.00 | 30.00 |\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("| --- | --- | ---: |"), std::string::npos);
}

TEST(BenchReport, CsvQuotesWhatHoldsCommasAndQuotes) {
  EXPECT_EQ(BenchReport(BenchFormat::kCsv, kSetting, Rows()),
            "model,isa,kv type,test,shared,prompt,output,depth,sequences,threads,step rows,tokens/s,least,most\n"
            "\"a, \"\"b\"\"\",avx2,f16,decode,yes,0,64,4096,16,2,512,20.50,10.00,30.00\n");
}

TEST(BenchReport, TableAlignsItsColumns) {
  const std::string text = BenchReport(BenchFormat::kTable, kSetting, Rows());
  const std::string body = text.substr(text.find("test"));
  EXPECT_EQ(body.find('\n'), body.size() - body.find('\n') - 2) << body;  // two lines of one length
}

TEST(BenchReport, JsonHoldsEveryRepetition) {
  const auto json = nlohmann::json::parse(BenchReport(BenchFormat::kJson, kSetting, Rows()));
  EXPECT_EQ(json["isa"], "avx2");
  EXPECT_EQ(json["rows"][0]["tokens_per_second"], 20.5);
  EXPECT_EQ(json["rows"][0]["repetitions"], (nlohmann::json{30.0, 10.0, 20.5}));
  EXPECT_EQ(json["rows"][0]["shared"], true);
}

TEST(BenchReport, UnknownFormatsAreInvalid) {
  EXPECT_TRUE(ParseBenchFormat("csv").ok());
  EXPECT_EQ(ParseBenchFormat("xml").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace cachalot::cli
