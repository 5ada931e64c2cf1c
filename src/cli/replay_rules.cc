#include "cli/replay_rules.h"

#include <iterator>
#include <utility>

#include "cli/replay_inputs.h"
#include "cli/replay_options.h"
#include "cli/trace_source.h"
#include "engine/engine.h"

namespace cachalot::cli {
namespace {

// The modes: --input-log, --print-trace, --engine, --curve, and else the cache alone, of which a sweep does many.
std::vector<OptionRule> ReplayRules() {
  std::vector<OptionRule> rules = {
      // What else than a replay of a trace is done.
      {"TRACE", {}, {"input-log"}},
      {"print-trace", {}, {"input-log"}},
      {"curve", {}, {"input-log", "print-trace", "engine", "sweep"}},
      {"sweep", {}, {"input-log", "print-trace"}},
      // The cache alone.
      {"policy", {}, {"input-log", "print-trace", "engine", "curve"}},
      {"capacity-blocks", {}, {"input-log", "print-trace", "engine", "curve"}},
      {"ghosts-per-block", {}, {"input-log", "print-trace", "engine", "curve"}},
      {"positions-per-row", {}, {"input-log", "print-trace", "engine", "curve"}},
      {"leaves-only", {}, {"input-log", "print-trace", "engine"}},
      {"warm-up-requests", {}, {"input-log", "print-trace", "engine"}},
      {"sampled", {"curve"}, {}},
      // How it runs, and what is shown of it.
      {"threads", {"sweep"}, {}},
      {"html", {}, {"input-log", "print-trace"}},
      {"json", {}, {"print-trace"}},
      // Parts of the engine's machine.
      {"profile", {}, {"step-curve"}},
      {"kv-memory", {"kv-model", "kv-bytes-per-token"}, {"kv-blocks"}},  // else nobody said what a block takes
      {"kv-format", {"kv-model"}, {}},
      {"kv-bytes-per-token", {}, {"kv-model"}},
      {"host-link", {"host-blocks", "disk-blocks"}, {}},
      {"host-latency", {"host-link"}, {}},
      {"host-eviction", {"host-blocks"}, {}},
      {"disk-read", {"disk-blocks"}, {}},
      {"disk-write", {"disk-blocks"}, {}},
      {"disk-latency", {"disk-blocks"}, {}},
      {"disk-write-rate", {"disk-blocks"}, {}},
      {"request-log", {}, {"sweep"}},
      {"series", {}, {"sweep"}},
      {"series-every", {"series", "html"}, {"sweep"}},
  };
  const auto add = [&](std::vector<OptionRule> more) {
    rules.insert(rules.begin(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  add(TraceRules());
  add(RulesOfAll<TraceSource>({}, {"input-log"}));
  add(RulesOfAll<EngineReplayOptions>({"engine"}, {"input-log", "print-trace"}));
  add(RulesOfAll<engine::EngineOptions>({"engine"}, {"input-log", "print-trace"}));
  add(RulesOfAll<InputReplayOptions>({"input-log"}, {}));
  return rules;
}

}  // namespace

Status CheckReplayOptions(const GivenOptions& given) {
  static const std::vector<OptionRule> rules = ReplayRules();
  return CheckRules(given, rules);
}

}  // namespace cachalot::cli
