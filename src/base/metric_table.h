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
#include "base/metric_ids.h"
#include "base/metric_values.h"
#include "base/read_outcome.h"
#include "base/step_curve.h"
#include "base/tier_rate.h"
#include "base/transfer_meter.h"

namespace cachalot {

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
                       "KV that moved over a link: between the hot pool and host memory, or to and from the disk tier.",
                       {"lane", metric_values::kTierLanes}},
    MetricRow<Counter>{Counter::kDiskTransfers,
                       "cachalot_disk_transfers_total",
                       "",
                       "Transfers to and from the disk tier, by how they ended.",
                       {"end", kTransferEndNames}},
    MetricRow<Counter>{Counter::kDiskBusy,
                       "cachalot_disk_busy_microseconds_total",
                       "microseconds",
                       "Time in which a transfer ran from the disk tier (up), or to it (down).",
                       {"direction", kDirectionNames}},
    MetricRow<Counter>{Counter::kDiskWaited,
                       "cachalot_disk_waited_microseconds_total",
                       "microseconds",
                       "Time that transfers waited until they ran, of all together.",
                       {"direction", kDirectionNames}},
    MetricRow<Counter>{Counter::kSessionsBegun, "cachalot_sessions_begun_total", "",
                       "Sessions that requests, forks and restored files began."},
    MetricRow<Counter>{Counter::kSessionsEnded,
                       "cachalot_sessions_ended_total",
                       "",
                       "Sessions that ended: deleted or past their TTL, or forgotten to make room for others.",
                       {"cause", metric_values::kSessionEnds}},
    MetricRow<Counter>{Counter::kSessionsRefused, "cachalot_sessions_refused_total", "",
                       "Sessions that were not remembered for want of room."},
    MetricRow<Counter>{Counter::kSessionMoves,
                       "cachalot_session_moves_total",
                       "",
                       "Sessions that were suspended, or resumed by a command.",
                       {"verb", metric_values::kSessionMoves}},
    MetricRow<Counter>{Counter::kSessionTokens,
                       "cachalot_session_tokens_total",
                       "tokens",
                       "Tokens of the histories of requests' sessions, and of them those that the prompts began with.",
                       {"part", metric_values::kSessionParts}},
    MetricRow<Counter>{Counter::kSessionCommandsFailed, "cachalot_session_commands_failed_total", "",
                       "Commands about sessions that ended with an error."},
    MetricRow<Counter>{Counter::kHostFound, "cachalot_host_found_blocks_total", "",
                       "Blocks in host memory that requests found, each layer group counting."},
    MetricRow<Counter>{Counter::kHostEvicted, "cachalot_host_evicted_blocks_total", "",
                       "Blocks that left host memory to make room there, each layer group counting."},
    MetricRow<Counter>{Counter::kHostTakenBack, "cachalot_host_taken_back_blocks_total", "",
                       "Blocks that were asked for while they were being copied to host memory, and stayed."},
    MetricRow<Counter>{Counter::kHostDropped, "cachalot_host_dropped_blocks_total", "",
                       "Blocks that left the hot pool and did not go to host memory, though there is some."},
    MetricRow<Counter>{Counter::kDiskRefused, "cachalot_disk_refused_blocks_total", "",
                       "Blocks that were not written to disk, as that costs more than they are thought to save."},
    MetricRow<Counter>{Counter::kDiskReads,
                       "cachalot_disk_reads_total",
                       "",
                       "Blocks that were to be read from disk, by what became of them; all but \"read\" are misses.",
                       {"outcome", kReadOutcomeNames}},
    MetricRow<Counter>{Counter::kTokensPrefetched, "cachalot_prefetched_tokens_total", "tokens",
                       "Tokens whose KV was loaded before a request asked for them."},
    MetricRow<Counter>{Counter::kHostTokensLoaded, "cachalot_host_loaded_tokens_total", "tokens",
                       "Tokens whose KV came from host memory instead of being computed."},
    MetricRow<Counter>{Counter::kEngineTime,
                       "cachalot_engine_microseconds_total",
                       "microseconds",
                       "Time of the engine: in steps that ran the model, in others, waiting for transfers, or idle.",
                       {"use", metric_values::kEngineUses}},
    MetricRow<Counter>{Counter::kRecordsLost, "cachalot_records_lost_total", "",
                       "Requests that are missing in the file of --record: no room on disk, or it was too slow."},
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
    MetricRow<Gauge>{Gauge::kSessions,
                     "cachalot_sessions",
                     "",
                     "Sessions, by where most of their KV is found.",
                     {"state", metric_values::kSessionStates}},
    MetricRow<Gauge>{Gauge::kSessionsPinned, "cachalot_sessions_pinned", "", "Sessions that are pinned."},
    MetricRow<Gauge>{Gauge::kDiskInFlightBytes,
                     "cachalot_disk_in_flight_bytes",
                     "bytes",
                     "KV of transfers that run.",
                     {"direction", kDirectionNames}},
    MetricRow<Gauge>{Gauge::kDiskWaitingTransfers,
                     "cachalot_disk_waiting_transfers",
                     "",
                     "Transfers that wait to run.",
                     {"direction", kDirectionNames}},
    MetricRow<Gauge>{Gauge::kHostBytes,
                     "cachalot_host_bytes",
                     "bytes",
                     "What the bytes of host memory are used for.",
                     {"part", metric_values::kHostParts}},
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
                         "Duration of an engine step, but for waits, over what was predicted.",
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

static_assert(metric_values::EachRowIsAtItsId(kCounters) && kCounters.size() == size_t(Counter::kRecordsLost) + 1);
static_assert(metric_values::EachRowIsAtItsId(kGauges) && kGauges.size() == size_t(Gauge::kHostBytes) + 1);
static_assert(metric_values::EachRowIsAtItsId(kHistograms) &&
              kHistograms.size() == size_t(Histogram::kKvBlockReuseGap) + 1);

}  // namespace cachalot
