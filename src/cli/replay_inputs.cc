#include "cli/replay_inputs.h"

#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/background_file.h"
#include "base/file.h"
#include "base/file_system.h"
#include "engine/input_log_reader.h"
#include "sim/input_replay.h"

namespace cachalot::cli {

Result<Json::Object> InputReplay(const InputReplayOptions& options) {
  if (options.decision_log.empty()) return Invalid("--input-log needs --decision-log, a file for what is decided");
  CACHALOT_ASSIGN_OR_RETURN(InputStream stream, InputStream::Open(options.input_log));
  const auto read = [&](uint64_t most_bytes, std::string* bytes) { return stream.Read(most_bytes, bytes); };
  Result<engine::InputLogReader> log = engine::InputLogReader::Open(read);
  if (!log.ok()) return log.status().Annotate(options.input_log);

  const std::unique_ptr<FileSystem> files = DiskFileSystem();
  auto file = BackgroundFile::Create(*files, options.decision_log, BackgroundFile::Gaps::kNoGaps);
  if (!file.ok()) return file.status().Annotate("--decision-log");
  std::optional<sim::OtherPolicy> other;
  if (!options.with_eviction.empty()) other = sim::OtherPolicy{.eviction = options.with_eviction};
  CACHALOT_ASSIGN_OR_RETURN(const sim::InputReplayReport report, sim::ReplayInputs(*log, other, [&](std::string lines) {
                              (*file)->Append(std::move(lines));
                            }));
  CACHALOT_RETURN_IF_ERROR((*file)->Close());
  if (!report.damage.ok()) {
    return report.damage.Annotate(fmt::format("{}: {} whole steps were replayed", options.input_log, report.steps));
  }
  const auto count = [](uint64_t value) { return Json(static_cast<int64_t>(value)); };
  return Json::Object{{"steps", count(report.steps)},
                      {"steps_that_ran_the_model", count(report.last.steps)},
                      {"finished_requests", count(report.last.requests_finished)},
                      {"refused_requests", count(report.last.requests_rejected)},
                      {"cancelled_requests", count(report.last.requests_cancelled)},
                      {"prompt_tokens_cached", count(report.last.prompt_tokens_cached)},
                      {"prompt_tokens_computed", count(report.last.prompt_tokens_computed)},
                      {"tokens", count(report.tokens)},
                      {"tokens_not_in_the_log", count(report.other_tokens)}};
}

}  // namespace cachalot::cli
