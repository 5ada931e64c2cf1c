#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja_format.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace cachalot::text::jinja {
namespace {

const char* Symbol(Op op) {
  switch (op) {
    case Op::kAdd: return "+";
    case Op::kSub: return "-";
    case Op::kMul: return "*";
    case Op::kDiv: return "/";
    case Op::kFloorDiv: return "//";
    case Op::kMod: return "%";
    default: return "** or pow()";
  }
}

Status Overflow() { return Invalid("integer result does not fit in 64 bits"); }

Result<Value> IntPower(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return Overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return Overflow();
  }
  return Value::Int(result);
}

Result<Value> FloatPower(double base, double exponent) {
  if (base == 0 && exponent < 0) return Invalid("0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && std::floor(exponent) != exponent) {
    return Invalid("complex numbers are not supported");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) return Invalid("Result too large");
  return Value::Float(result);
}

// Python's remainder has the sign of the divisor; quotient and remainder belong together.
struct FloatDivision {
  double quotient, remainder;
};
FloatDivision DivideFloats(double a, double b) {
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), remainder};
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1;
  return {floored, remainder};
}

Result<Value> DivideInts(Op op, int64_t a, int64_t b) {
  if (b == 0) return Invalid(op == Op::kDiv ? "division by zero" : "integer division or modulo by zero");
  if (op == Op::kDiv) return Value::Float(static_cast<double>(static_cast<long double>(a) / b));
  if (b == -1) {
    if (op == Op::kMod) return Value::Int(0);
    return a == INT64_MIN ? Result<Value>(Overflow()) : Result<Value>(Value::Int(-a));
  }
  const int64_t quotient = a / b;
  const int64_t remainder = a % b;
  const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
  if (op == Op::kMod) return Value::Int(adjust ? remainder + b : remainder);
  return Value::Int(adjust ? quotient - 1 : quotient);
}

Result<Value> IntArithmetic(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Op::kAdd: overflows = __builtin_add_overflow(a, b, &result); break;
    case Op::kSub: overflows = __builtin_sub_overflow(a, b, &result); break;
    case Op::kMul: overflows = __builtin_mul_overflow(a, b, &result); break;
    case Op::kPow: return b >= 0 ? IntPower(a, b) : FloatPower(static_cast<double>(a), static_cast<double>(b));
    default: return DivideInts(op, a, b);
  }
  if (overflows) return Overflow();
  return Value::Int(result);
}

Result<Value> FloatArithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return Value::Float(a + b);
    case Op::kSub: return Value::Float(a - b);
    case Op::kMul: return Value::Float(a * b);
    case Op::kPow: return FloatPower(a, b);
    default: break;
  }
  if (b == 0) return Invalid(op == Op::kMod ? "float modulo" : "float division by zero");
  if (op == Op::kDiv) return Value::Float(a / b);
  const FloatDivision division = DivideFloats(a, b);
  return Value::Float(op == Op::kMod ? division.remainder : division.quotient);
}

// Text + text. When one side is HTML-safe the other is escaped.
Result<Value> AddText(Runtime& rt, const Value& a, const Value& b) {
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(a.text().size() + b.text().size()));
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(a.text().size() + b.text().size()));
  const bool a_safe = a.as<StrObject>()->markup;
  const bool b_safe = b.as<StrObject>()->markup;
  if (a_safe == b_safe) return rt.Str(a.text() + b.text(), a_safe);
  if (a_safe) return rt.Str(a.text() + EscapeHtml(b.text()), true);
  return rt.Str(EscapeHtml(a.text()) + b.text(), true);
}

Result<Value> AddSequences(Runtime& rt, const Value& a, const Value& b) {
  const size_t count = a.items().size() + b.items().size();
  CACHALOT_RETURN_IF_ERROR(rt.Tick(1 + count / 8));
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(count * sizeof(Value)));
  std::vector<Value> items;
  items.reserve(count);
  items.insert(items.end(), a.items().begin(), a.items().end());
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is(Kind::kList) ? rt.List(std::move(items)) : rt.Tuple(std::move(items));
}

bool IsRepeatable(const Value& value) { return value.is(Kind::kStr) || value.is_sequence(); }

Result<Value> Repeat(Runtime& rt, const Value& value, int64_t times) {
  const bool is_text = value.is(Kind::kStr);
  const size_t size = is_text ? value.text().size() : value.items().size() * sizeof(Value);
  const size_t count = times <= 0 || size == 0 ? 0 : static_cast<size_t>(times);
  size_t total = 0;
  if (__builtin_mul_overflow(size, count, &total)) total = SIZE_MAX;
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(total));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(total));
  if (is_text) {
    std::string text;
    text.reserve(total);
    for (size_t i = 0; i < count; ++i) text += value.text();
    return rt.Str(std::move(text), value.as<StrObject>()->markup);
  }
  std::vector<Value> items;
  items.reserve(total / sizeof(Value));
  for (size_t i = 0; i < count; ++i) items.insert(items.end(), value.items().begin(), value.items().end());
  return value.is(Kind::kList) ? rt.List(std::move(items)) : rt.Tuple(std::move(items));
}

}  // namespace

Result<Value> Arithmetic(Runtime& rt, Op op, const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return IntArithmetic(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return FloatArithmetic(op, a.as_double(), b.as_double());
  if (op == Op::kAdd && a.is(Kind::kStr) && b.is(Kind::kStr)) return AddText(rt, a, b);
  if (op == Op::kAdd && a.is_sequence() && a.kind() == b.kind()) return AddSequences(rt, a, b);
  if (op == Op::kMul && IsRepeatable(a) && b.is_integral()) return Repeat(rt, a, b.integer());
  if (op == Op::kMul && a.is_integral() && IsRepeatable(b)) return Repeat(rt, b, a.integer());
  if (op == Op::kMod && a.is(Kind::kStr)) return FormatPercent(rt, a, b);
  return OperandError(Symbol(op), a, b);
}

Result<Value> Negate(const Value& value) {
  if (value.is(Kind::kFloat)) return Value::Float(-value.number());
  if (value.is_integral()) {
    if (value.integer() == INT64_MIN) return Overflow();
    return Value::Int(-value.integer());
  }
  if (value.is(Kind::kUndefined)) return UndefinedError(value);
  return Invalid(fmt::format("bad operand type for unary -: '{}'", TypeName(value)));
}

Result<Value> Plus(const Value& value) {
  if (value.is(Kind::kFloat)) return value;
  if (value.is_integral()) return Value::Int(value.integer());
  if (value.is(Kind::kUndefined)) return UndefinedError(value);
  return Invalid(fmt::format("bad operand type for unary +: '{}'", TypeName(value)));
}

}  // namespace cachalot::text::jinja
