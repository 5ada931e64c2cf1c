#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

namespace cachalot::cli {
namespace {

constexpr int kBarWidth = 40;
volatile std::sig_atomic_t interrupted = 0;

void OnInterrupt(int) { interrupted = 1; }

}  // namespace

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), on_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (shown_percent_ >= 0) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::Show(double share) {
  const int percent = std::clamp(static_cast<int>(share * 100), 0, 100);
  if (!on_terminal_ || percent == shown_percent_) return;
  shown_percent_ = percent;
  const int filled = percent * kBarWidth / 100;
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  std::fputs(fmt::format("\r{} [{}] {:3}%", label_, bar, percent).c_str(), stderr);
}

void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;  // no SA_RESTART: a blocking read returns
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}
bool Interrupted() { return interrupted != 0; }
void ClearInterrupt() { interrupted = 0; }

}  // namespace cachalot::cli
