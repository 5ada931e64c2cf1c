// ProgressBar draws how far something is on standard error, when that is a terminal.
// Threads:   one.
// Ownership: none.
// Invariant: the bar is gone when the object is.
// Cost:      at most a hundred writes.
#pragma once

#include <string>

namespace cachalot::cli {

class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  // share: 0 to 1.
  void Show(double share);

 private:
  const std::string label_;
  const bool on_terminal_;
  int shown_percent_ = -1;
};

// Set by SIGINT and SIGTERM once CatchInterrupts was called.
void CatchInterrupts();
bool Interrupted();
void ClearInterrupt();

}  // namespace cachalot::cli
