// ReplayLog replays an input log that is whole, for tests: what is decided, and the report.
// Threads:   a pure function.
// Ownership: none.
// Invariant: none.
// Cost:      that of sim/input_replay.h.
#pragma once

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "engine/input_log_reader.h"
#include "sim/input_replay.h"

namespace cachalot::cli {

struct ReplayedLog {
  std::string decisions;
  sim::InputReplayReport report;
};

inline ReplayedLog ReplayLog(const std::string& inputs, const std::optional<std::string>& eviction = {}) {
  ReplayedLog replayed;
  Result<engine::InputLogReader> log = engine::InputLogReader::Open(engine::SourceOf(inputs));
  EXPECT_TRUE(log.ok()) << log.status().message();
  if (!log.ok()) return replayed;
  std::optional<sim::OtherPolicy> other;
  if (eviction) other = sim::OtherPolicy{.eviction = *eviction};
  auto report = sim::ReplayInputs(*log, other, [&](const std::string& lines) { replayed.decisions += lines; });
  EXPECT_TRUE(report.ok()) << report.status().message();
  if (report.ok()) replayed.report = *report;
  EXPECT_TRUE(replayed.report.damage.ok()) << replayed.report.damage.message();
  return replayed;
}

}  // namespace cachalot::cli
