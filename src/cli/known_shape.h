// What is known of a model by file or name: LoadShape finds what its memory and time depend on, ReadCalibrationOf what
// was measured of it.
// Threads:   any.
// Ownership: none.
// Invariant: none.
// Cost:      reads a config or a GGUF header; a model that `fetch` knows is fetched if it is not there. A calibration
//            is compared with every byte of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "cost/calibration_profile.h"
#include "plan/model_shape.h"

namespace cachalot::cli {

// A folder with a config.json, a GGUF file, a config.json, a name of the planner's catalogue, or one that `fetch`
// knows. kInvalid, with the names, for any other.
Result<plan::ModelShape> LoadShape(const std::string& name);

// What this server's own executor needs for steps of so many rows, where the name is that of a GGUF file; else nothing.
struct StepSize {
  uint32_t rows = 0;
  uint64_t context_tokens = 0;
};
Result<std::optional<uint64_t>> ServerActivationBytes(const std::string& name, const StepSize& step);

// The calibration in that file. kInvalid, naming both, unless it is of the model that LoadShape finds by that name; a
// model of which there is but a config was never measured.
Result<cost::CalibrationProfile> ReadCalibrationOf(const std::string& path, const std::string& model);

}  // namespace cachalot::cli
