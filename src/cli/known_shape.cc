#include "cli/known_shape.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "model/catalogue.h"
#include "model/fetch.h"
#include "model/gguf.h"
#include "model/hf_config.h"
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

}  // namespace

Result<plan::ModelShape> LoadShape(const std::string& name) {
  std::error_code missing;
  std::filesystem::path path = name;
  if (std::filesystem::is_directory(path, missing)) path /= "config.json";
  if (std::filesystem::exists(path, missing)) {
    if (path.extension() == ".gguf") return ShapeOfGguf(path);
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, model::kMaxHfConfigBytes));
    const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
    return ShapeOfConfig(text, folder.filename(), path);
  }
  if (const plan::CatalogueModel* known = plan::FindModel(name)) {
    return ShapeOfConfig(std::string(known->config), std::string(known->title), std::string(known->source));
  }
  if (model::FindCatalogueEntry(name) != nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(const std::string file, model::ResolveModel(name, model::DefaultFetchOptions()));
    return ShapeOfGguf(file);
  }
  return Invalid(
      fmt::format("model \"{}\" is no file, folder or known name; expected a config.json, a GGUF file, {} "
                  "(GGUF), or one of {}",
                  name, model::CatalogueNames(), plan::ModelNames()));
}

}  // namespace cachalot::cli
