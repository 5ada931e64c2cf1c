#include "load/report.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/json.h"
#include "base/units.h"
#include "base/utf8.h"

namespace cachalot::load {
namespace {

double Milliseconds(Nanos t) { return static_cast<double>(t.count()) / 1e6; }

// What a server says may hold anything; it goes to a terminal.
std::string Printable(std::string_view text) {
  std::string out = ReplaceInvalidUtf8(text);
  std::ranges::replace_if(
      out, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return out;
}

std::string Row(std::string_view name, const DurationHistogram& h) {
  return fmt::format("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", name, h.MeanSeconds() * 1e3,
                     Milliseconds(h.Quantile(0.5)), Milliseconds(h.Quantile(0.9)), Milliseconds(h.Quantile(0.99)),
                     Milliseconds(h.max()));
}

void Write(std::string_view key, const DurationHistogram& h, JsonWriter* w) {
  w->Key(key).BeginObject();
  w->Key("count").UInt(h.count());
  w->Key("mean").Double(h.MeanSeconds() * 1e3);
  w->Key("p50").Double(Milliseconds(h.Quantile(0.5)));
  w->Key("p90").Double(Milliseconds(h.Quantile(0.9)));
  w->Key("p99").Double(Milliseconds(h.Quantile(0.99)));
  w->Key("max").Double(Milliseconds(h.max()));
  w->EndObject();
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

bool IsGood(const RequestRecord& record, const GoodputLimits& limits) {
  const auto within = [](Nanos value, Nanos limit) { return limit == Nanos(0) || value <= limit; };
  return record.outcome == Outcome::kOk && within(TimeToFirstToken(record), limits.ttft) &&
         within(TimePerToken(record), limits.time_per_token) && within(EndToEnd(record), limits.end_to_end);
}

void LoadReport::Add(const RequestRecord& record) {
  ++outcomes_[static_cast<size_t>(record.outcome)];
  lateness_.Add(record.sent - record.due);
  busy_seconds_ += ToSeconds(record.ended - record.sent);
  if (record.outcome == Outcome::kOk) return AddOk(record);
  if (record.outcome != Outcome::kAborted) AddFailure(record);
}

void LoadReport::AddOk(const RequestRecord& record) {
  ttft_.Add(TimeToFirstToken(record));
  end_to_end_.Add(EndToEnd(record));
  for (Nanos gap : record.answer.gaps) gaps_.Add(gap);
  if (!record.answer.gaps.empty()) time_per_token_.Add(TimePerToken(record));
  if (IsGood(record, limits_)) ++good_;
  output_tokens_ += OutputTokens(record);
  if (!record.answer.usage) return;
  ++with_usage_;
  prompt_tokens_ += record.answer.usage->prompt_tokens;
  if (!record.answer.usage->cached_tokens) return;
  ++with_cached_;
  cached_tokens_ += *record.answer.usage->cached_tokens;
}

void LoadReport::AddFailure(const RequestRecord& record) {
  constexpr size_t kMostExamples = 5;
  if (record.outcome == Outcome::kStatus) ++statuses_[record.answer.status];
  const bool new_kind =
      count(record.outcome) == 1 || (record.outcome == Outcome::kStatus && statuses_[record.answer.status] == 1);
  if (new_kind && examples_.size() < kMostExamples) {
    examples_.push_back(fmt::format("{}: {}", OutcomeName(record.outcome), Printable(record.why)));
  }
}

uint64_t LoadReport::sent() const { return std::accumulate(outcomes_.begin(), outcomes_.end(), uint64_t{0}); }

double LoadReport::PerSecond(uint64_t count) const {
  return elapsed_ <= Nanos(0) ? 0 : static_cast<double>(count) / ToSeconds(elapsed_);
}

std::string LoadReport::CacheLine() const {
  if (with_usage_ == 0) return "the server gives no usage: prompt tokens unknown, an output token is a piece of text\n";
  if (with_cached_ == 0) return "the server does not tell cached tokens\n";
  return fmt::format("cached: {} of {} prompt tokens ({:.1f} %)\n", FormatCount(cached_tokens_),
                     FormatCount(prompt_tokens_), 100 * Share(cached_tokens_, prompt_tokens_));
}

std::string LoadReport::ErrorLines() const {
  std::string out;
  for (size_t i = 1; i < kOutcomes; ++i) {
    if (outcomes_[i] > 0) out += fmt::format("{}: {}\n", OutcomeName(static_cast<Outcome>(i)), outcomes_[i]);
  }
  for (const auto& [status, times] : statuses_) out += fmt::format("HTTP {}: {}\n", status, times);
  for (const std::string& example : examples_) out += fmt::format("  {}\n", example);
  return out;
}

std::string LoadReport::Table() const {
  std::string out =
      fmt::format("{} {}, model {}\n{}; {}; seed {}; {:.3f} tokens per word ({})\n\n", setting_.url, setting_.endpoint,
                  Printable(setting_.model), setting_.load, setting_.prompts, setting_.seed,
                  setting_.fit.tokens_per_word, setting_.fit.measured ? "measured" : "assumed");
  out += fmt::format("{} requests in {:.2f} s: {} ok, {} failed{}; {:.1f} under way on average, {} at most\n",
                     FormatCount(sent()), ToSeconds(elapsed_), FormatCount(ok()), FormatCount(failed()),
                     count(Outcome::kAborted) > 0 ? fmt::format(", {} aborted", count(Outcome::kAborted)) : "",
                     elapsed_ <= Nanos(0) ? 0 : busy_seconds_ / ToSeconds(elapsed_), peak_in_flight_);
  out += fmt::format("throughput: {:.2f} requests/s, {:.1f} output tokens/s, {:.1f} prompt tokens/s\n", PerSecond(ok()),
                     PerSecond(output_tokens_), PerSecond(prompt_tokens_));
  out += fmt::format("goodput: {:.2f} requests/s ({:.1f} % of those sent)\n", PerSecond(good_),
                     100 * Share(good_, sent()));
  out += CacheLine() + ErrorLines();
  out += "\n| ms | mean | p50 | p90 | p99 | max |\n| --- | ---: | ---: | ---: | ---: | ---: |\n";
  out += Row("time to first token", ttft_) + Row("inter-token latency", gaps_) +
         Row("time per output token", time_per_token_) + Row("end to end", end_to_end_) +
         Row("sent late by", lateness_);
  return out;
}

std::string LoadReport::Json() const {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.Key("url").String(setting_.url).Key("endpoint").String(setting_.endpoint).Key("model").String(setting_.model);
  w.Key("load").String(setting_.load).Key("prompts").String(setting_.prompts).Key("seed").UInt(setting_.seed);
  w.Key("tokens_per_word").Double(setting_.fit.tokens_per_word).Key("seconds").Double(ToSeconds(elapsed_));
  w.Key("requests").BeginObject().Key("sent").UInt(sent()).Key("ok").UInt(ok()).Key("failed").UInt(failed());
  w.Key("aborted").UInt(count(Outcome::kAborted)).EndObject();
  w.Key("in_flight").BeginObject().Key("peak").UInt(peak_in_flight_);
  w.Key("mean").Double(elapsed_ <= Nanos(0) ? 0 : busy_seconds_ / ToSeconds(elapsed_)).EndObject();
  w.Key("errors").BeginObject().Key("kinds").BeginObject();
  for (size_t i = 1; i < kOutcomes; ++i) {
    if (outcomes_[i] > 0) w.Key(OutcomeName(static_cast<Outcome>(i))).UInt(outcomes_[i]);
  }
  w.EndObject().Key("statuses").BeginObject();
  for (const auto& [status, times] : statuses_) w.Key(std::to_string(status)).UInt(times);
  w.EndObject().Key("examples").BeginArray();
  for (const std::string& example : examples_) w.String(example);
  w.EndArray().EndObject();
  w.Key("tokens").BeginObject();
  w.Key("prompt").UInt(prompt_tokens_).Key("output").UInt(output_tokens_).Key("cached");
  with_cached_ > 0 ? w.UInt(cached_tokens_) : w.Null();
  w.EndObject();
  w.Key("throughput").BeginObject().Key("requests_per_second").Double(PerSecond(ok()));
  w.Key("output_tokens_per_second").Double(PerSecond(output_tokens_));
  w.Key("prompt_tokens_per_second").Double(PerSecond(prompt_tokens_)).EndObject();
  w.Key("goodput").BeginObject().Key("good").UInt(good_).Key("share").Double(Share(good_, sent()));
  w.Key("requests_per_second").Double(PerSecond(good_));
  w.Key("ttft_limit_ms").Double(Milliseconds(limits_.ttft));
  w.Key("itl_limit_ms").Double(Milliseconds(limits_.time_per_token));
  w.Key("e2e_limit_ms").Double(Milliseconds(limits_.end_to_end)).EndObject();
  Write("ttft_ms", ttft_, &w);
  Write("itl_ms", gaps_, &w);
  Write("time_per_token_ms", time_per_token_, &w);
  Write("e2e_ms", end_to_end_, &w);
  Write("late_ms", lateness_, &w);
  w.EndObject();
  return out + "\n";
}

}  // namespace cachalot::load
