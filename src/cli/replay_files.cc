#include "cli/replay_files.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"

namespace cachalot::cli {
namespace {

Json Count(uint64_t count) { return static_cast<int64_t>(count); }

}  // namespace

Result<Lines> Lines::Open(const std::string& path) {
  Lines lines;
  if (path.empty()) return lines;
  CACHALOT_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  lines.file_.emplace(std::move(file));
  return lines;
}

void Lines::Add(std::string_view line) {
  text_ += line;
  text_ += '\n';
  constexpr size_t kBuffered = 1 << 20;
  if (text_.size() >= kBuffered) Flush();
}

Status Lines::Close() {
  if (!file_) return OkStatus();
  Flush();
  return status_.ok() ? file_->Commit() : status_;
}

void Lines::Flush() {
  if (file_ && status_.ok()) status_ = file_->Append(std::as_bytes(std::span(text_)));
  text_.clear();
}

std::string LogLine(const sim::ReplayedRequest& request) {
  Json::Object line;
  line.emplace_back("request", Count(request.index));
  line.emplace_back("arrival_seconds", ToSeconds(request.arrival));
  line.emplace_back("prompt_tokens", Count(request.prompt_tokens));
  if (!request.refusal.empty()) {
    line.emplace_back("refused", request.refusal);
  } else {
    line.emplace_back("cached_tokens", Count(request.cached_tokens));
    line.emplace_back("host_tokens", Count(request.host_tokens));
    line.emplace_back("disk_tokens", Count(request.disk_tokens));
    line.emplace_back("output_tokens", Count(request.output_tokens));
    line.emplace_back("ttft_seconds", ToSeconds(request.first_token - request.arrival));
    line.emplace_back("e2e_seconds", ToSeconds(request.finish - request.arrival));
  }
  return Json(std::move(line)).Dump();
}

Status WriteSeries(const std::string& path, const std::vector<sim::ServingSample>& samples) {
  CACHALOT_ASSIGN_OR_RETURN(Lines lines, Lines::Open(path));
  lines.Add(
      "seconds,running_sequences,waiting_requests,pool_in_use,pool_idle,prompt_tokens_cached,prompt_tokens_computed,"
      "tokens_generated,refault_share,pressure,waste,host_blocks,disk_blocks,compute_seconds,transfer_seconds,idle_"
      "seconds,bytes_from_pool,bytes_to_pool,disk_bytes_read,disk_bytes_written,tokens_computed,refault_tokens");
  for (const sim::ServingSample& s : samples) {
    lines.Add(fmt::format(
        "{:.3f},{},{},{:.4f},{:.4f},{},{},{},{:.4f},{:.4f},{:.4f},{},{},{:.3f},{:.3f},{:.3f},{},{},{},{},{},{}",
        ToSeconds(s.time), s.running, s.waiting, s.in_use, s.idle, s.prompt_tokens_cached, s.prompt_tokens_computed,
        s.tokens_generated, s.refault_share, s.pressure, s.waste, s.host_blocks, s.disk_blocks,
        ToSeconds(s.spent.compute), ToSeconds(s.spent.transfers), ToSeconds(s.spent.idle), s.moved.from_pool,
        s.moved.to_pool, s.moved.disk_read, s.moved.disk_written, s.tokens_computed, s.refault_tokens));
  }
  return lines.Close();
}

}  // namespace cachalot::cli
