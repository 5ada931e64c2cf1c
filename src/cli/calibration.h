// Calibration keeps profiles of step costs in files: `cachalot calibrate` stores one, whoever loads a model begins with
// it.
// Threads:   main thread.
// Ownership: files in the cache folder belong to the user.
// Invariant: a file is whole or not there, and only its owner reads it. A damaged one never ends a program that was not
//            told to use it.
// Cost:      one small file.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "cost/calibration_profile.h"

namespace cachalot::cli {

// Where the profile of this key lies in the cache folder.
Result<std::string> CalibrationPath(const cost::CalibrationKey& key);

// The file that was named: an error says what is wrong with it, or that it is another model's or machine's.
Result<cost::CalibrationProfile> ReadCalibration(const std::string& path, const cost::CalibrationKey& key);

// That of the file in the cache folder. Nothing when there is none, or when it cannot be used, which is warned of.
std::optional<cost::CalibrationProfile> FindCalibration(const cost::CalibrationKey& key);

Status StoreCalibration(const std::string& path, const cost::CalibrationProfile& profile);

}  // namespace cachalot::cli
