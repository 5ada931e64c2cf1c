#include "sim/read_trace.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <unordered_map>
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
  bool gives_ids;    // of blocks; of others they are made of the text
  uint32_t block_tokens;
};

// The first whose mark is there is the one.
constexpr KnownFormat kFormats[] = {
    {kRecordFormat, "\"cachalot_record\"", MakeRecordFormat, false, true, false, false, 16},
    {"mooncake", "\"hash_ids\"", MakeMooncakeFormat, true, true, true, true, 512},
    {"azure", "ContextTokens", MakeAzureFormat, true, false, false, false, 512},
    {"burstgpt", "Request tokens", MakeBurstGptFormat, true, false, false, false, 512},
    {"requests", "{", MakeRequestsFormat, false, true, false, false, 16},
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

// Which id each one follows; the first of a request its own.
class IdPlaces {
 public:
  // Of a request that does not contradict those before, else kInvalid, and nothing is learnt.
  Status Learn(const std::vector<uint64_t>& ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto known = before_.find(ids[i]);
      if (known != before_.end() && known->second != ids[i == 0 ? 0 : i - 1]) return DisplacedId(ids[i]);
    }
    for (size_t i = 0; i < ids.size(); ++i) before_.emplace(ids[i], ids[i == 0 ? 0 : i - 1]);
    return OkStatus();
  }

 private:
  std::unordered_map<uint64_t, uint64_t> before_;
};

// Reads a trace line by line.
class Reader {
 public:
  // What is kept of the requests' text goes to `trace`; they themselves go to the sink.
  Reader(const ReadTraceOptions& options, Kept kept, Trace& trace, const RequestSink& sink)
      : options_(options), kept_(kept), trace_(trace), sink_(sink), text_(trace, kept) {}

  Result<TraceFacts> Read(LineSource lines) && {
    CACHALOT_RETURN_IF_ERROR(CheckOptions());
    std::string_view line;
    while (true) {
      CACHALOT_ASSIGN_OR_RETURN(const bool more, lines.Next(&line));
      if (!more) break;
      if (Trimmed(line).empty()) continue;
      if (format_ == nullptr) CACHALOT_RETURN_IF_ERROR(Begin(line));
      const Status status = Add(line, lines.number());
      if (kept_blocks_ > kMostBlocks) {
        return Invalid(
            fmt::format("line {}: more than {} blocks: expected a larger --block-tokens, or a part of the trace",
                        lines.number(), kMostBlocks));
      }
      if (!status.ok()) CACHALOT_RETURN_IF_ERROR(Skip(status, lines.number()));
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
      author_.emplace(*reuse, options_.seed);
    }
    if (options_.format.empty()) return OkStatus();
    CACHALOT_ASSIGN_OR_RETURN(known_, FindFormat(options_.format));
    return OkStatus();
  }

  Status Begin(std::string_view first_line) {
    if (known_ == nullptr) {
      CACHALOT_ASSIGN_OR_RETURN(known_, GuessFormat(first_line));
    }
    if (known_->tells_reuse && author_) {
      return Invalid(
          fmt::format("a {} trace says itself what its requests have in common: --reuse has no place", known_->name));
    }
    if (!known_->tells_reuse && !author_) {
      return Invalid(
          fmt::format("{} traces do not say what their requests have in common, and hit rates hang on it: "
                      "expected --reuse none, system:TOKENS, chat:SHARE or session",
                      known_->name));
    }
    facts_.format = known_->name;
    trace_.block_tokens = options_.block_tokens == 0 ? known_->block_tokens : options_.block_tokens;
    sorts_ = options_.sort || !known_->in_order;
    format_ = known_->make({options_, trace_, text_});
    return OkStatus();
  }

  Status Add(std::string_view line, uint64_t number) {
    CACHALOT_ASSIGN_OR_RETURN(std::optional<TraceRequest> request, format_->Read(line));
    if (!request) return OkStatus();
    if (sorts_ || kept_ == Kept::kText) kept_blocks_ += request->input_tokens / trace_.block_tokens + 1;
    if (!sorts_) return Give(std::move(*request), number);
    unsorted_.push_back(std::move(*request));
    numbers_.push_back(number);
    return OkStatus();
  }

  // A line that makes no sense.
  Status Skip(const Status& status, uint64_t number) {
    const Status named = status.Annotate(fmt::format("line {}", number));
    if (!options_.skip_bad) return named;
    if (facts_.skipped_lines++ == 0) facts_.first_skipped = named.message();
    return OkStatus();
  }

  // The next in order, which stood in that line.
  Status Give(TraceRequest request, uint64_t number) {
    if (last_) CACHALOT_RETURN_IF_ERROR(CheckTimes(*last_, request.arrival));
    const Place place{request.arrival, number};
    if (!first_) first_ = known_->from_start ? Nanos(0) : request.arrival;
    request.arrival -= *first_;
    if (author_) {
      author_->Write(&request);
      std::vector<uint32_t> words = WordsOf(trace_, request);
      words.resize(request.input_tokens);
      text_.NameBlocks(words, &request);
    }
    if (kept_ == Kept::kText && known_->gives_ids) CACHALOT_RETURN_IF_ERROR(places_.Learn(request.blocks));
    CACHALOT_RETURN_IF_ERROR(sink_(std::move(request), trace_.block_tokens));
    last_ = place;
    ++facts_.requests;
    return OkStatus();
  }

  struct Place {
    Nanos arrival;
    uint64_t line;
  };

  // Of two requests that follow each other.
  Status CheckTimes(const Place& before, Nanos arrival) const {
    const double seconds = ToSeconds(arrival - before.arrival);
    if (seconds < 0) {
      return Invalid(fmt::format("its time is {:g} s before that of line {}: expected them in order, or --sort",
                                 -seconds, before.line));
    }
    if (seconds <= options_.longest_gap) return OkStatus();
    return Invalid(
        fmt::format("its time is {:g} s after that of line {}, as if the clock had jumped: expected at most "
                    "{:g} s (--longest-gap)",
                    seconds, before.line, options_.longest_gap));
  }

  Result<TraceFacts> Finish() {
    CACHALOT_RETURN_IF_ERROR(GiveSorted());
    if (facts_.requests == 0) {
      if (facts_.skipped_lines == 0) return Invalid("the trace has no requests");
      return Invalid(fmt::format("the trace has no requests: {} lines were skipped, the first because of: {}",
                                 facts_.skipped_lines, facts_.first_skipped));
    }
    if (author_) CACHALOT_RETURN_IF_ERROR(author_->Finish());
    facts_.block_tokens = trace_.block_tokens;
    return std::move(facts_);
  }

  // Requests that came at the same time stay as they were.
  Status GiveSorted() {
    std::vector<size_t> order(unsorted_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return unsorted_[i].arrival; });
    for (const size_t i : order) {
      const Status status = Give(std::move(unsorted_[i]), numbers_[i]);
      if (!status.ok()) CACHALOT_RETURN_IF_ERROR(Skip(status, numbers_[i]));
    }
    return OkStatus();
  }

  const ReadTraceOptions& options_;
  const Kept kept_;
  Trace& trace_;
  const RequestSink& sink_;
  TraceFacts facts_;
  TextKeeper text_;
  const KnownFormat* known_ = nullptr;
  std::optional<ReuseAuthor> author_;  // of --reuse
  IdPlaces places_;                    // where all are kept
  bool sorts_ = false;
  std::unique_ptr<TraceFormat> format_;  // null before the first line
  std::optional<Place> last_;            // that was given
  std::optional<Nanos> first_;           // from which times are counted
  std::vector<TraceRequest> unsorted_;   // where they must be sorted before they are given
  std::vector<uint64_t> numbers_;        // of their lines
  uint64_t kept_blocks_ = 0;
};

Result<TraceFile> ReadWhole(LineSource lines, const ReadTraceOptions& options) {
  TraceFile file;
  const RequestSink keep = [&](TraceRequest request, uint32_t) {
    file.trace.requests.push_back(std::move(request));
    return OkStatus();
  };
  CACHALOT_ASSIGN_OR_RETURN(file.facts, Reader(options, Kept::kText, file.trace, keep).Read(std::move(lines)));
  return file;
}

Result<TraceFacts> Stream(LineSource lines, const ReadTraceOptions& options, const RequestSink& sink) {
  Trace nothing;
  return Reader(options, Kept::kNothing, nothing, sink).Read(std::move(lines));
}

}  // namespace

std::span<const std::string_view> TraceFormatNames() { return kNames; }

Result<TraceFile> ReadTrace(std::string_view text, const ReadTraceOptions& options) {
  return ReadWhole(LineSource(text), options);
}

Result<TraceFile> ReadTraceFile(const std::string& path, const ReadTraceOptions& options) {
  CACHALOT_ASSIGN_OR_RETURN(LineSource lines, LineSource::Open(path));
  Result<TraceFile> file = ReadWhole(std::move(lines), options);
  if (!file.ok()) return file.status().Annotate(path);
  return file;
}

Result<TraceFacts> StreamTrace(std::string_view text, const ReadTraceOptions& options, const RequestSink& sink) {
  return Stream(LineSource(text), options, sink);
}

Result<TraceFacts> StreamTraceFile(const std::string& path, const ReadTraceOptions& options, const RequestSink& sink) {
  CACHALOT_ASSIGN_OR_RETURN(LineSource lines, LineSource::Open(path));
  Result<TraceFacts> facts = Stream(std::move(lines), options, sink);
  if (!facts.ok()) return facts.status().Annotate(path);
  return facts;
}

}  // namespace cachalot::sim
