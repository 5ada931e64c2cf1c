#include "cli/advise_run.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "cli/terminal.h"

namespace cachalot::cli {
namespace {

// Between two requests that are to be alone: far apart, but no trace may last for ever.
double SecondsAlone(size_t requests) { return std::min(1e6, 9e7 / static_cast<double>(requests)); }

sim::Trace Changed(const sim::Trace& trace, const plan::Setting& setting) {
  sim::Trace changed = trace;
  const Nanos apart(std::llround(SecondsAlone(trace.requests.size()) * 1e9));
  for (size_t i = 0; i < changed.requests.size(); ++i) {
    sim::TraceRequest& request = changed.requests[i];
    if (setting.alone) request.arrival = apart * static_cast<int64_t>(i);
    if (setting.asks_exactly) request.asked_tokens = 0;
    if (setting.output_limit == 0) continue;
    request.asked_tokens = std::min(request.asked_tokens, setting.output_limit);
    if (request.output_tokens <= setting.output_limit) continue;
    // What is cut off was never said, so that nobody goes on from it.
    request.output_tokens = setting.output_limit;
    uint64_t left = request.input_tokens + request.output_tokens;
    for (sim::TextRun& run : request.text) left -= run.tokens = std::min(run.tokens, left);
  }
  return changed;
}

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

// Of requests that are alone, the time between one and the next is no time.
plan::Outcome OutcomeOf(const sim::TraceServingReport& report, bool alone) {
  const engine::EngineStats& stats = report.last;
  const double seconds = ToSeconds(alone ? report.duration - report.time.idle : report.duration);
  plan::Outcome outcome;
  outcome.requests = report.served + report.refused;
  outcome.served = report.served;
  outcome.within_target = report.within_target;
  outcome.duration_seconds = seconds;
  outcome.tokens_per_second = Share(static_cast<double>(report.output_tokens), seconds);
  outcome.ttft_p50_seconds = ToSeconds(report.ttft.Quantile(0.5));
  outcome.ttft_p99_seconds = ToSeconds(report.ttft.Quantile(0.99));
  outcome.e2e_mean_seconds = report.e2e.MeanSeconds();
  outcome.itl_p99_seconds = ToSeconds(report.itl.Quantile(0.99));
  outcome.hit_rate = Share(static_cast<double>(report.cached_tokens), static_cast<double>(report.prompt_tokens));
  outcome.in_use = report.mean_in_use;
  outcome.waste = report.mean_waste;
  outcome.pressure = Share(ToSeconds(stats.pressure.some.total), seconds);
  outcome.recomputed = Share(static_cast<double>(stats.refault_tokens), static_cast<double>(stats.tokens_computed));
  outcome.busy = Share(ToSeconds(report.time.compute), seconds);
  outcome.compute_seconds = ToSeconds(report.time.compute);
  outcome.preemptions = stats.preemptions;
  return outcome;
}

}  // namespace

sim::TraceServingOptions ServingOf(const plan::Setting& setting, const AdviseRun::Options& options) {
  sim::TraceServingOptions serving;
  serving.tenants = false;  // users of a trace need not be those of keys
  engine::EngineOptions& engine = serving.engine = options.engine;
  engine.max_sequences = setting.max_sequences;
  engine.step_rows = setting.step_rows;
  engine.prefill_chunk = setting.prefill_chunk;
  engine.prefix_cache = setting.prefix_cache;
  engine.thrash_control = setting.thrash_control;
  engine.eviction = setting.eviction;
  engine.admission = setting.admission;
  engine.admission_reserve = setting.admission_reserve;
  exec::SimOptions& model = serving.model;
  model.vocabulary = 65536;  // enough that other text begins with another token, nearly always
  model.context_tokens = setting.context_tokens;
  model.limits = {.rows = setting.step_rows, .logit_rows = setting.max_sequences};
  model.kv = setting.kv;
  model.curve = setting.curve;
  model.reading = setting.reading;
  serving.slots = static_cast<uint32_t>(setting.slots);
  if (setting.host_link) {
    serving.tiers.link = {setting.host_link->bytes_per_second,
                          Nanos(std::llround(setting.host_link->latency_seconds * 1e9))};
  }
  serving.tiers.host_blocks = static_cast<uint32_t>(std::min<uint64_t>(setting.host_slots, UINT32_MAX));
  serving.tiers.disk_blocks = setting.disk_slots;
  serving.tiers.disk_read = setting.disk_read;
  serving.tiers.disk_write = setting.disk_write;
  serving.max_tokens = setting.asks_exactly ? 0 : setting.max_tokens;
  serving.rate = setting.alone ? 1 : options.rate;
  serving.ttft_target = Nanos(std::llround(options.engine.ttft_target * 1e9));
  return serving;
}

AdviseRun::AdviseRun(sim::Trace trace, sim::Trace reordered, const Options& options)
    : trace_(std::move(trace)), reordered_(std::move(reordered)), options_(options) {}

Result<plan::Outcome> AdviseRun::Simulate(const plan::Setting& setting) const {
  const bool reordered = setting.reordered && !reordered_.requests.empty();
  const sim::Trace trace = Changed(reordered ? reordered_ : trace_, setting);
  std::vector<plan::ServedSpan> spans(trace.requests.size());
  sim::TraceServingOptions serving = ServingOf(setting, options_);
  serving.on_request = [&](const sim::ReplayedRequest& request) {
    const sim::TraceRequest& asked = trace.requests[request.index];
    spans[request.index] = {.arrival = ToSeconds(request.arrival),
                            .first_token = ToSeconds(request.first_token),
                            .finish = ToSeconds(request.finish),
                            .tokens = request.prompt_tokens + request.output_tokens,
                            .promised = asked.input_tokens + sim::AskedOf(asked, serving),
                            .served = request.refusal.empty()};
  };
  CACHALOT_ASSIGN_OR_RETURN(const sim::TraceServingReport report, sim::ServeTrace(trace, serving));
  plan::Outcome outcome = OutcomeOf(report, setting.alone);
  outcome.first_refusal = report.first_refusal;
  outcome.spans = std::move(spans);
  return outcome;
}

Result<std::vector<plan::Outcome>> AdviseRun::operator()(std::span<const plan::Setting> settings) const {
  const size_t threads = options_.threads == 0 ? std::thread::hardware_concurrency() : options_.threads;
  ThreadPool pool(std::clamp<size_t>(threads, 1, std::max<size_t>(settings.size(), 1)));
  std::vector<Result<plan::Outcome>> results(settings.size(), plan::Outcome());
  ProgressBar bar("simulating");
  Mutex mutex;
  size_t done = 0;
  pool.ParallelFor(settings.size(), [&](size_t i) {
    results[i] = Simulate(settings[i]);
    const MutexLock lock(mutex);
    bar.Show(static_cast<double>(++done) / static_cast<double>(settings.size()));
  });
  std::vector<plan::Outcome> outcomes;
  for (Result<plan::Outcome>& result : results) {
    if (!result.ok()) return result.status();
    outcomes.push_back(std::move(result).value());
  }
  return outcomes;
}

}  // namespace cachalot::cli
