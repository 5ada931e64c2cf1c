#include "plan/agreement_report.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"

namespace cachalot::plan {
namespace {

using sim::AgreementRow;
using sim::AgreementUnit;

std::string TextOf(AgreementUnit unit, double value) {
  const auto whole = static_cast<uint64_t>(std::llround(value));
  switch (unit) {
    case AgreementUnit::kTokens: return FormatCell(Tokens(whole));
    case AgreementUnit::kCount: return FormatCell(Count(whole));
    case AgreementUnit::kShare: return FormatCell(Share(value));
    case AgreementUnit::kSeconds: break;
  }
  return FormatCell(Seconds(value));
}

std::string ServerText(const AgreementRow& row) {
  if (row.above == row.up_to) return TextOf(row.unit, row.above);
  if (std::isinf(row.up_to)) return "over " + TextOf(row.unit, row.above);
  if (row.above <= 0) return "up to " + TextOf(row.unit, row.up_to);
  return fmt::format("{} to {}", TextOf(row.unit, row.above), TextOf(row.unit, row.up_to));
}

std::string VerdictText(const AgreementRow& row) {
  switch (row.verdict) {
    case AgreementRow::Verdict::kAgrees: return "agrees";
    case AgreementRow::Verdict::kNotJudged: return "";
    case AgreementRow::Verdict::kDiffers: break;
  }
  return std::isfinite(row.off) ? fmt::format("differs by {:.0f} %", row.off * 100) : "differs";
}

}  // namespace

std::string AgreementSentence(const sim::Agreement& agreement) {
  size_t judged = 0;
  std::vector<std::string> differ;
  for (const AgreementRow& row : agreement.rows) {
    judged += row.verdict != AgreementRow::Verdict::kNotJudged;
    if (row.verdict != AgreementRow::Verdict::kDiffers) continue;
    differ.push_back(fmt::format("{} ({}, simulated {})", row.what, ServerText(row), TextOf(row.unit, row.simulated)));
  }
  if (differ.empty()) {
    return fmt::format("The simulation of the record agrees with the server's metrics in all of {} figures.", judged);
  }
  return fmt::format(
      "The simulation of the record agrees with the server's metrics in {} of {} figures, but not in: {}.",
      judged - differ.size(), judged, fmt::join(differ, "; "));
}

Table AgreementTable(const sim::Agreement& agreement) {
  Table table{.key = "agreement",
              .title = "The server, and the simulation of its record",
              .columns = {{"what", "what"}, {"server", "server"}, {"simulated", "simulated"}, {"verdict", "verdict"}}};
  for (const AgreementRow& row : agreement.rows) {
    table.rows.push_back(
        {Text(row.what), Text(ServerText(row)), Text(TextOf(row.unit, row.simulated)), Text(VerdictText(row))});
  }
  table.notes = {fmt::format(
      "both since the server began; may be beside: {:.0f} % of tokens, {:.0f} % of counts, {:.0f} % of times, "
      "and beside the server's bucket {:.0f} % of a median, {:.0f} % of a 99th percentile",
      sim::kAgreedTokens * 100, sim::kAgreedCounts * 100, sim::kAgreedTime * 100, sim::kAgreedMedian * 100,
      sim::kAgreedTail * 100)};
  if (agreement.server_requests > agreement.recorded_requests) {
    table.notes.push_back(fmt::format("the server answered {} choices, the record has only {} requests",
                                      FormatCount(agreement.server_requests),
                                      FormatCount(agreement.recorded_requests)));
  }
  if (agreement.lost_records > 0) {
    table.notes.push_back(fmt::format("{} lines of the record were lost", FormatCount(agreement.lost_records)));
  }
  table.notes.push_back(
      "clients that wait for their answers before they ask again come at recorded times in the simulation: on a server "
      "with no time left small differences of speed become long waits");
  table.notes.push_back(
      "not simulated: cancelled requests, several choices, sessions, prefetches, caps of tenants, retention hints, and "
      "other programs on the machine");
  return table;
}

}  // namespace cachalot::plan
