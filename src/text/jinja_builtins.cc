#include "text/jinja_builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/jinja_ops.h"

namespace cachalot::text::jinja {
namespace {

// Filters and tests of Jinja that are left out here: of no use in a chat template, or without a fixed result.
constexpr std::string_view kUnsupportedFilters[] = {"pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"};

size_t CountParameters(const Builtin& builtin) {
  const auto end = std::ranges::find(builtin.parameters, std::string_view());
  return static_cast<size_t>(end - builtin.parameters.begin());
}

Status TooManyArguments(const Builtin& builtin, size_t given) {
  return Invalid(
      fmt::format("{}() takes at most {} arguments ({} given)", builtin.name, CountParameters(builtin), given));
}

// Puts keyword arguments at their positions.
Status BindKeywords(const Builtin& builtin, Arguments* arguments) {
  const size_t count = CountParameters(builtin);
  for (auto& [name, value] : arguments->keywords) {
    const auto found = std::find(builtin.parameters.begin(), builtin.parameters.begin() + count, name);
    const auto at = static_cast<size_t>(found - builtin.parameters.begin());
    if (at == count || name == "_") {
      return Invalid(fmt::format("{}() got an unexpected keyword argument '{}'", builtin.name, name));
    }
    if (!arguments->positional[at].missing()) {
      return Invalid(fmt::format("{}() got multiple values for argument '{}'", builtin.name, name));
    }
    arguments->positional[at] = std::move(value);
  }
  arguments->keywords.clear();
  return OkStatus();
}

}  // namespace

Result<Value> CallBuiltin(Runtime& rt, const Builtin& builtin, const Value& self, Arguments arguments) {
  CACHALOT_RETURN_IF_ERROR(rt.Tick());
  if (builtin.required != kAnyArguments) {
    const size_t count = CountParameters(builtin);
    const size_t given = arguments.positional.size();
    if (given > count) return TooManyArguments(builtin, given);
    arguments.positional.resize(count);
    CACHALOT_RETURN_IF_ERROR(BindKeywords(builtin, &arguments));
    for (size_t i = 0; i < static_cast<size_t>(builtin.required); ++i) {
      if (!arguments.positional[i].missing()) continue;
      return Invalid(fmt::format(
          "{}() missing required argument {}", builtin.name,
          builtin.parameters[i] == "_" ? std::to_string(i + 1) : fmt::format("'{}'", builtin.parameters[i])));
    }
  }
  return builtin.function(rt, {self, arguments});
}

const Builtin* FindIn(std::span<const Builtin> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Builtin::name);
  return found == table.end() ? nullptr : &*found;
}

const Builtin* FindFilter(std::string_view name) {
  for (std::span<const Builtin> table :
       {TextFilters(), SequenceFilters(), LazyFilters(), NumberFilters(), MarkupFilters()}) {
    if (const Builtin* found = FindIn(table, name)) return found;
  }
  return nullptr;
}

const Builtin* FindTest(std::string_view name) { return FindIn(Tests(), name); }

bool IsKnownFilter(std::string_view name) {
  return FindFilter(name) != nullptr || std::ranges::find(kUnsupportedFilters, name) != std::end(kUnsupportedFilters);
}

Result<int64_t> IntArgument(const CallInput& in, size_t i, int64_t missing) {
  if (!in.has(i)) return missing;
  if (in[i].is_integral()) return in[i].integer();
  if (in[i].is(Kind::kUndefined)) return UndefinedError(in[i]);
  return Invalid(fmt::format("'{}' object cannot be interpreted as an integer", TypeName(in[i])));
}

Result<std::string_view> TextArgument(const CallInput& in, size_t i) {
  if (in[i].is(Kind::kStr)) return std::string_view(in[i].text());
  return Invalid(fmt::format("argument {} must be str, not {}", i + 1, TypeName(in[i])));
}

}  // namespace cachalot::text::jinja
