// `cachalot replay --input-log`: the decisions of a server made again from what entered it.
// Threads:   main thread.
// Ownership: none.
// Invariant: the decision log is that of the server, to the byte, unless another policy is asked for.
// Cost:      that of sim/input_replay.h.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"

namespace cachalot::cli {

struct InputReplayOptions {
  std::string input_log;
  std::string decision_log;
  std::string with_eviction;
  template <class F>
  void Visit(F&& f) {
    f("input-log", input_log, "Instead of TRACE: what `serve --input-log` wrote, step by step.");
    f("decision-log", decision_log, "With --input-log: new file that gets what is decided.");
    f("with-eviction", with_eviction, "With --input-log: this eviction policy in place of the server's.");
  }
};

// Figures of the replay. kCorrupt, with what there was replayed, where the log is damaged or was cut off.
Result<Json::Object> InputReplay(const InputReplayOptions& options);

}  // namespace cachalot::cli
