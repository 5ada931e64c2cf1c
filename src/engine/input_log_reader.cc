#include "engine/input_log_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/input_fields.h"
#include "engine/input_frames.h"

namespace cachalot::engine {
namespace {

constexpr uint64_t kReadBytes = uint64_t{1} << 20;
constexpr uint32_t kMostChoices = 1 << 16;

Status Damage(uint64_t at, std::string_view what) {
  return Status(Code::kCorrupt, fmt::format("offset {}: {}", at, what));
}

// Of an arrival from a file.
bool MayBe(const GenerateRequest& request) {
  return request.tenant.value < kMostTenants && request.n <= kMostChoices &&
         std::ranges::is_sorted(request.end_tokens) && request.retention.ttl >= Nanos(0) &&
         request.retention.pin >= Nanos(0);
}

bool MayBe(const StoreAnswers& answers) {
  const auto rate = [](const ChangedAnswer<TierRate>& changed) {
    const TierRate& r = changed.answer;
    return r.latency_seconds >= 0 && r.latency_seconds < 1e9 && r.bytes_per_second > 0 && r.bytes_per_second < 1e18;
  };
  return std::ranges::all_of(answers.load_rates, rate) &&
         std::ranges::all_of(answers.deadlines, [](const auto& changed) { return changed.answer >= Nanos(0); });
}

// As a file's reader promises it.
bool MayBe(const ArchiveAnswers& answers) {
  const auto part = [](const ArchiveEnd& end) { return end.groups.size() <= tier::kArchivedKvBlocks; };
  const auto header = [](const tier::ArchiveHeader& h) { return h.kv_tokens <= h.session.tokens.size(); };
  return std::ranges::all_of(answers.ends, part) && std::ranges::all_of(answers.headers, header);
}

bool MayFollow(const LoggedStep& step, Nanos before) {
  constexpr Nanos kLatest = std::chrono::hours(24 * 365 * 100);
  const StepInput& input = step.input;
  const auto may_arrive = [](const GenerateRequest& request) { return MayBe(request); };
  const auto may_be = [&](const Inquiry& inquiry) { return std::ranges::all_of(inquiry.requests, may_arrive); };
  return input.now >= before && input.now < kLatest && input.last_duration >= Nanos(0) &&
         input.last_duration < kLatest && input.last_stalled >= Nanos(0) && input.last_stalled <= input.last_duration &&
         input.waited >= Nanos(0) && input.waited < kLatest && (!step.store || MayBe(*step.store)) &&
         (!step.archive || MayBe(*step.archive)) && std::ranges::all_of(input.arrivals, may_arrive) &&
         std::ranges::all_of(input.inquiries, may_be);
}

}  // namespace

Result<InputLogReader> InputLogReader::Open(Source source) {
  InputLogReader reader(std::move(source));
  CACHALOT_RETURN_IF_ERROR(reader.ReadFacts());
  return reader;
}

// So many bytes from here on, which live until the next call; fewer at the end.
Result<std::string_view> InputLogReader::Peek(uint64_t bytes) {
  while (buffer_.size() - taken_ < bytes && !source_ended_) {
    buffer_.erase(0, std::exchange(taken_, 0));
    CACHALOT_ASSIGN_OR_RETURN(const bool more, source_(kReadBytes, &buffer_));
    source_ended_ = !more;
  }
  return std::string_view(buffer_).substr(taken_, bytes);
}

void InputLogReader::Skip(uint64_t bytes) {
  taken_ += bytes;
  at_ += bytes;
}

// A payload, which lives until something is read again.
Result<std::string_view> InputLogReader::TakeFrame() {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view head, Peek(kFrameHead));
  if (head.empty()) return Damage(at_, "the log ends without its end mark, as after a crash");
  if (head.size() < kFrameHead) return Damage(at_, "the log ends in mid-frame");
  uint32_t size = 0, checksum = 0;
  LogReader fields(head);
  fields(size, checksum);
  if (size > kMostFrameBytes) {
    return Damage(at_, fmt::format("a frame of {} bytes, expected at most {}", size, kMostFrameBytes));
  }
  CACHALOT_ASSIGN_OR_RETURN(std::string_view payload, Peek(kFrameHead + size));
  if (payload.size() < kFrameHead + size) return Damage(at_, "the log ends in mid-frame");
  payload.remove_prefix(kFrameHead);
  if (FrameChecksum(payload) != checksum) return Damage(at_, "a frame's checksum is wrong");
  Skip(kFrameHead + size);
  return payload;
}

Status InputLogReader::ReadFacts() {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view magic, Peek(kLogMagic.size()));
  if (magic != kLogMagic) {
    return Invalid(fmt::format("offset 0: expected an input log, which begins {}", kLogMagic));
  }
  Skip(kLogMagic.size());
  const uint64_t at = at_;
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view payload, TakeFrame());
  Frame frame{};
  LogReader in(payload);
  in.EnumUpTo(frame, Frame::kEnd);
  in(facts_);
  if (!in.done() || frame != Frame::kFacts) {
    return Invalid(fmt::format("offset {}: expected what this version knows of an engine and its options", at));
  }
  if (const auto problems = Problems(facts_); !problems.empty()) {
    return Invalid(fmt::format("offset {}: no engine is so: {}", at, problems.front()));
  }
  return OkStatus();
}

Result<bool> InputLogReader::Next(LoggedStep* step) {
  CACHALOT_RETURN_IF_ERROR(damage_);
  if (over_) return false;
  Result<bool> more = ReadStep(step);
  damage_ = more.status();
  over_ = more.ok() && !*more;
  return more;
}

Result<bool> InputLogReader::ReadStep(LoggedStep* step) {
  const uint64_t at = at_;
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view payload, TakeFrame());
  Frame frame{};
  LogReader in(payload);
  in.EnumUpTo(frame, Frame::kEnd);
  if (frame == Frame::kEnd && in.done()) {
    CACHALOT_ASSIGN_OR_RETURN(const std::string_view more, Peek(1));
    if (!more.empty()) return Damage(at_, "something follows the log's end");
    return false;
  }
  *step = {};
  in(step->input, step->drains, step->found_sessions, step->copies, step->store, step->syncs, step->archive,
     step->tokens, step->run_failed);
  if (!in.done() || frame != Frame::kStep || !MayFollow(*step, now_)) {
    return Damage(at, "expected a step, later than those before");
  }
  now_ = step->input.now;
  return true;
}

InputLogReader::Source SourceOf(std::string_view bytes) {
  return [bytes](uint64_t most_bytes, std::string* out) mutable -> Result<bool> {
    const std::string_view next = bytes.substr(0, most_bytes);
    out->append(next);
    bytes.remove_prefix(next.size());
    return !next.empty();
  };
}

}  // namespace cachalot::engine
