#include "sim/agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/trace_serving.h"

namespace cachalot::sim {
namespace {

constexpr double kFewCounts = 3, kFewTokens = 64, kLittleTime = 0.1;  // differences that say nothing

// 0 between the bounds; else by how much it is beside the nearer one.
double Beside(const AgreementRow& row) {
  if (row.simulated >= row.above && row.simulated <= row.up_to) return 0;
  const double nearer = row.simulated < row.above ? row.above : row.up_to;
  return nearer > 0 ? std::abs(row.simulated - nearer) / nearer : std::numeric_limits<double>::infinity();
}

class Comparison {
 public:
  Comparison(const Scrape& server, std::vector<AgreementRow>* rows) : server_(server), rows_(rows) {}

  void Counts(std::string_view what, double server, uint64_t simulated) {
    Judge({what, AgreementUnit::kCount, server, server, static_cast<double>(simulated)}, kAgreedCounts, kFewCounts);
  }
  void Tokens(std::string_view what, Counter counter, uint64_t simulated) {
    const double server = server_.Total(counter);
    Judge({what, AgreementUnit::kTokens, server, server, static_cast<double>(simulated)}, kAgreedTokens, kFewTokens);
  }
  void Time(std::string_view what, Counter counter, std::string_view label, Nanos simulated) {
    const double server = server_.Total(counter, label) * 1e-6;
    Judge({what, AgreementUnit::kSeconds, server, server, ToSeconds(simulated)}, kAgreedTime, kLittleTime);
  }
  void Quantile(std::string_view what, Histogram histogram, const DurationHistogram& simulated, double share) {
    const std::optional<BucketCounts::Range> range = server_.Values(histogram).Quantile(share);
    if (!range || simulated.count() == 0) return;
    Judge({what, AgreementUnit::kSeconds, range->above, range->up_to, ToSeconds(simulated.Quantile(share))},
          share > 0.5 ? kAgreedTail : kAgreedMedian, 0);
  }
  void Show(std::string_view what, AgreementUnit unit, double server, double simulated) {
    rows_->push_back({what, unit, server, server, simulated});
  }

 private:
  void Judge(AgreementRow row, double allowed, double little) {
    row.off = Beside(row);
    const bool near = row.above == row.up_to && std::abs(row.above - row.simulated) <= little;
    row.verdict = near || row.off <= allowed ? AgreementRow::Verdict::kAgrees : AgreementRow::Verdict::kDiffers;
    rows_->push_back(row);
  }

  const Scrape& server_;
  std::vector<AgreementRow>* const rows_;
};

void CompareTokens(const engine::EngineStats& stats, Comparison* c) {
  c->Tokens("prompt tokens found", Counter::kPromptTokensCached, stats.prompt_tokens_cached);
  c->Tokens("of them in host memory", Counter::kHostTokensLoaded, stats.tiers.host_loaded_tokens);
  c->Tokens("of them on disk", Counter::kTokensLoaded, stats.tiers.loaded_tokens);
  c->Tokens("prompt tokens computed", Counter::kPromptTokensComputed, stats.prompt_tokens_computed);
  c->Tokens("tokens generated", Counter::kTokensGenerated, stats.tokens_generated);
  c->Tokens("computed again, lost for want of room", Counter::kRefaultTokens, stats.refault_tokens);
  c->Tokens("computed again after preemption", Counter::kTokensRecomputed, stats.tokens_recomputed);
}

void CompareTimes(const TraceServingReport& simulated, Comparison* c) {
  c->Quantile("to the first token, p50", Histogram::kTimeToFirstToken, simulated.ttft, 0.5);
  c->Quantile("to the first token, p99", Histogram::kTimeToFirstToken, simulated.ttft, 0.99);
  c->Quantile("between tokens, p50", Histogram::kInterTokenTime, simulated.itl, 0.5);
  c->Quantile("between tokens, p99", Histogram::kInterTokenTime, simulated.itl, 0.99);
  c->Quantile("of a request, p50", Histogram::kRequestTime, simulated.e2e, 0.5);
  c->Quantile("of a request, p99", Histogram::kRequestTime, simulated.e2e, 0.99);
}

// Where the engine's time went, and what was in want of KV.
void CompareLoad(const Scrape& server, const TraceServingReport& simulated, Comparison* c) {
  const engine::EngineStats& stats = simulated.last;
  c->Counts("preemptions", server.Total(Counter::kPreemptions), stats.preemptions);
  c->Counts("slots evicted", server.Total(Counter::kKvSlotsEvicted), stats.slots_evicted);
  c->Counts("times that fewer were let take part", server.Total(Counter::kKvLimitDecreases), stats.limit_decreases);
  c->Time("some requests waited for KV", Counter::kKvPressureTime, "some", stats.pressure.some.total);
  c->Time("all did, or computed what was lost", Counter::kKvPressureTime, "full", stats.pressure.full.total);
  c->Time("the model ran", Counter::kEngineTime, "compute", simulated.time.compute);
  c->Time("steps waited for transfers", Counter::kEngineTime, "transfers", simulated.time.transfers);
  const double seconds = ToSeconds(simulated.duration);
  const double busy = (server.Sum(Counter::kEngineTime) - server.Total(Counter::kEngineTime, "idle")) * 1e-6;
  if (seconds > 0) {
    c->Show("idle, of the record's time", AgreementUnit::kShare, std::max(0.0, 1 - busy / seconds),
            ToSeconds(simulated.time.idle) / seconds);
  }
  uint32_t most = 0;
  for (const ServingSample& sample : simulated.samples) most = std::max(most, sample.waiting);
  c->Show("requests that wait: now; at most", AgreementUnit::kCount, server.Level(Gauge::kWaitingRequests), most);
}

}  // namespace

Agreement CompareWithServer(const Scrape& server, const TraceServingReport& simulated) {
  Agreement agreement;
  const double answered = server.Total(Counter::kRequests, "stop") + server.Total(Counter::kRequests, "length");
  agreement.server_requests = static_cast<uint64_t>(answered);
  agreement.recorded_requests = simulated.served + simulated.refused;
  agreement.lost_records = static_cast<uint64_t>(server.Total(Counter::kRecordsLost));
  Comparison comparison(server, &agreement.rows);
  comparison.Counts("requests answered", answered, simulated.served);
  CompareTokens(simulated.last, &comparison);
  CompareTimes(simulated, &comparison);
  CompareLoad(server, simulated, &comparison);
  return agreement;
}

}  // namespace cachalot::sim
