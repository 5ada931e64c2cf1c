// EngineLogs are both logs of one engine, in memory.
// Threads:   one.
// Ownership: owns both; outlives the engine.
// Invariant: none.
// Cost:      that of the logs.
#pragma once

#include <string>

#include "engine/decision_log.h"
#include "engine/engine.h"
#include "engine/input_log.h"

namespace cachalot::engine {

class EngineLogs {
 public:
  EngineLogs() = default;
  EngineLogs(const EngineLogs&) = delete;
  EngineLogs& operator=(const EngineLogs&) = delete;

  void Attach(EngineOptions* options) {
    options->input_log = &input_log_;
    options->decision_log = &decision_log_;
  }
  // The engine makes no further step.
  void End() { input_log_.End(); }

  const std::string& inputs() const { return inputs_; }
  const std::string& decisions() const { return decisions_; }

 private:
  std::string inputs_, decisions_;
  InputLog input_log_{[this](const std::string& bytes) { inputs_ += bytes; }};
  DecisionLog decision_log_{[this](const std::string& lines) { decisions_ += lines; }};
};

}  // namespace cachalot::engine
