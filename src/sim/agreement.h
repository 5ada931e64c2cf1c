// CompareWithServer holds a simulation of a server's record against the server's own metrics.
// Threads:   pure functions.
// Ownership: none.
// Invariant: equal inputs give equal rows. What only one side knows well is shown and not judged.
// Cost:      microseconds.
//
// Both count since the server began. They are of the same requests only where the record is whole: some may still run,
// and lines may have been lost.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/scrape.h"

namespace cachalot::sim {

struct TraceServingReport;

enum class AgreementUnit : uint8_t { kTokens, kCount, kSeconds, kShare };

struct AgreementRow {
  enum class Verdict : uint8_t { kAgrees, kDiffers, kNotJudged };
  std::string_view what;
  AgreementUnit unit = AgreementUnit::kCount;
  double above = 0, up_to = 0;  // the server's: between these, which are equal where it tells the number itself
  double simulated = 0;
  double off = 0;  // by how much that is beside the nearer bound, as a share of it; infinity beside 0
  Verdict verdict = Verdict::kNotJudged;
};

struct Agreement {
  std::vector<AgreementRow> rows;
  uint64_t server_requests = 0;  // that were answered
  uint64_t recorded_requests = 0;
  uint64_t lost_records = 0;
};

// How far a simulation may be beside.
inline constexpr double kAgreedTokens = 0.01, kAgreedCounts = 0.1, kAgreedTime = 0.1;
inline constexpr double kAgreedMedian = 0.15, kAgreedTail = 0.25;

// `simulated`: of all requests of the record.
Agreement CompareWithServer(const Scrape& server, const TraceServingReport& simulated);

}  // namespace cachalot::sim
