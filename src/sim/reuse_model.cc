#include "sim/reuse_model.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "sim/read_trace.h"
#include "sim/trace_text.h"

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

class Author {
 public:
  Author(const ReuseModel& model, uint64_t seed, Trace& trace) : model_(model), trace_(trace), random_(seed) {}

  void Write(size_t index) {
    TraceRequest& request = trace_.requests[index];
    const TraceRequest* before = EarlierOf(request);
    uint64_t known = 0;
    if (before != nullptr) {
      request.text = before->text;
      known = before->input_tokens + before->output_tokens;
    } else if (model_.kind == ReuseModel::Kind::kSystem && request.input_tokens > 0) {
      known = std::min(model_.system_tokens, request.input_tokens);
      if (known > 0) request.text.push_back({.source = kSystemSource, .begin = 0, .tokens = known});
    }
    const uint64_t own = request.input_tokens - known + request.output_tokens;
    if (own > 0) request.text.push_back({.source = index, .begin = 0, .tokens = own});
    Remember(index);
  }

 private:
  // The request with which this one goes on; null: with none.
  const TraceRequest* EarlierOf(const TraceRequest& request) {
    const auto fits = [&](size_t other) {
      const TraceRequest& before = trace_.requests[other];
      return before.input_tokens + before.output_tokens <= request.input_tokens;
    };
    if (model_.kind == ReuseModel::Kind::kSession && request.session != 0) {
      const auto last = last_of_session_.find(request.session);
      return last != last_of_session_.end() && fits(last->second) ? &trace_.requests[last->second] : nullptr;
    }
    if (model_.kind != ReuseModel::Kind::kChat || open_.empty()) return nullptr;
    const bool goes_on = random_.Uniform() < model_.chat_share;
    const size_t first = random_.Below(open_.size());
    for (size_t i = 0; goes_on && i < open_.size(); ++i) {
      const size_t at = (first + i) % open_.size();
      if (!fits(open_[at])) continue;
      const TraceRequest* earlier = &trace_.requests[open_[at]];
      open_.erase(open_.begin() + static_cast<ptrdiff_t>(at));
      return earlier;
    }
    return nullptr;
  }

  void Remember(size_t index) {
    if (model_.kind == ReuseModel::Kind::kSession) last_of_session_[trace_.requests[index].session] = index;
    if (model_.kind != ReuseModel::Kind::kChat) return;
    open_.push_back(index);
    if (open_.size() > kMostOpen) open_.erase(open_.begin());
  }

  const ReuseModel& model_;
  Trace& trace_;
  SplitMix64 random_;
  std::vector<size_t> open_;  // the last request of each conversation, oldest first
  std::unordered_map<uint64_t, size_t> last_of_session_;
};

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

Status ApplyReuse(const ReuseModel& model, uint64_t seed, Trace* trace) {
  const auto has_session = [](const TraceRequest& request) { return request.session != 0; };
  if (model.kind == ReuseModel::Kind::kSession && std::ranges::none_of(trace->requests, has_session)) {
    return Invalid("the trace has no sessions for the reuse \"session\": expected another model");
  }
  TextKeeper keeper(*trace);
  Author author(model, seed, *trace);
  for (size_t i = 0; i < trace->requests.size(); ++i) {
    author.Write(i);
    TraceRequest& request = trace->requests[i];
    std::vector<uint32_t> words = WordsOf(*trace, request);
    words.resize(request.input_tokens);
    keeper.NameBlocks(words, &request);
  }
  return OkStatus();
}

}  // namespace cachalot::sim
