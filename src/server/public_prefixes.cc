#include "server/public_prefixes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/prefix_scope.h"
#include "server/chat_text.h"
#include "text/tokenizer.h"

namespace cachalot::server {
namespace {

std::string_view WithoutLastBreak(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// A chat with this system message, whose user says `user`. Empty when the template has no place for one.
std::string ChatWith(const ServedModel& model, std::string_view system, const char* user, int64_t unix_seconds) {
  const auto message = [](const char* role, std::string content) {
    return Json(Json::Object{{"role", Json(role)}, {"content", Json(std::move(content))}});
  };
  ApiRequest request;
  request.messages = Json::Array{message("system", std::string(system)), message("user", user)};
  ApiResult<std::string> text = RenderChat(model, request, unix_seconds);
  return std::holds_alternative<std::string>(text) ? std::get<std::string>(std::move(text)) : std::string();
}

}  // namespace

PublicPrefixes::PublicPrefixes(const ServedModel& model, std::span<const std::string> texts, int64_t unix_seconds) {
  for (const std::string& declared : texts) {
    const std::string_view text = WithoutLastBreak(declared);
    Add(model.tokenizer->Encode(text, {.add_bos = true}));
    Add(model.tokenizer->Encode(text, {.add_bos = false}));
    const std::string one = ChatWith(model, text, "A", unix_seconds), other = ChatWith(model, text, "z", unix_seconds);
    const auto [end, unused] = std::ranges::mismatch(one, other);
    Add(model.tokenizer->Encode(std::string_view(one.begin(), end), {.add_bos = false}));
  }
}

void PublicPrefixes::Add(std::vector<TokenId> tokens) {
  if (tokens.empty() || std::ranges::find(prefixes_, tokens) != prefixes_.end()) return;
  prefixes_.push_back(std::move(tokens));
}

uint64_t PublicPrefixes::CommonTokens(std::span<const TokenId> prompt) const {
  uint64_t most = 0;
  for (const std::vector<TokenId>& prefix : prefixes_) {
    most = std::max<uint64_t>(most, cachalot::CommonTokens(prompt, prefix));
  }
  return most;
}

}  // namespace cachalot::server
