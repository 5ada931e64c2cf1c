// ReplayLog replays an input log that is whole, for tests: what is decided, and the report.
// Threads:   a pure function.
// Ownership: none.
// Invariant: none.
// Cost:      that of sim/input_replay.h.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "engine/input_log.h"
#include "sim/input_replay.h"
#include "tier/archive_file.h"

namespace cachalot::cli {

struct ReplayedLog {
  std::string decisions;
  sim::InputReplayReport report;
};

inline ReplayedLog ReplayLog(const std::string& inputs, const std::optional<std::string>& eviction = {}) {
  ReplayedLog replayed;
  Result<engine::LoggedInputs> log = engine::ParseInputLog(inputs);
  EXPECT_TRUE(log.ok() && log->damage.ok());
  if (!log.ok()) return replayed;
  auto report = sim::ReplayInputs(std::move(log).value(), eviction,
                                  [&](const std::string& lines) { replayed.decisions += lines; });
  EXPECT_TRUE(report.ok()) << report.status().message();
  if (report.ok()) replayed.report = *report;
  return replayed;
}

}  // namespace cachalot::cli
