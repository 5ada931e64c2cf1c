#include "cli/serve_logs.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"

namespace cachalot::cli {

Result<std::unique_ptr<ServeLogs>> ServeLogs::Open(const LogOptions& options, const ModelOptions& model,
                                                   engine::EngineOptions* engine) {
  std::unique_ptr<ServeLogs> logs(new ServeLogs);
  CACHALOT_RETURN_IF_ERROR(logs->OpenAll(options, model, engine));
  return logs;
}

Status ServeLogs::OpenAll(const LogOptions& options, const ModelOptions& model, engine::EngineOptions* engine) {
  if (!options.input_log.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(BackgroundFile* const file, NewFile("--input-log", options.input_log));
    engine->input_log = &input_log_.emplace([file](std::string bytes) { file->Append(std::move(bytes)); });
  }
  if (!options.decision_log.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(BackgroundFile* const file, NewFile("--decision-log", options.decision_log));
    engine->decision_log = &decision_log_.emplace([file](std::string lines) { file->Append(std::move(lines)); });
  }
  if (!options.record.empty()) {
    auto record = engine::RequestRecord::Create(*files_, options.record, model.block_tokens, clock_.Now());
    if (!record.ok()) return record.status().Annotate("--record");
    record_ = std::move(*record);
    paths_.push_back(options.record);
    record_path_ = options.record;
  }
  return OkStatus();
}

Result<BackgroundFile*> ServeLogs::NewFile(const std::string& flag, const std::string& path) {
  auto file = BackgroundFile::Create(*files_, path, BackgroundFile::Gaps::kNoGaps);
  if (!file.ok()) return file.status().Annotate(flag);
  paths_.push_back(path);
  return logs_.emplace_back(std::move(*file)).get();
}

ServeLogs::~ServeLogs() {
  if (served_) return;
  for (const std::string& path : paths_) static_cast<void>(files_->Remove(path));
}

server::Generator& ServeLogs::Begin(server::Generator& generator, Clock& clock, Metrics& metrics) {
  if (record_ == nullptr) return generator;
  return recorder_.emplace(generator, *record_, clock, metrics);
}

void ServeLogs::Close() {
  served_ = true;
  if (input_log_) input_log_->End();
  for (const std::unique_ptr<BackgroundFile>& log : logs_) {
    const Status status = log->Close();
    if (!status.ok()) LogError(fmt::format("{} is not whole: {}", log->path(), status.message()));
  }
  if (record_ == nullptr) return;
  static_cast<void>(record_->Close());
  LogInfo(fmt::format("{}: {} requests recorded, {} lost", record_path_, record_->written(), record_->lost()));
}

}  // namespace cachalot::cli
