// The program's version.
// Threads:   constant.
// Ownership: none.
// Invariant: equals the version of the build (CMakeLists.txt).
// Cost:      none.
#pragma once

namespace cachalot::cli {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace cachalot::cli
