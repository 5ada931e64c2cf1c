#include <fmt/format.h>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_strftime.h"
#include "text/jinja_text.h"

namespace cachalot::text::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // Jinja's sandbox sets this limit

Result<Value> Range(Runtime& rt, CallInput in) {
  if (!in.arguments.keywords.empty()) return Invalid("range() takes no keyword arguments");
  const size_t given = in.arguments.positional.size();
  if (given < 1 || given > 3) return Invalid(fmt::format("range expected 1 to 3 arguments, got {}", given));
  int64_t bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < given; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(bounds[given == 1 ? 1 : i], IntArgument(in, i, 0));
  }
  if (bounds[2] == 0) return Invalid("range() arg 3 must not be zero");
  const Value range = rt.Make<RangeObject>(Kind::kRange, bounds[0], bounds[1], bounds[2]);
  if (range.as<RangeObject>()->length > kMaxRange) {
    return Invalid(fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange));
  }
  return range;
}

// What dict(*positional, **keywords) holds.
Result<Dict> DictFromArguments(Runtime& rt, CallInput in, std::string_view name) {
  Dict dict;
  if (in.arguments.positional.size() > 1) {
    return Invalid(fmt::format("{} expected at most 1 argument, got {}", name, in.arguments.positional.size()));
  }
  if (!in.arguments.positional.empty()) {
    const Value& source = in[0];
    if (source.is(Kind::kUndefined)) return UndefinedError(source);
    if (source.is(Kind::kDict)) {
      CACHALOT_RETURN_IF_ERROR(rt.Tick(source.dict().entries().size()));
      dict = source.dict();
    } else {
      CACHALOT_ASSIGN_OR_RETURN(const std::vector<Value> items, ToVector(rt, source));
      for (const Value& item : items) {
        CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> pair, ToVector(rt, item));
        if (pair.size() != 2) {
          return Invalid(fmt::format("dictionary update sequence element has length {}; 2 is required", pair.size()));
        }
        CACHALOT_RETURN_IF_ERROR(dict.Set(rt, std::move(pair[0]), std::move(pair[1])));
      }
    }
  }
  for (auto& [key, value] : in.arguments.keywords) dict.SetText(rt, key, std::move(value));
  return dict;
}

Result<Value> MakeDict(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(Dict dict, DictFromArguments(rt, in, "dict"));
  return rt.MakeDict(std::move(dict));
}

Result<Value> MakeNamespace(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const Dict dict, DictFromArguments(rt, in, "dict"));
  Value result = rt.Make<NamespaceObject>(Kind::kNamespace);
  rt.heap()->Register(result);
  for (const Dict::Entry& entry : dict.entries()) {
    // Other keys than strings cannot be asked for as attributes.
    if (entry.key.is(Kind::kStr)) result.as<NamespaceObject>()->Set(rt, entry.key.text(), entry.value);
  }
  return result;
}

Result<Value> MakeCycler(Runtime& rt, CallInput in) {
  if (!in.arguments.keywords.empty()) return Invalid("cycler() takes no keyword arguments");
  if (in.arguments.positional.empty()) return Invalid("at least one item has to be provided");
  return rt.Make<CyclerObject>(Kind::kCycler, std::move(in.arguments.positional));
}

Result<Value> MakeJoiner(Runtime& rt, CallInput in) {
  return rt.Make<JoinerObject>(Kind::kJoiner, in.has(0) ? in[0] : rt.Str(", "));
}

Result<Value> RaiseException(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(std::string message, ToText(rt, in[0]));
  return rt.Raise(std::move(message));
}

Result<Value> StrftimeNow(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view format, TextArgument(in, 0));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(format.size() * 32));
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(format.size() * 16));
  return rt.Str(FormatTime(format, rt.unix_seconds()));
}

}  // namespace

std::span<const Builtin> Globals() {
  static constexpr Builtin kTable[] = {
      {"range", Range, kAnyArguments},
      {"dict", MakeDict, kAnyArguments},
      {"namespace", MakeNamespace, kAnyArguments},
      {"cycler", MakeCycler, kAnyArguments},
      {"joiner", MakeJoiner, 0, {"sep"}},
      {"raise_exception", RaiseException, 1, {"message"}},
      {"strftime_now", StrftimeNow, 1, {"format"}},
  };
  return kTable;
}

}  // namespace cachalot::text::jinja
