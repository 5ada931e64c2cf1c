#include "cli/known_shape.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "engine/engine.h"
#include "exec/cpu/cpu_executor.h"
#include "model/catalogue.h"
#include "model/fetch.h"
#include "model/fingerprint.h"
#include "model/gguf.h"
#include "model/hf_config.h"
#include "model/model_spec.h"
#include "plan/models.h"

namespace cachalot::cli {
namespace {

Result<plan::ModelShape> ShapeOfConfig(const std::string& text, const std::string& name, const std::string& source) {
  CACHALOT_ASSIGN_OR_RETURN(const model::HfConfig config, model::ParseHfConfig(text, source));
  return plan::ShapeOf(config, name, source);
}

Result<plan::ModelShape> ShapeOfGguf(const std::string& path) {
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile file, model::GgufFile::Open(path));
  return plan::ShapeOf(file);
}

// The GGUF file that the name stands for; empty where it stands for a config, or nothing.
Result<std::string> GgufOf(const std::string& name) {
  std::error_code missing;
  const std::filesystem::path path = name;
  if (std::filesystem::exists(path, missing)) return path.extension() == ".gguf" ? name : "";
  if (plan::FindModel(name) != nullptr || model::FindCatalogueEntry(name) == nullptr) return std::string();
  return model::ResolveModel(name, model::DefaultFetchOptions());
}

}  // namespace

Result<plan::ModelShape> LoadShape(const std::string& name) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string gguf, GgufOf(name));
  if (!gguf.empty()) return ShapeOfGguf(gguf);
  std::error_code missing;
  std::filesystem::path path = name;
  if (std::filesystem::is_directory(path, missing)) {
    path /= "config.json";
    if (!std::filesystem::exists(path, missing)) return Invalid(fmt::format("the folder {} has no config.json", name));
  }
  if (std::filesystem::exists(path, missing)) {
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, model::kMaxHfConfigBytes));
    const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
    return ShapeOfConfig(text, folder.filename(), path);
  }
  if (const plan::CatalogueModel* known = plan::FindModel(name)) {
    return ShapeOfConfig(std::string(known->config), std::string(known->title), std::string(known->source));
  }
  return Invalid(
      fmt::format("model \"{}\" is no file, folder or known name; expected a config.json, a GGUF file, {} "
                  "(GGUF), or one of {}",
                  name, model::CatalogueNames(), plan::ModelNames()));
}

Result<std::optional<uint64_t>> ServerActivationBytes(const std::string& name, const StepSize& step) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string gguf, GgufOf(name));
  if (gguf.empty()) return std::optional<uint64_t>();
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile file, model::GgufFile::Open(gguf));
  CACHALOT_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::ReadModelSpec(file));
  const exec::StepLimits limits{step.rows, engine::EngineOptions{}.max_sequences};
  return std::optional(exec::CpuWorkspaceBytes(spec, limits, step.context_tokens));
}

Result<cost::CalibrationProfile> ReadCalibrationOf(const std::string& path, const std::string& model) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, cost::kMaxProfileBytes));
  Result<cost::CalibrationProfile> profile = cost::ParseProfile(text);
  if (!profile.ok()) return profile.status().Annotate(path + " is no calibration profile");
  CACHALOT_ASSIGN_OR_RETURN(const std::string gguf, GgufOf(model));
  if (gguf.empty()) {
    return Invalid(
        fmt::format("{}: this calibration is of model {}, a GGUF file, but of {} there is a config only: expected that "
                    "file as the model, or no calibration",
                    path, profile->key.model, model));
  }
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile file, model::GgufFile::Open(gguf));
  if (const std::string found = HexOf(model::ModelFingerprint(file)); found != profile->key.model) {
    return Invalid(fmt::format("{}: this calibration is of model {} instead of {}, which {} is", path,
                               profile->key.model, found, model));
  }
  return profile;
}

}  // namespace cachalot::cli
