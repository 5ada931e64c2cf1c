#include "server/kv_metrics.h"

#include <array>

namespace cachalot::server {
namespace {

template <size_t N>
void AddEach(Counter counter, const std::array<std::string_view, N>& names, const std::array<uint64_t, N>& seen,
             const std::array<uint64_t, N>& now, Metrics* metrics) {
  for (size_t i = 0; i < N; ++i) {
    if (now[i] != seen[i]) metrics->Add(counter, now[i] - seen[i], names[i]);
  }
}

void AddAges(Histogram histogram, const AgeCounts& seen, const AgeCounts& now, Metrics* metrics) {
  if (now.counts == seen.counts) return;
  std::array<uint64_t, kAgeBounds.size() + 1> added;
  for (size_t i = 0; i < added.size(); ++i) added[i] = now.counts[i] - seen.counts[i];
  metrics->ObserveMany(histogram, added, now.seconds - seen.seconds);
}

uint64_t Microseconds(Nanos time) { return static_cast<uint64_t>(time.count() / 1000); }

void AddThrash(const engine::EngineStats& seen, const engine::EngineStats& stats, Metrics* metrics) {
  const KvPressure::Level &some = stats.pressure.some, &full = stats.pressure.full;
  for (size_t i = 0; i < kPressureNames.size(); ++i) {
    metrics->Set(Gauge::kKvPressureSome, some.shares[i], kPressureNames[i]);
    metrics->Set(Gauge::kKvPressureFull, full.shares[i], kPressureNames[i]);
  }
  const auto add_time = [&](const KvPressure::Level& before, const KvPressure::Level& now, std::string_view level) {
    metrics->Add(Counter::kKvPressureTime, Microseconds(now.total) - Microseconds(before.total), level);
  };
  add_time(seen.pressure.some, some, "some");
  add_time(seen.pressure.full, full, "full");
  metrics->Add(Counter::kTokensComputed, stats.tokens_computed - seen.tokens_computed);
  metrics->Add(Counter::kRefaultTokens, stats.refault_tokens - seen.refault_tokens);
  metrics->Add(Counter::kKvLimitDecreases, stats.limit_decreases - seen.limit_decreases);
  metrics->Set(Gauge::kRefaultShare, stats.refault_share);
  metrics->Set(Gauge::kOutsideRequests, stats.outside_requests);
  metrics->Set(Gauge::kKvTakenSlots, static_cast<double>(stats.taken_slots));
  metrics->Set(Gauge::kKvTakenSlotsLimit, static_cast<double>(stats.taken_slots_limit));
}

void AddTiers(const engine::TierStats& seen, const engine::TierStats& now, Metrics* metrics) {
  metrics->Add(Counter::kTokensLoaded, now.loaded_tokens - seen.loaded_tokens);
  metrics->Add(Counter::kTokensPrefetched, now.prefetched_tokens - seen.prefetched_tokens);
  metrics->Add(Counter::kLoadsFailed, now.failed_loads - seen.failed_loads);
  metrics->Add(Counter::kStoresFailed, now.failed_stores - seen.failed_stores);
  metrics->Add(Counter::kTierBytes, now.host_loaded_bytes - seen.host_loaded_bytes, "host_up");
  metrics->Add(Counter::kTierBytes, now.host_stored_bytes - seen.host_stored_bytes, "host_down");
  metrics->Add(Counter::kTierBytes, now.loaded_bytes - seen.loaded_bytes, "disk_up");
  metrics->Add(Counter::kTierBytes, now.stored_bytes - seen.stored_bytes, "disk_down");
  AddEach(Counter::kDiskReads, kReadOutcomeNames, seen.disk_reads, now.disk_reads, metrics);
  metrics->Add(Counter::kDiskRefused, now.refused_blocks - seen.refused_blocks);
  metrics->Set(Gauge::kDiskBlocks, static_cast<double>(now.blocks));
  metrics->Set(Gauge::kDiskLiveBytes, static_cast<double>(now.live_bytes));
  metrics->Set(Gauge::kDiskOccupiedBytes, static_cast<double>(now.occupied_bytes));
  metrics->Set(Gauge::kDiskDegraded, now.degraded ? 1 : 0);
}

void AddDiskLink(const engine::TierStats& seen, const engine::TierStats& now, Metrics* metrics) {
  for (size_t i = 0; i < kDirectionNames.size(); ++i) {
    const TransferMeter &before = seen.disk_link[i], &after = now.disk_link[i];
    AddEach(Counter::kDiskTransfers, kTransferEndNames, before.jobs, after.jobs, metrics);
    metrics->Add(Counter::kDiskBusy, Microseconds(after.busy) - Microseconds(before.busy), kDirectionNames[i]);
    metrics->Add(Counter::kDiskWaited, Microseconds(after.waited) - Microseconds(before.waited), kDirectionNames[i]);
    metrics->Set(Gauge::kDiskInFlightBytes, static_cast<double>(after.in_flight_bytes), kDirectionNames[i]);
    metrics->Set(Gauge::kDiskWaitingTransfers, after.waiting_jobs, kDirectionNames[i]);
  }
}

void AddTime(const engine::TimeTotals& seen, const engine::TimeTotals& now, Metrics* metrics) {
  const auto add = [&](Nanos before, Nanos after, std::string_view use) {
    metrics->Add(Counter::kEngineTime, Microseconds(after) - Microseconds(before), use);
  };
  add(seen.compute, now.compute, "compute");
  add(seen.other, now.other, "other");
  add(seen.transfers, now.transfers, "transfers");
  add(seen.idle, now.idle, "idle");
}

void AddHost(const engine::TierStats& seen, const engine::TierStats& now, Metrics* metrics) {
  metrics->Set(Gauge::kHostBytes, static_cast<double>(now.host_cached_bytes), "cached");
  metrics->Set(Gauge::kHostBytes, static_cast<double>(now.host_moving_bytes), "moving");
  metrics->Set(Gauge::kHostBytes, static_cast<double>(now.host_free_bytes), "free");
  metrics->Set(Gauge::kHostBytes, static_cast<double>(now.host_overhead_bytes), "overhead");
  metrics->Add(Counter::kHostTokensLoaded, now.host_loaded_tokens - seen.host_loaded_tokens);
  metrics->Add(Counter::kHostFound, now.host_found_cells - seen.host_found_cells);
  metrics->Add(Counter::kHostEvicted, now.host_evicted_cells - seen.host_evicted_cells);
  metrics->Add(Counter::kHostTakenBack, now.taken_back_blocks - seen.taken_back_blocks);
  metrics->Add(Counter::kHostDropped, now.host_dropped_blocks - seen.host_dropped_blocks);
}

void AddSessions(const engine::SessionStats& seen, const engine::SessionStats& now, Metrics* metrics) {
  metrics->Set(Gauge::kSessions, static_cast<double>(now.hot), "hot");
  metrics->Set(Gauge::kSessions, static_cast<double>(now.warm), "warm");
  metrics->Set(Gauge::kSessions, static_cast<double>(now.cold), "cold");
  metrics->Set(Gauge::kSessionsPinned, static_cast<double>(now.pinned));
  metrics->Add(Counter::kSessionsBegun, now.begun - seen.begun);
  metrics->Add(Counter::kSessionsEnded, now.ended - seen.ended, "ended");
  metrics->Add(Counter::kSessionsEnded, now.forgotten - seen.forgotten, "forgotten");
  metrics->Add(Counter::kSessionsRefused, now.refused - seen.refused);
  metrics->Add(Counter::kSessionMoves, now.suspended - seen.suspended, "suspended");
  metrics->Add(Counter::kSessionMoves, now.resumed - seen.resumed, "resumed");
  metrics->Add(Counter::kSessionTokens, now.history_tokens - seen.history_tokens, "history");
  metrics->Add(Counter::kSessionTokens, now.extended_tokens - seen.extended_tokens, "extended");
  metrics->Add(Counter::kSessionCommandsFailed, now.failed_commands - seen.failed_commands);
}

}  // namespace

void AddKvMetrics(const engine::EngineStats& seen, const engine::EngineStats& stats, Metrics* metrics) {
  AddEach(Counter::kPromptTokensByClass, kTokenClassNames, seen.hits.tokens, stats.hits.tokens, metrics);
  AddEach(Counter::kShadowHitTokens, kShadowNames, seen.hits.shadow_tokens, stats.hits.shadow_tokens, metrics);
  AddAges(Histogram::kKvBlockLifetime, seen.residency.lifetimes, stats.residency.lifetimes, metrics);
  AddAges(Histogram::kKvBlockIdleTime, seen.residency.idle_times, stats.residency.idle_times, metrics);
  AddAges(Histogram::kKvBlockReuseGap, seen.residency.reuse_gaps, stats.residency.reuse_gaps, metrics);
  const auto parts = stats.ledger.parts();
  for (size_t i = 0; i < parts.size(); ++i) {
    metrics->Set(Gauge::kKvLedgerBytes, static_cast<double>(parts[i]), kLedgerParts[i]);
  }
  metrics->Set(Gauge::kKvSharedBytes, static_cast<double>(stats.ledger.shared_bytes));
  AddThrash(seen, stats, metrics);
  AddTiers(seen.tiers, stats.tiers, metrics);
  AddDiskLink(seen.tiers, stats.tiers, metrics);
  AddHost(seen.tiers, stats.tiers, metrics);
  AddTime(seen.time, stats.time, metrics);
  AddSessions(seen.sessions, stats.sessions, metrics);
}

}  // namespace cachalot::server
