// The files that a replay writes beside its figures: a line per request, and the engine's state over time.
// Threads:   one thread.
// Ownership: owns the file until it is closed.
// Invariant: a file is there whole, once its Close returned no error, or not at all.
// Cost:      a write per MiB.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "sim/trace_serving.h"

namespace cachalot::cli {

// A text file that grows line by line; all errors are told by Close.
class Lines {
 public:
  // No path: nothing is written.
  static Result<Lines> Open(const std::string& path);
  void Add(std::string_view line);
  Status Close();

 private:
  void Flush();
  std::optional<AtomicFile> file_;
  std::string text_;
  Status status_;
};

// As JSON.
std::string LogLine(const sim::ReplayedRequest& request);
// As CSV.
Status WriteSeries(const std::string& path, const std::vector<sim::ServingSample>& samples);

}  // namespace cachalot::cli
