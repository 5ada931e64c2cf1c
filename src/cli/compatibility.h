// Compatibility: which settings of `cachalot serve` do not go together, in one table. The server checks it when it
// starts, and docs/compatibility.md is printed from it.
// Threads:   pure functions.
// Ownership: none.
// Invariant: settings that nobody changed go together. Ranges of single settings are checked elsewhere.
// Cost:      microseconds.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model_options.h"
#include "cli/serve_logs.h"
#include "engine/engine.h"
#include "server/server_options.h"

namespace cachalot::cli {

struct ServeSettings {
  ModelOptions model;
  engine::EngineOptions engine;
  server::ServerOptions server;
  LogOptions logs;
};

enum class Verdict : uint8_t {
  kRefused,  // the server does not start
  kWarned,   // it starts, and says that a setting does nothing or not what one may think
};

struct Combination {
  std::string_view options;
  Verdict verdict;
  std::string_view reason;
  bool (*holds)(const ServeSettings& settings);
};

std::span<const Combination> Combinations();

// "--a with --b: reason", of those that hold.
std::vector<std::string> Found(const ServeSettings& settings, Verdict verdict);

// docs/compatibility.md.
std::string CompatibilityPage();

}  // namespace cachalot::cli
