#include "cli/replay_inputs.h"

#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/background_file.h"
#include "base/file.h"
#include "base/file_system.h"
#include "engine/input_log.h"
#include "sim/input_replay.h"
#include "tier/archive_file.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kMaxLogBytes = uint64_t{1} << 34;
constexpr uint64_t kReadBytes = uint64_t{1} << 20;

// Of what does not begin as a log, nothing more is read.
Result<std::string> ReadLog(const std::string& path) {
  CACHALOT_ASSIGN_OR_RETURN(InputStream stream, InputStream::Open(path));
  std::string bytes;
  for (bool begins = false;;) {
    CACHALOT_ASSIGN_OR_RETURN(const bool more, stream.Read(kReadBytes, &bytes));
    if (!more) return bytes;
    if (bytes.size() > kMaxLogBytes) return Invalid(fmt::format("{} is larger than {} bytes", path, kMaxLogBytes));
    if (begins || bytes.size() < kReadBytes) continue;
    if (const auto log = engine::ParseInputLog(bytes); !log.ok()) return log.status().Annotate(path);
    begins = true;
  }
}

}  // namespace

Result<Json::Object> InputReplay(const InputReplayOptions& options) {
  if (options.decision_log.empty()) return Invalid("--input-log needs --decision-log, a file for what is decided");
  CACHALOT_ASSIGN_OR_RETURN(const std::string bytes, ReadLog(options.input_log));
  Result<engine::LoggedInputs> log = engine::ParseInputLog(bytes);
  if (!log.ok()) return log.status().Annotate(options.input_log);
  const Status damage = log->damage;

  const std::unique_ptr<FileSystem> files = DiskFileSystem();
  auto file = BackgroundFile::Create(*files, options.decision_log, BackgroundFile::Gaps::kNoGaps);
  if (!file.ok()) return file.status().Annotate("--decision-log");
  std::optional<std::string> eviction;
  if (!options.with_eviction.empty()) eviction = options.with_eviction;
  CACHALOT_ASSIGN_OR_RETURN(
      const sim::InputReplayReport report,
      sim::ReplayInputs(std::move(*log), eviction, [&](std::string lines) { (*file)->Append(std::move(lines)); }));
  CACHALOT_RETURN_IF_ERROR((*file)->Close());
  if (!damage.ok()) {
    return damage.Annotate(fmt::format("{}: {} whole steps were replayed", options.input_log, report.steps));
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
