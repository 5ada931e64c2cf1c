#include "text/jinja_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja_text.h"

namespace cachalot::text::jinja {
namespace {

// -1, 0 or 1; 2 when unordered (NaN). Exact for any mix of int64 and double.
int CompareNumbers(const Value& a, const Value& b) {
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2; };
  if (a.is_integral() && b.is_integral()) return sign(a.integer(), b.integer());
  if (a.is(Kind::kFloat) && b.is(Kind::kFloat)) return sign(a.number(), b.number());
  const auto exact = [](const Value& v) -> long double {
    return v.is_integral() ? static_cast<long double>(v.integer()) : static_cast<long double>(v.number());
  };
  return sign(exact(a), exact(b));
}

bool Holds(Op op, int sign) {
  switch (op) {
    case Op::kLt: return sign == -1;
    case Op::kLe: return sign == -1 || sign == 0;
    case Op::kGt: return sign == 1;
    case Op::kGe: return sign == 1 || sign == 0;
    default: return false;
  }
}

const char* Symbol(Op op) {
  switch (op) {
    case Op::kLt: return "<";
    case Op::kLe: return "<=";
    case Op::kGt: return ">";
    default: return ">=";
  }
}

// Python's containers take an object for equal to itself without asking it.
Result<bool> SameOrEqual(Runtime& rt, const Value& a, const Value& b) {
  if (a.has_object() && a.kind() == b.kind() && a.object() == b.object()) return true;
  return Equals(rt, a, b);
}

Result<bool> SequencesEqual(Runtime& rt, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const bool equal, SameOrEqual(rt, a[i], b[i]));
    if (!equal) return false;
  }
  return true;
}

Result<bool> DictsEqual(Runtime& rt, const Dict& a, const Dict& b) {
  if (a.entries().size() != b.entries().size()) return false;
  for (const Dict::Entry& entry : a.entries()) {
    CACHALOT_ASSIGN_OR_RETURN(const Value* other, b.Find(rt, entry.key));
    if (other == nullptr) return false;
    CACHALOT_ASSIGN_OR_RETURN(const bool equal, SameOrEqual(rt, entry.value, *other));
    if (!equal) return false;
  }
  return true;
}

Result<bool> ViewsEqual(Runtime& rt, const DictViewObject& a, const DictViewObject& b) {
  if (a.part != b.part || a.part == DictViewObject::Part::kValues) return &a == &b;
  if (a.part == DictViewObject::Part::kItems) return DictsEqual(rt, a.dict.dict(), b.dict.dict());
  if (a.dict.dict().entries().size() != b.dict.dict().entries().size()) return false;
  for (const Dict::Entry& entry : a.dict.dict().entries()) {
    CACHALOT_ASSIGN_OR_RETURN(const Value* other, b.dict.dict().Find(rt, entry.key));
    if (other == nullptr) return false;
  }
  return true;
}

bool RangesEqual(const RangeObject& a, const RangeObject& b) {
  if (a.length != b.length) return false;
  return a.length == 0 || (a.start == b.start && (a.length == 1 || a.step == b.step));
}

Result<bool> AnyEqual(Runtime& rt, const std::vector<Value>& items, const Value& item) {
  for (const Value& candidate : items) {
    CACHALOT_ASSIGN_OR_RETURN(const bool equal, SameOrEqual(rt, candidate, item));
    if (equal) return true;
  }
  return false;
}

Result<bool> ViewContains(Runtime& rt, const DictViewObject& view, const Value& item) {
  const Dict& dict = view.dict.dict();
  if (view.part == DictViewObject::Part::kKeys) {
    CACHALOT_ASSIGN_OR_RETURN(const Value* found, dict.Find(rt, item));
    return found != nullptr;
  }
  if (view.part == DictViewObject::Part::kItems) {
    if (!item.is(Kind::kTuple) || item.items().size() != 2) return false;
    CACHALOT_ASSIGN_OR_RETURN(const Value* found, dict.Find(rt, item.items()[0]));
    if (found == nullptr) return false;
    return SameOrEqual(rt, *found, item.items()[1]);
  }
  for (const Dict::Entry& entry : dict.entries()) {
    CACHALOT_ASSIGN_OR_RETURN(const bool equal, SameOrEqual(rt, entry.value, item));
    if (equal) return true;
  }
  return false;
}

bool RangeContains(const RangeObject& range, const Value& item) {
  if (!item.is_number() || range.length == 0) return false;
  if (item.is(Kind::kFloat) && (std::floor(item.number()) != item.number() || std::fabs(item.number()) >= 0x1p63)) {
    return false;
  }
  const int64_t value = item.is_integral() ? item.integer() : static_cast<int64_t>(item.number());
  const int64_t last = range.At(range.length - 1);
  if (value < std::min(range.start, last) || value > std::max(range.start, last)) return false;
  const auto distance = [](int64_t high, int64_t low) {
    return static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  };
  if (range.step > 0) return distance(value, range.start) % static_cast<uint64_t>(range.step) == 0;
  return distance(range.start, value) % distance(0, range.step) == 0;
}

Result<bool> OrderSequences(Runtime& rt, Op op, const std::vector<Value>& a, const std::vector<Value>& b) {
  const size_t shared = std::min(a.size(), b.size());
  for (size_t i = 0; i < shared; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const bool equal, SameOrEqual(rt, a[i], b[i]));
    if (!equal) return Compare(rt, op, a[i], b[i]);
  }
  return Holds(op, a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0);
}

Result<bool> Order(Runtime& rt, Op op, const Value& a, const Value& b) {
  CACHALOT_RETURN_IF_ERROR(rt.Tick());
  if (a.is_number() && b.is_number()) return Holds(op, CompareNumbers(a, b));
  if (a.is(Kind::kStr) && b.is(Kind::kStr)) {
    CACHALOT_RETURN_IF_ERROR(rt.TickBytes(std::min(a.text().size(), b.text().size())));
    const int sign = a.text().compare(b.text());
    return Holds(op, sign < 0 ? -1 : sign > 0 ? 1 : 0);
  }
  if (a.is_sequence() && a.kind() == b.kind()) return OrderSequences(rt, op, a.items(), b.items());
  if (a.is(Kind::kUndefined)) return UndefinedError(a);
  if (b.is(Kind::kUndefined)) return UndefinedError(b);
  return Invalid(
      fmt::format("'{}' not supported between instances of '{}' and '{}'", Symbol(op), TypeName(a), TypeName(b)));
}

}  // namespace

const char* TypeName(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kStr: return value.as<StrObject>()->markup ? "Markup" : "str";
    case Kind::kList: return "list";
    case Kind::kTuple: return value.as<SequenceObject>()->is_group ? "_GroupTuple" : "tuple";
    case Kind::kDict: return "dict";
    case Kind::kDictView:
      switch (value.as<DictViewObject>()->part) {
        case DictViewObject::Part::kItems: return "dict_items";
        case DictViewObject::Part::kKeys: return "dict_keys";
        case DictViewObject::Part::kValues: return "dict_values";
      }
      return "dict_items";
    case Kind::kRange: return "range";
    case Kind::kIterator: return "generator";
    case Kind::kNamespace: return "Namespace";
    case Kind::kMacro: return "Macro";
    case Kind::kFunction: return "function";
    case Kind::kMethod: return "builtin_function_or_method";
    case Kind::kLoop: return "LoopContext";
    case Kind::kCycler: return "Cycler";
    case Kind::kJoiner: return "Joiner";
  }
  return "object";
}

bool Truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool:
    case Kind::kInt: return value.integer() != 0;
    case Kind::kFloat: return value.number() != 0;
    default: {
      const std::optional<int64_t> length = value.is(Kind::kLoop) ? std::nullopt : LengthOf(value);
      return !length || *length != 0;
    }
  }
}

Result<bool> IsHashable(Runtime& rt, const Value& value) {
  CACHALOT_RETURN_IF_ERROR(rt.Tick());
  switch (value.kind()) {
    case Kind::kList:
    case Kind::kDict: return false;
    case Kind::kDictView: return value.as<DictViewObject>()->part == DictViewObject::Part::kValues;
    case Kind::kTuple:
      for (const Value& item : value.items()) {
        CACHALOT_ASSIGN_OR_RETURN(const bool hashable, IsHashable(rt, item));
        if (!hashable) return false;
      }
      return true;
    default: return true;
  }
}

Result<bool> Equals(Runtime& rt, const Value& a, const Value& b) {
  CACHALOT_RETURN_IF_ERROR(rt.Tick());
  if (a.is_number() && b.is_number()) return CompareNumbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone: return true;
    case Kind::kStr:
      CACHALOT_RETURN_IF_ERROR(rt.TickBytes(std::min(a.text().size(), b.text().size())));
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple: return SequencesEqual(rt, a.items(), b.items());
    case Kind::kDict: return DictsEqual(rt, a.dict(), b.dict());
    case Kind::kDictView: return ViewsEqual(rt, *a.as<DictViewObject>(), *b.as<DictViewObject>());
    case Kind::kRange: return RangesEqual(*a.as<RangeObject>(), *b.as<RangeObject>());
    case Kind::kFunction: return a.function() == b.function();
    case Kind::kMethod:
      if (a.as<MethodObject>()->method != b.as<MethodObject>()->method) return false;
      return a.as<MethodObject>()->self.object() == b.as<MethodObject>()->self.object();
    default: return a.object() == b.object();
  }
}

Result<bool> Less(Runtime& rt, const Value& a, const Value& b) { return Order(rt, Op::kLt, a, b); }

Result<bool> Compare(Runtime& rt, Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::kEq: return Equals(rt, a, b);
    case Op::kNe: {
      CACHALOT_ASSIGN_OR_RETURN(const bool equal, Equals(rt, a, b));
      return !equal;
    }
    case Op::kIn: return Contains(rt, b, a);
    case Op::kNotIn: {
      CACHALOT_ASSIGN_OR_RETURN(const bool contains, Contains(rt, b, a));
      return !contains;
    }
    default: return Order(rt, op, a, b);
  }
}

Result<bool> Contains(Runtime& rt, const Value& container, const Value& item) {
  CACHALOT_RETURN_IF_ERROR(rt.Tick());
  switch (container.kind()) {
    case Kind::kStr:
      if (!item.is(Kind::kStr)) {
        return Invalid(fmt::format("'in <string>' requires string as left operand, not {}", TypeName(item)));
      }
      CACHALOT_RETURN_IF_ERROR(rt.TickBytes(container.text().size()));
      return FindText(container.text(), item.text(), 0) != std::string_view::npos;
    case Kind::kList:
    case Kind::kTuple: return AnyEqual(rt, container.items(), item);
    case Kind::kDict: {
      CACHALOT_ASSIGN_OR_RETURN(const Value* found, container.dict().Find(rt, item));
      return found != nullptr;
    }
    case Kind::kDictView: return ViewContains(rt, *container.as<DictViewObject>(), item);
    case Kind::kRange: return RangeContains(*container.as<RangeObject>(), item);
    case Kind::kUndefined: return false;
    case Kind::kIterator: {
      Value candidate;
      while (true) {
        CACHALOT_ASSIGN_OR_RETURN(const bool more, container.as<IteratorObject>()->Next(rt, &candidate));
        if (!more) return false;
        CACHALOT_ASSIGN_OR_RETURN(const bool equal, SameOrEqual(rt, candidate, item));
        if (equal) return true;
      }
    }
    default: return Invalid(fmt::format("argument of type '{}' is not iterable", TypeName(container)));
  }
}

Status UndefinedError(const Value& undefined) { return Invalid(undefined.as<UndefinedObject>()->message); }

Status OperandError(const char* symbol, const Value& a, const Value& b) {
  if (a.is(Kind::kUndefined)) return UndefinedError(a);
  if (b.is(Kind::kUndefined)) return UndefinedError(b);
  return Invalid(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol, TypeName(a), TypeName(b)));
}

}  // namespace cachalot::text::jinja
