#include "load/resume_options.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace cachalot::load {
namespace {

constexpr std::array<std::string_view, 5> kRestNames = {"cold", "hot", "suspended", "pushed", "restarted"};
constexpr std::array<std::string_view, 4> kWays = {"auto", "cachalot", "llama-slots", "none"};

// The names in the list, some of them perhaps no names of rests.
std::vector<std::string_view> Items(std::string_view list) {
  std::vector<std::string_view> items;
  while (!list.empty()) {
    items.push_back(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(items.back().size() + 1, list.size()));
  }
  return items;
}

std::optional<Rest> RestOf(std::string_view name) {
  const auto found = std::ranges::find(kRestNames, name);
  if (found == kRestNames.end()) return std::nullopt;
  return static_cast<Rest>(found - kRestNames.begin());
}

bool IsIn(uint64_t value, uint64_t least, uint64_t most) { return value >= least && value <= most; }

}  // namespace

std::string_view RestName(Rest rest) { return kRestNames[static_cast<size_t>(rest)]; }

std::vector<Rest> RestsOf(const ResumeOptions& options) {
  std::vector<Rest> rests = {Rest::kCold};
  for (const std::string_view item : Items(options.rests)) {
    const std::optional<Rest> rest = RestOf(item);
    if (rest && std::ranges::find(rests, *rest) == rests.end()) rests.push_back(*rest);
  }
  return rests;
}

Status Validate(const ResumeOptions& o) {
  constexpr uint64_t kMostTokens = 4'000'000, kMostConversations = 10'000;
  constexpr double kMostSeconds = 1e7;
  std::vector<std::string> problems;
  const auto check = [&](bool right, std::string problem) {
    if (!right) problems.push_back(std::move(problem));
  };
  for (const std::string_view item : Items(o.rests)) {
    check(RestOf(item).has_value(),
          fmt::format("--rests has {}, which is none of {}", item, fmt::join(kRestNames, ", ")));
  }
  check(std::ranges::find(kWays, o.way) != kWays.end(), fmt::format("--way must be one of {}", fmt::join(kWays, ", ")));
  check(IsIn(o.conversations, 1, kMostConversations),
        fmt::format("--conversations must be 1 to {}", kMostConversations));
  check(IsIn(o.turn_tokens, 1, kMostTokens), fmt::format("--turn-tokens must be 1 to {}", kMostTokens));
  check(o.idle >= 0 && o.idle <= kMostSeconds, fmt::format("--idle must be 0 to {} seconds", kMostSeconds));
  const std::vector<Rest> rests = RestsOf(o);
  const bool pushes = std::ranges::find(rests, Rest::kPushed) != rests.end();
  check(!pushes || o.push_tokens > 0, "--push-tokens is needed for pushed: more than the server keeps");
  check(o.push_tokens <= 1'000 * kMostTokens, fmt::format("--push-tokens must be at most {}", 1'000 * kMostTokens));
  const bool suspends = std::ranges::find(rests, Rest::kSuspended) != rests.end();
  check(!suspends || o.way != "none", "--rests has suspended, which --way none knows no way to do");
  const Status common = Validate(AsLoadOptions(o));
  check(common.ok(), std::string(common.message()));
  return problems.empty() ? OkStatus() : Invalid(fmt::format("{}", fmt::join(problems, "; ")));
}

LoadOptions AsLoadOptions(const ResumeOptions& options) {
  LoadOptions out;
  out.url = options.url;
  out.endpoint = options.endpoint;
  out.model = options.model;
  out.api_key = options.api_key;
  out.seed = options.seed;
  out.timeout = options.timeout;
  out.prompt_tokens = options.prompt_tokens;
  out.max_tokens = options.max_tokens;
  out.tokens_per_word = options.tokens_per_word;
  out.ignore_eos = true;
  return out;
}

}  // namespace cachalot::load
