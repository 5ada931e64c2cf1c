// Every metric of the server, declared once: its handle, name, unit, label, help and buckets.
// Threads:   constants.
// Ownership: none.
// Invariant: row i of a table belongs to the enumerator of value i (checked when compiled).
// Cost:      none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/age_counts.h"
#include "base/hit_account.h"
#include "base/kv_ledger.h"
#include "base/kv_pressure.h"
#include "base/step_curve.h"

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
  kKvSlotsExpired,
  kKvSlotsScrubbed,
  kPins,
  kPromptTokensByClass,
  kShadowHitTokens,
  kTokensComputed,
  kRefaultTokens,
  kKvPressureTime,
  kKvLimitDecreases,
  kTokensLoaded,
  kLoadsFailed,
  kStoresFailed,
  kTierBytes,
};

enum class Gauge : uint16_t {
  kRunningSequences,
  kWaitingRequests,
  kKvSlots,
  kKvFreeSlots,
  kKvPromisedSlots,
  kKvBytes,
  kStepCost,
  kOpenConnections,
  kKvIdleSlots,
  kAwaitingRequests,
  kCappedRequests,
  kWaitingTenants,
  kKvPinnedSlots,
  kKvLedgerBytes,
  kKvSharedBytes,
  kKvPressureSome,
  kKvPressureFull,
  kRefaultShare,
  kOutsideRequests,
  kKvTakenSlots,
  kKvTakenSlotsLimit,
  kDiskBlocks,
  kDiskLiveBytes,
  kDiskOccupiedBytes,
  kDiskDegraded,
};

enum class Histogram : uint16_t {
  kTimeToFirstToken,
  kInterTokenTime,
  kRequestTime,
  kStepTime,
  kStepTimeRatio,
  kPromptTokens,
  kOutputTokens,
  kKvBlockLifetime,
  kKvBlockIdleTime,
  kKvBlockReuseGap,
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
inline constexpr std::array<std::string_view, 3> kPinOutcomes = {"whole", "shortened", "refused"};
inline constexpr std::array<std::string_view, 10> kHttpStatuses = {"200", "400", "404", "405", "408",
                                                                   "413", "429", "500", "503", "other"};
// Without "salt", which the last one stands for: what other tenants have is not to be read here.
inline constexpr auto kTokenClasses = [] {
  std::array<std::string_view, kTokenClassNames.size() - 1> names;
  std::ranges::remove_copy(kTokenClassNames, names.begin(), kTokenClassNames[static_cast<size_t>(TokenClass::kSalt)]);
  return names;
}();
inline constexpr double kSeconds[] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 600};
inline constexpr std::array<std::string_view, 2> kDirections = {"up", "down"};
inline constexpr std::array<std::string_view, 2> kPressureLevels = {"some", "full"};
inline constexpr double kRatios[] = {.25, .5, .75, .9, .95, 1, 1.05, 1.1, 1.25, 1.5, 2, 4, 10};
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
                       "Slots whose block left: to make room, past its TTL, or because /v1/kv/clear was called."},
    MetricRow<Counter>{Counter::kKvSlotsExpired, "cachalot_kv_expired_slots_total", "slots",
                       "Slots whose block left because its TTL had passed."},
    MetricRow<Counter>{Counter::kKvSlotsScrubbed, "cachalot_kv_scrubbed_slots_total", "slots",
                       "Slots that were overwritten once they were free."},
    MetricRow<Counter>{Counter::kPins,
                       "cachalot_kv_pins_total",
                       "",
                       "Pins that clients asked for, by how much of them there was room for.",
                       {"outcome", metric_values::kPinOutcomes}},
    MetricRow<Counter>{Counter::kPromptTokensByClass,
                       "cachalot_prompt_tokens_by_class_total",
                       "tokens",
                       "Prompt tokens, by whether they were found, or why not.",
                       {"class", metric_values::kTokenClasses}},
    MetricRow<Counter>{Counter::kShadowHitTokens,
                       "cachalot_shadow_hit_tokens_total",
                       "tokens",
                       "Prompt tokens that an LRU cache of so many times the pool would have had.",
                       {"capacity", kShadowNames}},
    MetricRow<Counter>{Counter::kTokensComputed, "cachalot_computed_tokens_total", "tokens",
                       "Rows that went through the model, of prompts and of generated tokens."},
    MetricRow<Counter>{Counter::kRefaultTokens, "cachalot_refault_tokens_total", "tokens",
                       "Of them, those computed again because others had needed the room not long before."},
    MetricRow<Counter>{Counter::kKvPressureTime,
                       "cachalot_kv_pressure_microseconds_total",
                       "microseconds",
                       "Time in which some requests waited for KV, or all that were there got nowhere for want of it.",
                       {"level", metric_values::kPressureLevels}},
    MetricRow<Counter>{Counter::kKvLimitDecreases, "cachalot_kv_limit_decreases_total", "",
                       "Times that thrash control let fewer conversations take part."},
    MetricRow<Counter>{Counter::kTokensLoaded, "cachalot_loaded_tokens_total", "tokens",
                       "Tokens whose KV came from the disk tier instead of being computed."},
    MetricRow<Counter>{Counter::kLoadsFailed, "cachalot_loads_failed_total", "",
                       "Requests that computed what they could not load: late, damaged or gone."},
    MetricRow<Counter>{Counter::kStoresFailed, "cachalot_stores_failed_total", "",
                       "Runs of blocks that the disk tier did not take."},
    MetricRow<Counter>{Counter::kTierBytes,
                       "cachalot_tier_bytes_total",
                       "bytes",
                       "KV that moved from the disk tier into the hot pool (up), or to the disk tier (down).",
                       {"direction", metric_values::kDirections}},
};

inline constexpr std::array kGauges = {
    MetricRow<Gauge>{Gauge::kRunningSequences, "cachalot_running_sequences", "", "Sequences that run now."},
    MetricRow<Gauge>{Gauge::kWaitingRequests, "cachalot_waiting_requests", "", "Requests in the queue."},
    MetricRow<Gauge>{Gauge::kKvSlots, "cachalot_kv_slots", "", "Slots of the KV pool."},
    MetricRow<Gauge>{Gauge::kKvFreeSlots, "cachalot_kv_free_slots", "", "Slots that hold no block."},
    MetricRow<Gauge>{Gauge::kKvPromisedSlots, "cachalot_kv_promised_slots", "",
                     "Free slots promised to running sequences."},
    MetricRow<Gauge>{Gauge::kKvBytes, "cachalot_kv_bytes", "bytes", "Bytes claimed for KV at start."},
    MetricRow<Gauge>{Gauge::kStepCost,
                     "cachalot_step_cost_seconds",
                     "seconds",
                     "What a step costs as learnt: itself, per row, per position that a row sees, per row of logits.",
                     {"term", kStepTerms}},
    MetricRow<Gauge>{Gauge::kOpenConnections, "cachalot_open_connections", "", "Open client connections."},
    MetricRow<Gauge>{Gauge::kKvIdleSlots, "cachalot_kv_idle_slots", "",
                     "Slots kept for later requests only; free as soon as they are needed."},
    MetricRow<Gauge>{Gauge::kAwaitingRequests, "cachalot_awaiting_requests", "",
                     "Requests in the queue that wait for a running one to compute what they share with it."},
    MetricRow<Gauge>{Gauge::kCappedRequests, "cachalot_capped_requests", "",
                     "Requests in the queue whose tenant runs all that it may."},
    MetricRow<Gauge>{Gauge::kWaitingTenants, "cachalot_waiting_tenants", "", "Tenants with requests in the queue."},
    MetricRow<Gauge>{Gauge::kKvPinnedSlots, "cachalot_kv_pinned_slots", "", "Slots of the pin budget that are taken."},
    MetricRow<Gauge>{Gauge::kKvLedgerBytes,
                     "cachalot_kv_ledger_bytes",
                     "bytes",
                     "What the bytes of the KV pool are used for.",
                     {"part", kLedgerParts}},
    MetricRow<Gauge>{Gauge::kKvSharedBytes, "cachalot_kv_shared_bytes", "bytes",
                     "Live bytes that more than one sequence reads."},
    MetricRow<Gauge>{Gauge::kKvPressureSome,
                     "cachalot_kv_pressure_some",
                     "",
                     "Share of the last seconds in which some requests waited for KV.",
                     {"seconds", kPressureNames}},
    MetricRow<Gauge>{Gauge::kKvPressureFull,
                     "cachalot_kv_pressure_full",
                     "",
                     "Share of the last seconds in which all requests waited for KV or computed what was lost.",
                     {"seconds", kPressureNames}},
    MetricRow<Gauge>{Gauge::kRefaultShare, "cachalot_refault_share", "",
                     "Share of refaults in what was computed in the last minute."},
    MetricRow<Gauge>{Gauge::kOutsideRequests, "cachalot_outside_requests", "",
                     "Requests in the queue whose conversation may not take part yet."},
    MetricRow<Gauge>{Gauge::kKvTakenSlots, "cachalot_kv_taken_slots", "",
                     "Slots that the conversations that take part would fill together."},
    MetricRow<Gauge>{Gauge::kKvTakenSlotsLimit, "cachalot_kv_taken_slots_limit", "",
                     "What thrash control lets them fill; 0 without a limit."},
    MetricRow<Gauge>{Gauge::kDiskBlocks, "cachalot_disk_blocks", "", "Blocks that the disk tier has."},
    MetricRow<Gauge>{Gauge::kDiskLiveBytes, "cachalot_disk_live_bytes", "bytes", "Their bytes."},
    MetricRow<Gauge>{Gauge::kDiskOccupiedBytes, "cachalot_disk_occupied_bytes", "bytes",
                     "What the segment files of the disk tier occupy."},
    MetricRow<Gauge>{Gauge::kDiskDegraded, "cachalot_disk_degraded", "",
                     "1 while the disk tier takes no writes because several have failed."},
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
    MetricRow<Histogram>{Histogram::kStepTimeRatio,
                         "cachalot_step_time_ratio",
                         "",
                         "Duration of an engine step over what was predicted.",
                         {},
                         metric_values::kRatios},
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
    MetricRow<Histogram>{Histogram::kKvBlockLifetime,
                         "cachalot_kv_block_lifetime_seconds",
                         "seconds",
                         "How long an evicted block had been there.",
                         {},
                         kAgeBounds},
    MetricRow<Histogram>{Histogram::kKvBlockIdleTime,
                         "cachalot_kv_block_idle_seconds",
                         "seconds",
                         "How long an evicted block had not been used.",
                         {},
                         kAgeBounds},
    MetricRow<Histogram>{Histogram::kKvBlockReuseGap,
                         "cachalot_kv_block_reuse_gap_seconds",
                         "seconds",
                         "Between two uses of a block.",
                         {},
                         kAgeBounds},
};

namespace metric_values {
constexpr bool EachRowIsAtItsId(const auto& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<size_t>(rows[i].id) != i) return false;
  }
  return true;
}
}  // namespace metric_values

static_assert(metric_values::EachRowIsAtItsId(kCounters) && kCounters.size() == size_t(Counter::kTierBytes) + 1);
static_assert(metric_values::EachRowIsAtItsId(kGauges) && kGauges.size() == size_t(Gauge::kDiskDegraded) + 1);
static_assert(metric_values::EachRowIsAtItsId(kHistograms) &&
              kHistograms.size() == size_t(Histogram::kKvBlockReuseGap) + 1);

}  // namespace cachalot
