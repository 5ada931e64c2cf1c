// The handles of the server's metrics, which base/metric_table.h declares.
// Threads:   constants.
// Ownership: none.
// Invariant: each is the index of its row.
// Cost:      none.
#pragma once

#include <cstdint>

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
  kDiskTransfers,
  kDiskBusy,
  kDiskWaited,
  kSessionsBegun,
  kSessionsEnded,
  kSessionsRefused,
  kSessionMoves,
  kSessionTokens,
  kSessionCommandsFailed,
  kHostFound,
  kHostEvicted,
  kHostTakenBack,
  kHostDropped,
  kDiskRefused,
  kDiskReads,
  kTokensPrefetched,
  kHostTokensLoaded,
  kEngineTime,
  kRecordsLost,
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
  kSessions,
  kSessionsPinned,
  kDiskInFlightBytes,
  kDiskWaitingTransfers,
  kHostBytes,
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

}  // namespace cachalot
