// AddKvMetrics brings into the metrics what the engine counted about the KV: which prompt tokens were found and why
// others were not, what other caches would have had, how long blocks stay, what the pool's bytes are used for,
// how much is waited for KV and computed again, and what became of sessions.
// Threads:   I/O thread.
// Ownership: none.
// Invariant: the class "salt" is counted as "new": whoever reads the metrics must not learn what other tenants have.
// Cost:      a few additions per series, and none for histograms that did not change.
#pragma once

#include "base/metrics.h"
#include "engine/engine.h"

namespace cachalot::server {

// `seen`: of the step before.
void AddKvMetrics(const engine::EngineStats& seen, const engine::EngineStats& stats, Metrics* metrics);

}  // namespace cachalot::server
