#include "cli/option_rules.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cachalot::cli {
namespace {

std::string FlagNamed(std::string_view name) {
  const bool by_place = !name.empty() && name.front() >= 'A' && name.front() <= 'Z';
  return by_place ? std::string(name) : fmt::format("--{}", name);
}

}  // namespace

Status CheckRules(const GivenOptions& given, const std::vector<OptionRule>& rules) {
  const auto is_given = [&](std::string_view name) { return given.contains(name); };
  for (const OptionRule& rule : rules) {
    if (!given.contains(rule.name)) continue;
    const auto other = std::ranges::find_if(rule.excludes, is_given);
    if (other != rule.excludes.end()) {
      return Invalid(
          fmt::format("{} has no effect with {}: expected one of both", FlagNamed(rule.name), FlagNamed(*other)));
    }
    if (rule.needs.empty() || std::ranges::any_of(rule.needs, is_given)) continue;
    std::vector<std::string> needed;
    for (const std::string_view name : rule.needs) needed.push_back(FlagNamed(name));
    return Invalid(fmt::format("{} has no effect without {}", FlagNamed(rule.name), fmt::join(needed, " or ")));
  }
  return OkStatus();
}

}  // namespace cachalot::cli
