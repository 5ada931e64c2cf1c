#include "sim/read_trace.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/trimmed.h"
#include "sim/formats/line_source.h"
#include "sim/formats/log_time.h"
#include "sim/formats/trace_format.h"
#include "sim/reuse_model.h"

namespace cachalot::sim {
namespace {

constexpr uint64_t kMostBlocks = uint64_t{1} << 27;  // of a whole trace
constexpr uint32_t kMostBlockTokens = 1 << 20;

struct KnownFormat {
  std::string_view name;
  std::string_view mark;  // in its first line, by which it is known
  std::unique_ptr<TraceFormat> (*make)(const FormatContext& context);
  bool in_order;     // of time: lines were written when requests came, not when they ended
  bool tells_reuse;  // what text requests have in common
  bool from_start;   // its times are counted from its beginning
  uint32_t block_tokens;
};

// The first whose mark is there is the one.
constexpr KnownFormat kFormats[] = {
    {kRecordFormat, "\"cachalot_record\"", MakeRecordFormat, false, true, false, 16},
    {"mooncake", "\"hash_ids\"", MakeMooncakeFormat, true, true, true, 512},
    {"azure", "ContextTokens", MakeAzureFormat, true, false, false, 512},
    {"burstgpt", "Request tokens", MakeBurstGptFormat, true, false, false, 512},
    {"requests", "{", MakeRequestsFormat, false, true, false, 16},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kFormats)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kFormats[i].name;
  return names;
}();

Result<const KnownFormat*> FindFormat(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &KnownFormat::name);
  if (found != std::end(kFormats)) return &*found;
  return Invalid(fmt::format("unknown format \"{}\": expected one of {}", name, fmt::join(kNames, ", ")));
}

Result<const KnownFormat*> GuessFormat(std::string_view line) {
  for (const KnownFormat& format : kFormats) {
    if (line.find(format.mark) != std::string_view::npos) return &format;
  }
  return Invalid(
      fmt::format("this is no line of a trace that is known; expected one of the formats {}", fmt::join(kNames, ", ")));
}

// Reads a trace line by line.
class Reader {
 public:
  explicit Reader(const ReadTraceOptions& options) : options_(options), text_(file_.trace) {}

  Result<TraceFile> Read(LineSource lines) && {
    CACHALOT_RETURN_IF_ERROR(CheckOptions());
    std::string_view line;
    while (true) {
      CACHALOT_ASSIGN_OR_RETURN(const bool more, lines.Next(&line));
      if (!more) break;
      if (Trimmed(line).empty()) continue;
      if (format_ == nullptr) CACHALOT_RETURN_IF_ERROR(Begin(line));
      const Status status = Add(line, lines.number());
      if (blocks_ > kMostBlocks) {
        return Invalid(
            fmt::format("line {}: more than {} blocks: expected a larger --block-tokens, or a part of the trace",
                        lines.number(), kMostBlocks));
      }
      if (status.ok()) continue;
      const Status named = status.Annotate(fmt::format("line {}", lines.number()));
      if (!options_.skip_bad) return named;
      if (file_.skipped_lines++ == 0) file_.first_skipped = named.message();
    }
    return Finish();
  }

 private:
  Status CheckOptions() {
    if (options_.block_tokens > kMostBlockTokens) {
      return Invalid(fmt::format("blocks of {} tokens: expected at most {}", options_.block_tokens, kMostBlockTokens));
    }
    if (!(options_.longest_gap > 0)) {
      return Invalid(fmt::format("--longest-gap is {}: expected more than 0 seconds", options_.longest_gap));
    }
    if (!options_.time_unit.empty() && !IsTimeUnit(options_.time_unit)) {
      return Invalid(fmt::format("--time-unit is \"{}\": expected s, ms, us or ns", options_.time_unit));
    }
    if (!options_.reuse.empty()) {
      const Result<ReuseModel> reuse = ParseReuseModel(options_.reuse);
      if (!reuse.ok()) return reuse.status().Annotate("--reuse");
      reuse_ = *reuse;
    }
    if (options_.format.empty()) return OkStatus();
    CACHALOT_ASSIGN_OR_RETURN(known_, FindFormat(options_.format));
    return OkStatus();
  }

  Status Begin(std::string_view first_line) {
    if (known_ == nullptr) {
      CACHALOT_ASSIGN_OR_RETURN(known_, GuessFormat(first_line));
    }
    if (known_->tells_reuse && reuse_) {
      return Invalid(
          fmt::format("a {} trace says itself what its requests have in common: --reuse has no place", known_->name));
    }
    if (!known_->tells_reuse && !reuse_) {
      return Invalid(
          fmt::format("{} traces do not say what their requests have in common, and hit rates hang on it: "
                      "expected --reuse none, system:TOKENS, chat:SHARE or session",
                      known_->name));
    }
    file_.format = known_->name;
    file_.trace.block_tokens = options_.block_tokens == 0 ? known_->block_tokens : options_.block_tokens;
    sorts_ = options_.sort || !known_->in_order;
    format_ = known_->make({options_, file_.trace, text_});
    return OkStatus();
  }

  Status Add(std::string_view line, uint64_t number) {
    CACHALOT_ASSIGN_OR_RETURN(std::optional<TraceRequest> request, format_->Read(line));
    if (!request) return OkStatus();
    if (!sorts_ && !numbers_.empty()) {
      CACHALOT_RETURN_IF_ERROR(CheckTimes(file_.trace.requests.back().arrival, numbers_.back(), request->arrival));
    }
    blocks_ += request->input_tokens / file_.trace.block_tokens + 1;
    file_.trace.requests.push_back(std::move(*request));
    numbers_.push_back(number);
    return OkStatus();
  }

  // Of two requests that follow each other.
  Status CheckTimes(Nanos before, uint64_t line_before, Nanos arrival) const {
    const double seconds = ToSeconds(arrival - before);
    if (seconds < 0) {
      return Invalid(fmt::format("its time is {:g} s before that of line {}: expected them in order, or --sort",
                                 -seconds, line_before));
    }
    if (seconds <= options_.longest_gap) return OkStatus();
    return Invalid(
        fmt::format("its time is {:g} s after that of line {}, as if the clock had jumped: expected at most "
                    "{:g} s (--longest-gap)",
                    seconds, line_before, options_.longest_gap));
  }

  Result<TraceFile> Finish() {
    std::vector<TraceRequest>& requests = file_.trace.requests;
    if (requests.empty()) {
      if (file_.skipped_lines == 0) return Invalid("the trace has no requests");
      return Invalid(fmt::format("the trace has no requests: {} lines were skipped, the first because of: {}",
                                 file_.skipped_lines, file_.first_skipped));
    }
    if (sorts_) CACHALOT_RETURN_IF_ERROR(Sort());
    if (!known_->from_start) {
      const Nanos first = requests.front().arrival;
      for (TraceRequest& request : requests) request.arrival -= first;
    }
    if (reuse_) CACHALOT_RETURN_IF_ERROR(ApplyReuse(*reuse_, options_.seed, &file_.trace));
    return std::move(file_);
  }

  // Requests that came at the same time stay as they were.
  Status Sort() {
    std::vector<TraceRequest>& requests = file_.trace.requests;
    std::vector<size_t> order(requests.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return requests[i].arrival; });
    std::vector<TraceRequest> sorted;
    sorted.reserve(requests.size());
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0) {
        const Status status = CheckTimes(sorted.back().arrival, numbers_[order[i - 1]], requests[order[i]].arrival);
        if (!status.ok()) return status.Annotate(fmt::format("line {}", numbers_[order[i]]));
      }
      sorted.push_back(std::move(requests[order[i]]));
    }
    requests = std::move(sorted);
    return OkStatus();
  }

  const ReadTraceOptions& options_;
  TraceFile file_;
  TextKeeper text_;
  const KnownFormat* known_ = nullptr;
  std::optional<ReuseModel> reuse_;
  bool sorts_ = false;
  std::unique_ptr<TraceFormat> format_;  // null before the first line
  std::vector<uint64_t> numbers_;        // of the lines of the requests
  uint64_t blocks_ = 0;
};

}  // namespace

std::span<const std::string_view> TraceFormatNames() { return kNames; }

Result<TraceFile> ReadTrace(std::string_view text, const ReadTraceOptions& options) {
  return Reader(options).Read(LineSource(text));
}

Result<TraceFile> ReadTraceFile(const std::string& path, const ReadTraceOptions& options) {
  CACHALOT_ASSIGN_OR_RETURN(LineSource lines, LineSource::Open(path));
  Result<TraceFile> file = Reader(options).Read(std::move(lines));
  if (!file.ok()) return file.status().Annotate(path);
  return file;
}

}  // namespace cachalot::sim
