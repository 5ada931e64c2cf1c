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
// `degraded`: requests are answered, but nothing is written to disk.
HttpResponse HealthPage(bool draining, bool degraded);
HttpResponse VersionPage(std::string_view version);
HttpResponse MetricsPage(const Metrics& metrics);
HttpResponse ModelsPage(const ServedModel& model, int64_t created);
// 404 for an unknown name.
HttpResponse ModelPage(const ServedModel& model, const std::string& name, int64_t created);

}  // namespace cachalot::server
