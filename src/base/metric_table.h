// Every metric of the server, declared once: its handle, name, unit, label, help and buckets.
// Threads:   constants.
// Ownership: none.
// Invariant: row i of a table belongs to the enumerator of value i (checked when compiled).
// Cost:      none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cachalot {

enum class Counter : uint16_t {
  kRequests,
  kHttpResponses,
  kPromptTokensComputed,
  kTokensGenerated,
  kSteps,
  kStepFailures,
  kPromptTokensCached,
  kTokensRecomputed,
  kPreemptions,
  kKvSlotsEvicted,
};

enum class Gauge : uint16_t {
  kRunningSequences,
  kWaitingRequests,
  kKvSlots,
  kKvFreeSlots,
  kKvPromisedSlots,
  kKvBytes,
  kOpenConnections,
  kKvIdleSlots,
  kAwaitingRequests,
};

enum class Histogram : uint16_t {
  kTimeToFirstToken,
  kInterTokenTime,
  kRequestTime,
  kStepTime,
  kPromptTokens,
  kOutputTokens,
};

// A label takes one of a closed list of values; the last of them also stands for all that are not listed.
struct MetricLabel {
  std::string_view name;
  std::span<const std::string_view> values;
};

template <class Id>
struct MetricRow {
  Id id;
  std::string_view name;
  std::string_view unit;  // "" for plain counts
  std::string_view help;
  MetricLabel label{};                // no name: none
  std::span<const double> buckets{};  // upper bounds, ascending; of histograms only
};

namespace metric_values {
inline constexpr std::array<std::string_view, 5> kOutcomes = {"stop", "length", "cancelled", "rejected", "error"};
inline constexpr std::array<std::string_view, 10> kHttpStatuses = {"200", "400", "404", "405", "408",
                                                                   "413", "429", "500", "503", "other"};
inline constexpr double kSeconds[] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 600};
inline constexpr double kTokens[] = {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576};
}  // namespace metric_values

inline constexpr std::array kCounters = {
    MetricRow<Counter>{Counter::kRequests,
                       "cachalot_requests_total",
                       "",
                       "Generations that ended, by outcome.",
                       {"outcome", metric_values::kOutcomes}},
    MetricRow<Counter>{Counter::kHttpResponses,
                       "cachalot_http_responses_total",
                       "",
                       "HTTP responses begun, by status code.",
                       {"status", metric_values::kHttpStatuses}},
    MetricRow<Counter>{Counter::kPromptTokensComputed, "cachalot_prompt_tokens_computed_total", "tokens",
                       "Prompt tokens that went through the model."},
    MetricRow<Counter>{Counter::kTokensGenerated, "cachalot_generated_tokens_total", "tokens",
                       "Tokens sampled for clients."},
    MetricRow<Counter>{Counter::kSteps, "cachalot_steps_total", "", "Engine steps that ran the model."},
    MetricRow<Counter>{Counter::kStepFailures, "cachalot_step_failures_total", "",
                       "Engine steps that failed and were rolled back."},
    MetricRow<Counter>{Counter::kPromptTokensCached, "cachalot_prompt_tokens_cached_total", "tokens",
                       "Prompt tokens that were not computed, because their KV was there."},
    MetricRow<Counter>{Counter::kTokensRecomputed, "cachalot_recomputed_tokens_total", "tokens",
                       "Tokens of preempted requests that were computed once more."},
    MetricRow<Counter>{Counter::kPreemptions, "cachalot_preemptions_total", "",
                       "Times that a running request gave way to others."},
    MetricRow<Counter>{Counter::kKvSlotsEvicted, "cachalot_kv_evicted_slots_total", "slots",
                       "Slots whose block left, to make room or because /v1/kv/clear was called."},
};

inline constexpr std::array kGauges = {
    MetricRow<Gauge>{Gauge::kRunningSequences, "cachalot_running_sequences", "", "Sequences that run now."},
    MetricRow<Gauge>{Gauge::kWaitingRequests, "cachalot_waiting_requests", "", "Requests in the queue."},
    MetricRow<Gauge>{Gauge::kKvSlots, "cachalot_kv_slots", "", "Slots of the KV pool."},
    MetricRow<Gauge>{Gauge::kKvFreeSlots, "cachalot_kv_free_slots", "", "Slots that hold no block."},
    MetricRow<Gauge>{Gauge::kKvPromisedSlots, "cachalot_kv_promised_slots", "",
                     "Free slots promised to running sequences."},
    MetricRow<Gauge>{Gauge::kKvBytes, "cachalot_kv_bytes", "bytes", "Bytes claimed for KV at start."},
    MetricRow<Gauge>{Gauge::kOpenConnections, "cachalot_open_connections", "", "Open client connections."},
    MetricRow<Gauge>{Gauge::kKvIdleSlots, "cachalot_kv_idle_slots", "",
                     "Slots kept for later requests only; free as soon as they are needed."},
    MetricRow<Gauge>{Gauge::kAwaitingRequests, "cachalot_awaiting_requests", "",
                     "Requests in the queue that wait for a running one to compute what they share with it."},
};

inline constexpr std::array kHistograms = {
    MetricRow<Histogram>{Histogram::kTimeToFirstToken,
                         "cachalot_time_to_first_token_seconds",
                         "seconds",
                         "From the arrival of a request to its first token.",
                         {},
                         metric_values::kSeconds},
    MetricRow<Histogram>{Histogram::kInterTokenTime,
                         "cachalot_inter_token_seconds",
                         "seconds",
                         "Between two tokens of one sequence.",
                         {},
                         metric_values::kSeconds},
    MetricRow<Histogram>{Histogram::kRequestTime,
                         "cachalot_request_seconds",
                         "seconds",
                         "From the arrival of a request to its end.",
                         {},
                         metric_values::kSeconds},
    MetricRow<Histogram>{Histogram::kStepTime,
                         "cachalot_step_seconds",
                         "seconds",
                         "Duration of an engine step.",
                         {},
                         metric_values::kSeconds},
    MetricRow<Histogram>{Histogram::kPromptTokens,
                         "cachalot_prompt_tokens",
                         "tokens",
                         "Prompt length of a request.",
                         {},
                         metric_values::kTokens},
    MetricRow<Histogram>{Histogram::kOutputTokens,
                         "cachalot_output_tokens",
                         "tokens",
                         "Output length of a choice.",
                         {},
                         metric_values::kTokens},
};

namespace metric_values {
constexpr bool EachRowIsAtItsId(const auto& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<size_t>(rows[i].id) != i) return false;
  }
  return true;
}
}  // namespace metric_values

static_assert(metric_values::EachRowIsAtItsId(kCounters) && kCounters.size() == size_t(Counter::kKvSlotsEvicted) + 1);
static_assert(metric_values::EachRowIsAtItsId(kGauges) && kGauges.size() == size_t(Gauge::kAwaitingRequests) + 1);
static_assert(metric_values::EachRowIsAtItsId(kHistograms) &&
              kHistograms.size() == size_t(Histogram::kOutputTokens) + 1);

}  // namespace cachalot
