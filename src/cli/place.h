// PlaceOf names a file or folder so that two ways of writing its path can be compared.
// Threads:   any; looks at the file system.
// Ownership: none.
// Invariant: of one that is still to be made it is where it will be. Empty where the path cannot be followed.
// Cost:      that of following the links on the way.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace cachalot::cli {

inline std::filesystem::path PlaceOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? std::filesystem::path() : std::filesystem::weakly_canonical(absolute, error);
}

}  // namespace cachalot::cli
