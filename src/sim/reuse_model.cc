#include "sim/reuse_model.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/read_trace.h"

namespace cachalot::sim {
namespace {

constexpr uint64_t kSystemSource = uint64_t{1} << 63;  // requests are the sources 0, 1, 2, ...
constexpr uint64_t kMostTokens = TraceLimits{}.most_tokens;
constexpr size_t kMostOpen = 256;  // conversations that may go on

template <class T>
std::optional<T> NumberIn(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<ReuseModel> ParseReuseModel(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (text == "none") return ReuseModel{};
  if (text == "session") return ReuseModel{.kind = ReuseModel::Kind::kSession};
  const std::optional<uint64_t> tokens = NumberIn<uint64_t>(value);
  if (name == "system" && tokens && *tokens <= kMostTokens)
    return ReuseModel{.kind = ReuseModel::Kind::kSystem, .system_tokens = *tokens};
  const std::optional<double> share = NumberIn<double>(value);
  if (name == "chat" && share && *share >= 0 && *share <= 1) {
    return ReuseModel{.kind = ReuseModel::Kind::kChat, .chat_share = *share};
  }
  return Invalid(fmt::format("\"{}\": expected none, system:TOKENS (up to {}), chat:SHARE (from 0 to 1) or session",
                             text, kMostTokens));
}

void ReuseAuthor::Write(TraceRequest* request) {
  Said before = EarlierOf(*request);
  if (before.tokens == 0 && model_.kind == ReuseModel::Kind::kSystem) {
    before.tokens = std::min(model_.system_tokens, request->input_tokens);
    if (before.tokens > 0) before.text = {{.source = kSystemSource, .begin = 0, .tokens = before.tokens}};
  }
  request->text = std::move(before.text);
  const uint64_t own = request->input_tokens - before.tokens + request->output_tokens;
  if (own > 0) request->text.push_back({.source = written_, .begin = 0, .tokens = own});
  ++written_;
  Remember(*request);
}

Status ReuseAuthor::Finish() const {
  if (model_.kind != ReuseModel::Kind::kSession || !last_of_session_.empty()) return OkStatus();
  return Invalid("the trace has no sessions for the reuse \"session\": expected another model");
}

// The request with which this one goes on; nothing: with none.
ReuseAuthor::Said ReuseAuthor::EarlierOf(const TraceRequest& request) {
  const auto fits = [&](const Said& before) { return before.tokens <= request.input_tokens; };
  if (model_.kind == ReuseModel::Kind::kSession && request.session != 0) {
    const auto last = last_of_session_.find(request.session);
    return last != last_of_session_.end() && fits(last->second) ? last->second : Said();
  }
  if (model_.kind != ReuseModel::Kind::kChat || open_.empty()) return {};
  const bool goes_on = random_.Uniform() < model_.chat_share;
  const size_t first = random_.Below(open_.size());
  for (size_t i = 0; goes_on && i < open_.size(); ++i) {
    const auto at = open_.begin() + static_cast<ptrdiff_t>((first + i) % open_.size());
    if (!fits(*at)) continue;
    Said earlier = std::move(*at);
    open_.erase(at);
    return earlier;
  }
  return {};
}

void ReuseAuthor::Remember(const TraceRequest& request) {
  const auto said = [&] { return Said{request.text, request.input_tokens + request.output_tokens}; };
  if (model_.kind == ReuseModel::Kind::kSession && request.session != 0) last_of_session_[request.session] = said();
  if (model_.kind != ReuseModel::Kind::kChat) return;
  open_.push_back(said());
  if (open_.size() > kMostOpen) open_.pop_front();
}

}  // namespace cachalot::sim
