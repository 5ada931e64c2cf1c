// The pages that need no generation: health, version, metrics, models, and what is at the root.
// Threads:   pure functions.
// Ownership: none.
// Invariant: JSON bodies are valid JSON.
// Cost:      one small string; the metrics page some tens of kilobytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "server/http_types.h"
#include "server/served_model.h"

namespace cachalot::server {

HttpResponse RootPage(const ServedModel& model);
// 503 while draining, so that balancers send nothing more.
// Requests are answered in either case, but nothing is written to the disk tier, or of sessions.
struct Degraded {
  bool disk = false;
  bool sessions = false;
};
HttpResponse HealthPage(bool draining, const Degraded& degraded);
HttpResponse VersionPage(std::string_view version);
HttpResponse MetricsPage(const Metrics& metrics);
HttpResponse ModelsPage(const ServedModel& model, int64_t created);
// 404 for an unknown name.
HttpResponse ModelPage(const ServedModel& model, const std::string& name, int64_t created);

}  // namespace cachalot::server
