#include <fmt/format.h>

#include "base/utf8.h"
#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

template <Kind kind>
Result<Value> IsKind(Runtime&, CallInput in) {
  return Value::Bool(in.self.is(kind));
}

Result<Value> IsDefined(Runtime&, CallInput in) { return Value::Bool(!in.self.is(Kind::kUndefined)); }
Result<Value> IsTrue(Runtime&, CallInput in) { return Value::Bool(in.self.is(Kind::kBool) && in.self.integer() != 0); }
Result<Value> IsFalse(Runtime&, CallInput in) { return Value::Bool(in.self.is(Kind::kBool) && in.self.integer() == 0); }
Result<Value> IsNumber(Runtime&, CallInput in) { return Value::Bool(in.self.is_number()); }
Result<Value> IsIterableTest(Runtime&, CallInput in) { return Value::Bool(IsIterable(in.self)); }

Result<Value> IsSequence(Runtime&, CallInput in) {
  return Value::Bool(LengthOf(in.self).has_value() && !in.self.is(Kind::kDictView));
}

Result<Value> IsCallable(Runtime&, CallInput in) {
  switch (in.self.kind()) {
    case Kind::kUndefined:
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kLoop:
    case Kind::kJoiner: return Value::Bool(true);
    default: return Value::Bool(false);
  }
}

Result<Value> IsEscaped(Runtime&, CallInput in) {
  return Value::Bool(in.self.is(Kind::kStr) && in.self.as<StrObject>()->markup);
}

// Whether there are cased letters and all are of the one case.
Result<Value> HasCase(Runtime& rt, const Value& value, bool upper) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ToText(rt, value));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 4));
  bool any = false;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    if (IsTitle(c.code_point) || (upper ? IsLower(c.code_point) : IsUpper(c.code_point))) return Value::Bool(false);
    any = any || (upper ? IsUpper(c.code_point) : IsLower(c.code_point));
    pos += c.bytes;
  }
  return Value::Bool(any);
}
Result<Value> IsLowerTest(Runtime& rt, CallInput in) { return HasCase(rt, in.self, false); }
Result<Value> IsUpperTest(Runtime& rt, CallInput in) { return HasCase(rt, in.self, true); }

Result<Value> RemainderIs(Runtime& rt, const Value& value, const Value& divisor, int64_t expected) {
  CACHALOT_ASSIGN_OR_RETURN(const Value remainder, Arithmetic(rt, Op::kMod, value, divisor));
  CACHALOT_ASSIGN_OR_RETURN(const bool equal, Equals(rt, remainder, Value::Int(expected)));
  return Value::Bool(equal);
}
Result<Value> IsOdd(Runtime& rt, CallInput in) { return RemainderIs(rt, in.self, Value::Int(2), 1); }
Result<Value> IsEven(Runtime& rt, CallInput in) { return RemainderIs(rt, in.self, Value::Int(2), 0); }
Result<Value> IsDivisibleBy(Runtime& rt, CallInput in) { return RemainderIs(rt, in.self, in[0], 0); }

Result<Value> IsSameAs(Runtime& rt, CallInput in) {
  if (in.self.kind() != in[0].kind()) return Value::Bool(false);
  const bool by_value = !in.self.has_object() || in.self.is(Kind::kStr);
  if (!by_value) return Value::Bool(in.self.object() == in[0].object());
  CACHALOT_ASSIGN_OR_RETURN(const bool equal, Equals(rt, in.self, in[0]));
  return Value::Bool(equal);
}

template <Op op>
Result<Value> CompareTest(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const bool holds, Compare(rt, op, in.self, in[0]));
  return Value::Bool(holds);
}

// Whether the table has the name; names are looked up like dict keys.
Result<Value> IsNameOf(Runtime& rt, const Value& name, bool (*is_known)(std::string_view)) {
  CACHALOT_ASSIGN_OR_RETURN(const bool hashable, IsHashable(rt, name));
  if (!hashable) return Invalid(fmt::format("unhashable type: '{}'", TypeName(name)));
  return Value::Bool(name.is(Kind::kStr) && is_known(name.text()));
}
Result<Value> IsFilter(Runtime& rt, CallInput in) { return IsNameOf(rt, in.self, IsKnownFilter); }
Result<Value> IsTest(Runtime& rt, CallInput in) {
  return IsNameOf(rt, in.self, [](std::string_view name) { return FindTest(name) != nullptr; });
}

}  // namespace

std::span<const Builtin> Tests() {
  static constexpr Builtin kTable[] = {
      {"defined", IsDefined},
      {"undefined", IsKind<Kind::kUndefined>},
      {"none", IsKind<Kind::kNone>},
      {"boolean", IsKind<Kind::kBool>},
      {"integer", IsKind<Kind::kInt>},
      {"float", IsKind<Kind::kFloat>},
      {"string", IsKind<Kind::kStr>},
      {"mapping", IsKind<Kind::kDict>},
      {"true", IsTrue},
      {"false", IsFalse},
      {"number", IsNumber},
      {"iterable", IsIterableTest},
      {"sequence", IsSequence},
      {"callable", IsCallable},
      {"escaped", IsEscaped},
      {"lower", IsLowerTest},
      {"upper", IsUpperTest},
      {"odd", IsOdd},
      {"even", IsEven},
      {"divisibleby", IsDivisibleBy, 1, {"num"}},
      {"sameas", IsSameAs, 1, {"other"}},
      {"in", CompareTest<Op::kIn>, 1, {"seq"}},
      {"filter", IsFilter},
      {"test", IsTest},
      {"==", CompareTest<Op::kEq>, 1, {"_"}},
      {"eq", CompareTest<Op::kEq>, 1, {"_"}},
      {"equalto", CompareTest<Op::kEq>, 1, {"_"}},
      {"!=", CompareTest<Op::kNe>, 1, {"_"}},
      {"ne", CompareTest<Op::kNe>, 1, {"_"}},
      {">", CompareTest<Op::kGt>, 1, {"_"}},
      {"gt", CompareTest<Op::kGt>, 1, {"_"}},
      {"greaterthan", CompareTest<Op::kGt>, 1, {"_"}},
      {">=", CompareTest<Op::kGe>, 1, {"_"}},
      {"ge", CompareTest<Op::kGe>, 1, {"_"}},
      {"<", CompareTest<Op::kLt>, 1, {"_"}},
      {"lt", CompareTest<Op::kLt>, 1, {"_"}},
      {"lessthan", CompareTest<Op::kLt>, 1, {"_"}},
      {"<=", CompareTest<Op::kLe>, 1, {"_"}},
      {"le", CompareTest<Op::kLe>, 1, {"_"}},
  };
  return kTable;
}

}  // namespace cachalot::text::jinja
