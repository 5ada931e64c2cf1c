// LoadShape finds what memory and time of a model depend on, by file or name.
// Threads:   any.
// Ownership: none.
// Invariant: none.
// Cost:      reads a config or a GGUF header; a model that `fetch` knows is fetched if it is not there.
#pragma once

#include <string>

#include "base/status.h"
#include "plan/model_shape.h"

namespace cachalot::cli {

// A folder with a config.json, a GGUF file, a config.json, a name of the planner's catalogue, or one that `fetch`
// knows. kInvalid, with the names, for any other.
Result<plan::ModelShape> LoadShape(const std::string& name);

}  // namespace cachalot::cli
