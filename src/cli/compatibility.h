// Compatibility: which settings of `cachalot serve` do not go together, in one table, and in another one those of which
// the model's blocks decide. The server checks them when it starts, and docs/compatibility.md is printed from them.
// Threads:   pure functions.
// Ownership: none.
// Invariant: settings that nobody changed go together. Ranges of single settings are checked elsewhere.
// Cost:      microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
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

// What of it is known once the model is loaded; 0: not yet, or there is none.
struct ModelSizes {
  uint64_t block_bytes = 0;    // of all layer groups
  uint64_t staging_bytes = 0;  // of the disk tier
};

struct SizeCombination {
  std::string_view options;
  std::string_view reason;
  // The numbers, where it holds.
  std::optional<std::string> (*found)(const TierOptions& tiers, const ModelSizes& sizes);
};

std::span<const SizeCombination> SizeCombinations();

// kInvalid for those that hold.
Status CheckSizes(const TierOptions& tiers, const ModelSizes& sizes);

// docs/compatibility.md.
std::string CompatibilityPage();

}  // namespace cachalot::cli
