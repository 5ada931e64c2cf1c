#include "plan/agreement_report.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachalot::plan {
namespace {

using sim::Agreement;
using sim::AgreementRow;
using sim::AgreementUnit;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Agreement Some() {
  return {.rows = {{"tokens", AgreementUnit::kTokens, 100, 100, 150, 0.5, AgreementRow::Verdict::kDiffers},
                   {"time", AgreementUnit::kSeconds, 0.5, 1, 0.7, 0, AgreementRow::Verdict::kAgrees},
                   {"first", AgreementUnit::kSeconds, 0, 0.001, 0.0005, 0, AgreementRow::Verdict::kAgrees},
                   {"tail", AgreementUnit::kSeconds, 600, kInfinity, 700, 0, AgreementRow::Verdict::kAgrees},
                   {"none", AgreementUnit::kCount, 0, 0, 9, kInfinity, AgreementRow::Verdict::kDiffers},
                   {"idle", AgreementUnit::kShare, 0.25, 0.25, 0.5}},
          .server_requests = 12,
          .recorded_requests = 10,
          .lost_records = 2};
}

TEST(AgreementReport, SaysWhatDoesNotAgree) {
  EXPECT_EQ(AgreementSentence(Some()),
            "The simulation of the record agrees with the server's metrics in 3 of 5 figures, but not in: tokens (100 "
            "tokens, simulated 150 tokens); none (0, simulated 9).");
  Agreement whole = Some();
  for (AgreementRow& row : whole.rows) row.verdict = AgreementRow::Verdict::kAgrees;
  EXPECT_THAT(AgreementSentence(whole), HasSubstr("in all of 6 figures"));
}

TEST(AgreementReport, ShowsRangesVerdictsAndWhatIsMissing) {
  const Table table = AgreementTable(Some());
  std::vector<std::string> server, verdicts;
  for (const auto& row : table.rows) {
    ASSERT_EQ(row.size(), table.columns.size());
    server.push_back(FormatCell(row[1]));
    verdicts.push_back(FormatCell(row[3]));
  }
  EXPECT_EQ(server,
            (std::vector<std::string>{"100 tokens", "500 ms to 1 s", "up to 1 ms", "over 600 s", "0", "25.0 %"}));
  EXPECT_EQ(verdicts, (std::vector<std::string>{"differs by 50 %", "agrees", "agrees", "agrees", "differs", ""}));
  EXPECT_THAT(table.notes[1], HasSubstr("answered 12 choices, the record has only 10 requests"));
  EXPECT_THAT(table.notes[2], HasSubstr("2 lines of the record were lost"));
}

}  // namespace
}  // namespace cachalot::plan
