#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"

namespace cachalot::text::jinja {
namespace {

// dict

Result<Value> DictGet(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const Value* found, in.self.dict().Find(rt, in[0]));
  if (found != nullptr) return *found;
  return in.has(1) ? in[1] : Value::None();
}

template <DictViewObject::Part part>
Result<Value> DictView(Runtime& rt, CallInput in) {
  return rt.Make<DictViewObject>(Kind::kDictView, in.self, part);
}

Result<Value> DictCopy(Runtime& rt, CallInput in) {
  CACHALOT_RETURN_IF_ERROR(rt.Tick(1 + in.self.dict().entries().size()));
  return rt.MakeDict(in.self.dict());
}

Result<Value> DictFromKeys(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> keys, ToVector(rt, in[0]));
  Dict dict;
  for (Value& key : keys) CACHALOT_RETURN_IF_ERROR(dict.Set(rt, std::move(key), in.has(1) ? in[1] : Value::None()));
  return rt.MakeDict(std::move(dict));
}

// list, tuple and range

Result<Value> SequenceCount(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<Value> items, ToVector(rt, in.self));
  int64_t count = 0;
  for (const Value& item : items) {
    CACHALOT_ASSIGN_OR_RETURN(const bool equal, Equals(rt, item, in[0]));
    if (equal) ++count;
  }
  return Value::Int(count);
}

Result<Value> SequenceIndex(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<Value> items, ToVector(rt, in.self));
  const int64_t length = static_cast<int64_t>(items.size());
  CACHALOT_ASSIGN_OR_RETURN(int64_t start, IntArgument(in, 1, 0));
  CACHALOT_ASSIGN_OR_RETURN(int64_t end, IntArgument(in, 2, length));
  if (start < 0) start = start < -length ? 0 : start + length;
  if (end < 0) end = end < -length ? 0 : end + length;
  for (int64_t i = start; i < std::min(end, length); ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const bool equal, Equals(rt, items[static_cast<size_t>(i)], in[0]));
    if (equal) return Value::Int(i);
  }
  return Invalid(fmt::format("the value is not in the {}", TypeName(in.self)));
}

Result<Value> ListCopy(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(rt, in.self));
  return rt.List(std::move(items));
}

// numbers

Result<Value> IntBitLength(Runtime&, CallInput in) {
  const int64_t value = in.self.integer();
  uint64_t rest = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  int64_t bits = 0;
  for (; rest != 0; rest >>= 1) ++bits;
  return Value::Int(bits);
}

Result<Value> Conjugate(Runtime&, CallInput in) { return Plus(in.self); }

Result<Value> FloatIsInteger(Runtime&, CallInput in) {
  return Value::Bool(std::isfinite(in.self.number()) && std::floor(in.self.number()) == in.self.number());
}

// loop and cycler

Result<Value> LoopCycle(Runtime&, CallInput in) {
  const std::vector<Value>& values = in.arguments.positional;
  if (values.empty()) return Invalid("no items for cycling given");
  if (!in.arguments.keywords.empty()) return Invalid("cycle() takes no keyword arguments");
  const int64_t index = std::max<int64_t>(in.self.as<LoopObject>()->index0, 0);
  return values[static_cast<size_t>(index) % values.size()];
}

Result<Value> LoopChanged(Runtime& rt, CallInput in) {
  if (!in.arguments.keywords.empty()) return Invalid("changed() takes no keyword arguments");
  LoopObject& loop = *in.self.as<LoopObject>();
  const Value values = rt.Tuple(std::move(in.arguments.positional));
  if (!loop.last_changed.missing()) {
    CACHALOT_ASSIGN_OR_RETURN(const bool equal, Equals(rt, loop.last_changed, values));
    if (equal) return Value::Bool(false);
  }
  loop.last_changed = values;
  return Value::Bool(true);
}

Result<Value> CyclerNext(Runtime&, CallInput in) {
  CyclerObject& cycler = *in.self.as<CyclerObject>();
  const Value current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}

Result<Value> CyclerReset(Runtime&, CallInput in) {
  in.self.as<CyclerObject>()->position = 0;
  return Value::None();
}

constexpr Builtin kDictMethods[] = {
    {"get", DictGet, 1, {"_", "_"}},
    {"items", DictView<DictViewObject::Part::kItems>},
    {"keys", DictView<DictViewObject::Part::kKeys>},
    {"values", DictView<DictViewObject::Part::kValues>},
    {"copy", DictCopy},
    {"fromkeys", DictFromKeys, 1, {"_", "_"}},
};
constexpr Builtin kListMethods[] = {
    {"count", SequenceCount, 1, {"_"}},
    {"index", SequenceIndex, 1, {"_", "_", "_"}},
    {"copy", ListCopy},
};
constexpr Builtin kTupleMethods[] = {
    {"count", SequenceCount, 1, {"_"}},
    {"index", SequenceIndex, 1, {"_", "_", "_"}},
};
constexpr Builtin kIntMethods[] = {{"bit_length", IntBitLength}, {"conjugate", Conjugate}};
constexpr Builtin kFloatMethods[] = {{"is_integer", FloatIsInteger}, {"conjugate", Conjugate}};
constexpr Builtin kLoopMethods[] = {{"cycle", LoopCycle, kAnyArguments}, {"changed", LoopChanged, kAnyArguments}};
constexpr Builtin kCyclerMethods[] = {{"next", CyclerNext}, {"reset", CyclerReset}};

constexpr std::string_view kUnsafeDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kUnsafeList[] = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};

}  // namespace

MethodLookup FindMethod(const Value& object, std::string_view name) {
  const auto found = [&](std::span<const Builtin> table) { return MethodLookup{FindIn(table, name), false}; };
  switch (object.kind()) {
    case Kind::kStr: {
      const MethodLookup method = found(TextMethods());
      return method.method != nullptr ? method : found(TextSearchMethods());
    }
    case Kind::kDict:
      if (std::ranges::find(kUnsafeDict, name) != std::end(kUnsafeDict)) return {nullptr, true};
      return found(kDictMethods);
    case Kind::kList:
      if (std::ranges::find(kUnsafeList, name) != std::end(kUnsafeList)) return {nullptr, true};
      return found(kListMethods);
    case Kind::kTuple:
    case Kind::kRange: return found(kTupleMethods);
    case Kind::kBool:
    case Kind::kInt: return found(kIntMethods);
    case Kind::kFloat: return found(kFloatMethods);
    case Kind::kLoop: return found(kLoopMethods);
    case Kind::kCycler: return found(kCyclerMethods);
    default: return {};
  }
}

}  // namespace cachalot::text::jinja
