// OptionRules say with which others a setting counts, so that none is passed over in silence.
// Threads:   plain data and pure functions.
// Ownership: rules name string literals, or names that an option struct visits.
// Invariant: whatever is refused is named with what it lacks, or with what leaves it without effect.
// Cost:      linear in the rules.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace cachalot::cli {

// Settings that were given, by name; what stands by its place has a name in capitals.
using GivenOptions = std::set<std::string, std::less<>>;

// Where `name` is given.
struct OptionRule {
  std::string name;
  std::vector<std::string_view> needs;     // one of these must be given too
  std::vector<std::string_view> excludes;  // and none of these
};

// A rule for each setting of an option struct (base/options.h).
template <class Options>
std::vector<OptionRule> RulesOfAll(const std::vector<std::string_view>& needs,
                                   const std::vector<std::string_view>& excludes) {
  std::vector<OptionRule> rules;
  Options options;
  options.Visit([&](std::string_view name, auto&, std::string_view) {
    rules.push_back({std::string(name), needs, excludes});
  });
  return rules;
}

// kInvalid, naming the first setting that has no effect beside the others.
Status CheckRules(const GivenOptions& given, const std::vector<OptionRule>& rules);

}  // namespace cachalot::cli
