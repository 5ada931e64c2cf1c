#include "cli/calibration.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/file.h"
#include "base/log.h"
#include "model/fetch.h"

namespace cachalot::cli {

Result<std::string> CalibrationPath(const cost::CalibrationKey& key) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string folder, model::DefaultCacheFolder());
  return folder + "/" + cost::ProfileFileName(key);
}

Result<cost::CalibrationProfile> ReadCalibration(const std::string& path, const cost::CalibrationKey& key) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, cost::kMaxProfileBytes));
  Result<cost::CalibrationProfile> profile = cost::ParseProfile(text);
  if (!profile.ok()) return profile.status().Annotate(path + " is no calibration profile");
  if (const std::string difference = cost::DifferenceOf(profile->key, key); !difference.empty()) {
    return Invalid(fmt::format("{}: this calibration is of {}", path, difference));
  }
  return profile;
}

std::optional<cost::CalibrationProfile> FindCalibration(const cost::CalibrationKey& key) {
  const Result<std::string> path = CalibrationPath(key);
  std::error_code error;
  if (!path.ok() || !std::filesystem::exists(*path, error)) return std::nullopt;
  const Result<cost::CalibrationProfile> profile = ReadCalibration(*path, key);
  if (profile.ok()) return *profile;
  LogWarning(fmt::format("{}; it is ignored, `cachalot calibrate` makes a new one", profile.status().message()));
  return std::nullopt;
}

Status StoreCalibration(const std::string& path, const cost::CalibrationProfile& profile) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) return Unavailable(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  return WriteFileAtomically(path, cost::ProfileText(profile), FileAccess::kOwnerOnly);
}

}  // namespace cachalot::cli
