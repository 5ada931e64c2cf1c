#include "load/resume_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/json.h"
#include "base/units.h"

namespace cachalot::load {
namespace {

double Milliseconds(Nanos t) { return static_cast<double>(t.count()) / 1e6; }

// The least value that at least `share` of all are not above; zero of none.
Nanos Quantile(std::vector<Nanos> values, double share) {
  if (values.empty()) return Nanos(0);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const auto place = values.begin() + (static_cast<ptrdiff_t>(std::max(1.0, rank)) - 1);
  std::ranges::nth_element(values, place);
  return *place;
}

std::vector<Nanos> TimesOf(const std::vector<ResumeSample>& samples, Nanos ResumeSample::*time) {
  std::vector<Nanos> times;
  for (const ResumeSample& sample : samples) times.push_back(sample.*time);
  return times;
}

uint64_t MeanPromptTokens(const std::vector<ResumeSample>& samples) {
  uint64_t sum = 0;
  for (const ResumeSample& sample : samples) sum += sample.prompt_tokens;
  return samples.empty() ? 0 : sum / samples.size();
}

std::optional<uint64_t> MeanCachedTokens(const std::vector<ResumeSample>& samples) {
  uint64_t sum = 0;
  for (const ResumeSample& sample : samples) {
    if (!sample.cached_tokens) return std::nullopt;
    sum += *sample.cached_tokens;
  }
  return samples.empty() ? 0 : sum / samples.size();
}

std::map<std::string, uint64_t> Places(const std::vector<ResumeSample>& samples) {
  std::map<std::string, uint64_t> places;
  for (const ResumeSample& sample : samples) {
    if (!sample.where.empty()) ++places[sample.where];
  }
  return places;
}

std::string PlacesText(const std::vector<ResumeSample>& samples) {
  std::string text;
  for (const auto& [place, times] : Places(samples)) {
    text += text.empty() ? "" : ", ";
    text += times == samples.size() ? place : fmt::format("{} ({})", place, times);
  }
  return text;
}

void WriteTimes(std::string_view key, const std::vector<Nanos>& times, JsonWriter* w) {
  w->Key(key).BeginObject();
  for (const auto& [name, share] :
       {std::pair{"min", 0.0}, std::pair{"p50", 0.5}, std::pair{"p99", 0.99}, std::pair{"max", 1.0}}) {
    w->Key(name).Double(Milliseconds(Quantile(times, share)));
  }
  w->EndObject();
}

}  // namespace

uint64_t ResumeReport::count(Rest rest) const {
  const auto kind = kinds_.find(rest);
  return kind == kinds_.end() ? 0 : kind->second.samples.size();
}

Nanos ResumeReport::MedianTtft(Rest rest) const {
  const auto kind = kinds_.find(rest);
  return kind == kinds_.end() ? Nanos(0) : Quantile(TimesOf(kind->second.samples, &ResumeSample::ttft), 0.5);
}

std::optional<double> ResumeReport::TimesSooner(Rest rest) const {
  const Nanos cold = MedianTtft(Rest::kCold), it = MedianTtft(rest);
  if (cold <= Nanos(0) || it <= Nanos(0)) return std::nullopt;
  return ToSeconds(cold) / ToSeconds(it);
}

std::string ResumeReport::Table() const {
  const ResumeOptions& o = setting_.options;
  std::string out = fmt::format(
      "{} {}, model {}, way {}\n{} conversations of each kind: {} tokens, an answer of {}, then {} more; seed {}; "
      "{:.3f} "
      "tokens per word\n\n",
      setting_.url, o.endpoint, setting_.model, setting_.way, o.conversations, FormatCount(o.prompt_tokens),
      o.max_tokens, o.turn_tokens, o.seed, setting_.fit.tokens_per_word);
  out +=
      "| between two turns | TTFT p50 ms | p99 | min | max | restore | suspend | cached of prompt tokens | KV was in | "
      "cold / it |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |\n";
  for (const auto& [rest, kind] : kinds_) {
    const std::vector<Nanos> ttft = TimesOf(kind.samples, &ResumeSample::ttft);
    const std::optional<uint64_t> cached = MeanCachedTokens(kind.samples);
    out += fmt::format("| {} ", RestName(rest));
    for (const double share : {0.5, 0.99, 0.0, 1.0})
      out += fmt::format("| {:.1f} ", Milliseconds(Quantile(ttft, share)));
    const Nanos restore = Quantile(TimesOf(kind.samples, &ResumeSample::restore), 0.5);
    out += restore > Nanos(0) ? fmt::format("| {:.1f} ", Milliseconds(restore)) : "| ";
    out += kind.suspends.empty() ? "| " : fmt::format("| {:.1f} ", Milliseconds(Quantile(kind.suspends, 0.5)));
    out += fmt::format("| {} of {} ", cached ? FormatCount(*cached) : "?", FormatCount(MeanPromptTokens(kind.samples)));
    const std::optional<double> sooner = TimesSooner(rest);
    out += fmt::format("| {} | {} |\n", PlacesText(kind.samples), sooner ? fmt::format("{:.1f}", *sooner) : "");
  }
  return out;
}

std::string ResumeReport::Json() const {
  const ResumeOptions& o = setting_.options;
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.Key("url").String(setting_.url).Key("endpoint").String(o.endpoint).Key("model").String(setting_.model);
  w.Key("way").String(setting_.way).Key("seed").UInt(o.seed).Key("conversations").UInt(o.conversations);
  w.Key("tokens").BeginObject().Key("first_turn").UInt(o.prompt_tokens).Key("answer").UInt(o.max_tokens);
  w.Key("second_turn").UInt(o.turn_tokens).EndObject();
  w.Key("tokens_per_word").Double(setting_.fit.tokens_per_word);
  w.Key("rests").BeginArray();
  for (const auto& [rest, kind] : kinds_) {
    w.BeginObject().Key("rest").String(RestName(rest)).Key("count").UInt(kind.samples.size());
    WriteTimes("ttft_ms", TimesOf(kind.samples, &ResumeSample::ttft), &w);
    WriteTimes("restore_ms", TimesOf(kind.samples, &ResumeSample::restore), &w);
    WriteTimes("suspend_ms", kind.suspends, &w);
    WriteTimes("time_per_token_ms", TimesOf(kind.samples, &ResumeSample::per_token), &w);
    w.Key("prompt_tokens").UInt(MeanPromptTokens(kind.samples)).Key("cached_tokens");
    const std::optional<uint64_t> cached = MeanCachedTokens(kind.samples);
    cached ? w.UInt(*cached) : w.Null();
    w.Key("places").BeginObject();
    for (const auto& [place, times] : Places(kind.samples)) w.Key(place).UInt(times);
    w.EndObject().Key("cold_over_it");
    const std::optional<double> sooner = TimesSooner(rest);
    sooner ? w.Double(*sooner) : w.Null();
    w.EndObject();
  }
  w.EndArray().EndObject();
  return out + "\n";
}

}  // namespace cachalot::load
