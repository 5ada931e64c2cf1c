// ServeLogs are the files that `cachalot serve` writes of what it was asked and what it decided.
// Threads:   main thread, but for what the engine and the server write into them.
// Ownership: owns the files; outlives engine and generators that write into them.
// Invariant: files are new, for their owner's eyes only. Where serving never began, none is left.
// Cost:      that of engine/request_record.h, engine/input_log.h and engine/decision_log.h; nothing for logs nobody
//            asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/background_file.h"
#include "base/clock.h"
#include "base/file_system.h"
#include "base/metrics.h"
#include "base/status.h"
#include "cli/model_options.h"
#include "engine/decision_log.h"
#include "engine/engine.h"
#include "engine/input_log.h"
#include "engine/request_record.h"
#include "server/recording_generator.h"

namespace cachalot::cli {

struct LogOptions {
  std::string record;
  std::string input_log;
  std::string decision_log;
  template <class F>
  void Visit(F&& f) {
    f("record", record,
      "New file that gets a line per request: when, how long and what it shares with others, nothing of its content. "
      "`cachalot replay` reads it.");
    f("input-log", input_log,
      "New file that gets all that enters the engine, contents included: for `cachalot replay --input-log`.");
    f("decision-log", decision_log, "New file that gets all that the engine decides, as text.");
  }
};

class ServeLogs {
 public:
  // Makes the files, and has the engine that is made with `engine` write into them. Requires settings whose input can
  // be logged (cli/compatibility.h).
  static Result<std::unique_ptr<ServeLogs>> Open(const LogOptions& options, const ModelOptions& model,
                                                 engine::EngineOptions* engine);
  ~ServeLogs();

  // The generator to serve with, which is `generator` or one that hands all on to it.
  server::Generator& Begin(server::Generator& generator, Clock& clock, Metrics& metrics);
  // Serving is over, and the engine makes no further step. Says what is in the files, and what is not.
  void Close();

 private:
  ServeLogs() = default;
  Status OpenAll(const LogOptions& options, const ModelOptions& model, engine::EngineOptions* engine);
  Result<BackgroundFile*> NewFile(const std::string& flag, const std::string& path);

  const std::unique_ptr<FileSystem> files_ = DiskFileSystem();
  std::vector<std::unique_ptr<BackgroundFile>> logs_;
  std::vector<std::string> paths_;
  std::string record_path_;
  SteadyClock clock_;
  std::unique_ptr<engine::RequestRecord> record_;
  std::optional<engine::InputLog> input_log_;
  std::optional<engine::DecisionLog> decision_log_;
  std::optional<server::RecordingGenerator> recorder_;
  bool served_ = false;
};

}  // namespace cachalot::cli
