// RunSubprocess runs a program to its end, reading what it prints.
// Threads:   any; the calling thread waits. The program is killed if that thread ends first (Linux).
// Ownership: the result owns its text.
// Invariant: on return the program has ended and was waited for; captured text is bounded.
// Cost:      one fork and exec; no polling.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace cachalot {

struct SubprocessOptions {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH; standard input is empty
  // Called for each line of standard output, without its end, as it arrives. Null: lines go to SubprocessResult::out.
  std::function<void(std::string_view line)> on_line;
  bool inherit_error = false;       // standard error goes where ours goes, instead of SubprocessResult::err
  size_t capture_bytes = 64 << 10;  // of either text: `out` keeps its first, `err` its last bytes
};

struct SubprocessResult {
  int exit_status = 0;
  int signal = 0;  // that ended it; 0 when it exited by itself
  std::string out;
  std::string err;
  bool ok() const { return exit_status == 0 && signal == 0; }
};

// kUnavailable when the program cannot be started (not found, not executable, no more processes). A program that ran
// and failed is a result.
Result<SubprocessResult> RunSubprocess(const SubprocessOptions& options);

}  // namespace cachalot
