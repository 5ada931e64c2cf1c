#include <fmt/format.h>

#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace cachalot::text::jinja {

Result<Value> Interpreter::Eval(const Expr& expr) {
  const Level level(this);
  if (!level.ok()) return TooDeep();
  CACHALOT_RETURN_IF_ERROR(Tick());
  Result<Value> result = EvalNode(expr);
  if (!result.ok() && error_line_ == 0) error_line_ = expr.line;
  return result;
}

Result<Value> Interpreter::EvalNode(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kNone: return Value::None();
    case ExprKind::kBool: return Value::Bool(expr.integer != 0);
    case ExprKind::kInt: return Value::Int(expr.integer);
    case ExprKind::kFloat: return Value::Float(expr.number);
    case ExprKind::kStr: return EvalString(expr);
    case ExprKind::kName:
    case ExprKind::kNsRef: return EvalName(expr);
    case ExprKind::kTuple: {
      CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> items, EvalItems(expr));
      return Tuple(std::move(items));
    }
    case ExprKind::kList: {
      CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> items, EvalItems(expr));
      return List(std::move(items));
    }
    case ExprKind::kDict: return EvalDict(expr);
    case ExprKind::kCond: return EvalCondition(expr);
    case ExprKind::kBinary: return EvalBinary(expr);
    case ExprKind::kUnary:
    case ExprKind::kNot: return EvalUnary(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr: return EvalLogic(expr);
    case ExprKind::kCompare: return EvalCompare(expr);
    case ExprKind::kConcat: return EvalConcat(expr);
    case ExprKind::kFilter:
    case ExprKind::kTest: return EvalFilterOrTest(expr);
    case ExprKind::kCall: return EvalCall(expr, {});
    case ExprKind::kAttribute: return EvalAttribute(expr);
    case ExprKind::kItem: return EvalItem(expr);
    case ExprKind::kSlice: return EvalSlice(expr);
  }
  return Value::None();
}

Result<Value> Interpreter::EvalName(const Expr& expr) {
  const Value& value = Slot(expr.slot);
  if (!value.missing()) return value;
  return Undefined(fmt::format("{} is undefined", StrRepr(expr.text)));
}

Result<Value> Interpreter::EvalString(const Expr& expr) {
  Value& constant = constants_[expr.const_index];
  if (constant.missing()) constant = Str(expr.text);
  return constant;
}

Result<std::vector<Value>> Interpreter::EvalItems(const Expr& expr) {
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const ExprPtr& item : expr.items) {
    CACHALOT_ASSIGN_OR_RETURN(Value value, Eval(*item));
    items.push_back(std::move(value));
  }
  return items;
}

Result<Value> Interpreter::EvalDict(const Expr& expr) {
  Dict dict;
  for (size_t i = 0; i + 1 < expr.items.size(); i += 2) {
    CACHALOT_ASSIGN_OR_RETURN(Value key, Eval(*expr.items[i]));
    CACHALOT_ASSIGN_OR_RETURN(Value value, Eval(*expr.items[i + 1]));
    CACHALOT_RETURN_IF_ERROR(dict.Set(*this, std::move(key), std::move(value)));
  }
  return MakeDict(std::move(dict));
}

Result<Value> Interpreter::EvalCondition(const Expr& expr) {
  CACHALOT_ASSIGN_OR_RETURN(const Value test, Eval(*expr.items[0]));
  if (Truth(test)) return Eval(*expr.items[1]);
  if (expr.items[2]) return Eval(*expr.items[2]);
  return Undefined(fmt::format(
      "the inline if-expression on line {} evaluated to false and no else section was defined.", expr.line));
}

Result<Value> Interpreter::EvalBinary(const Expr& expr) {
  CACHALOT_ASSIGN_OR_RETURN(const Value left, Eval(*expr.items[0]));
  CACHALOT_ASSIGN_OR_RETURN(const Value right, Eval(*expr.items[1]));
  return Arithmetic(*this, expr.op, left, right);
}

Result<Value> Interpreter::EvalUnary(const Expr& expr) {
  CACHALOT_ASSIGN_OR_RETURN(const Value operand, Eval(*expr.items[0]));
  if (expr.kind == ExprKind::kNot) return Value::Bool(!Truth(operand));
  return expr.op == Op::kSub ? Negate(operand) : Plus(operand);
}

Result<Value> Interpreter::EvalLogic(const Expr& expr) {
  CACHALOT_ASSIGN_OR_RETURN(Value left, Eval(*expr.items[0]));
  if (Truth(left) == (expr.kind == ExprKind::kOr)) return left;
  return Eval(*expr.items[1]);
}

Result<Value> Interpreter::EvalCompare(const Expr& expr) {
  CACHALOT_ASSIGN_OR_RETURN(Value left, Eval(*expr.items[0]));
  for (size_t i = 0; i < expr.compare_ops.size(); ++i) {
    CACHALOT_ASSIGN_OR_RETURN(Value right, Eval(*expr.items[i + 1]));
    CACHALOT_ASSIGN_OR_RETURN(const bool holds, Compare(*this, expr.compare_ops[i], left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Result<Value> Interpreter::EvalConcat(const Expr& expr) {
  std::string text;
  for (const ExprPtr& item : expr.items) {
    CACHALOT_ASSIGN_OR_RETURN(const Value value, Eval(*item));
    CACHALOT_ASSIGN_OR_RETURN(const std::string part, ToText(*this, value));
    CACHALOT_RETURN_IF_ERROR(CanGrow(text.size() + part.size()));
    text += part;
  }
  return Str(std::move(text));
}

Status Interpreter::AddStarKeywords(const Expr& expr, Arguments* arguments) {
  CACHALOT_ASSIGN_OR_RETURN(const Value extra, Eval(*expr.star_keywords));
  if (!extra.is(Kind::kDict)) {
    return Invalid(fmt::format("argument after ** must be a mapping, not {}", TypeName(extra)));
  }
  for (const Dict::Entry& entry : extra.dict().entries()) {
    CACHALOT_RETURN_IF_ERROR(Tick());
    if (!entry.key.is(Kind::kStr)) return Invalid("keywords must be strings");
    for (const Keyword& keyword : expr.keywords) {
      if (keyword.name == entry.key.text()) {
        return Invalid(fmt::format("got multiple values for keyword argument '{}'", keyword.name));
      }
    }
    arguments->keywords.emplace_back(entry.key.text(), entry.value);
  }
  return OkStatus();
}

Result<Arguments> Interpreter::EvalArguments(const Expr& expr, size_t first) {
  Arguments arguments;
  for (size_t i = first; i < expr.items.size(); ++i) {
    CACHALOT_ASSIGN_OR_RETURN(Value value, Eval(*expr.items[i]));
    arguments.positional.push_back(std::move(value));
  }
  for (const Keyword& keyword : expr.keywords) {
    CACHALOT_ASSIGN_OR_RETURN(Value value, Eval(*keyword.value));
    arguments.keywords.emplace_back(keyword.name, std::move(value));
  }
  if (expr.star_args) {
    CACHALOT_ASSIGN_OR_RETURN(const Value extra, Eval(*expr.star_args));
    CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> values, ToVector(*this, extra));
    for (Value& value : values) arguments.positional.push_back(std::move(value));
  }
  if (expr.star_keywords) CACHALOT_RETURN_IF_ERROR(AddStarKeywords(expr, &arguments));
  return arguments;
}

Result<Value> Interpreter::EvalFilterOrTest(const Expr& expr) {
  Value operand;
  if (expr.items[0]) {
    CACHALOT_ASSIGN_OR_RETURN(operand, Eval(*expr.items[0]));
  } else {
    operand = std::exchange(block_input_, Value());
  }
  if (expr.builtin == nullptr) {
    const char* kind = expr.kind == ExprKind::kFilter ? "filter" : "test";
    return Invalid(fmt::format("No {} named '{}' found.", kind, expr.text));
  }
  CACHALOT_ASSIGN_OR_RETURN(Arguments arguments, EvalArguments(expr, 1));
  return CallBuiltin(*this, *expr.builtin, operand, std::move(arguments));
}

Result<Value> Interpreter::EvalCall(const Expr& expr, const Value& caller) {
  CACHALOT_ASSIGN_OR_RETURN(const Value callee, Eval(*expr.items[0]));
  CACHALOT_ASSIGN_OR_RETURN(Arguments arguments, EvalArguments(expr, 1));
  if (!caller.missing()) arguments.keywords.emplace_back("caller", caller);
  return Call(callee, std::move(arguments));
}

Result<Value> Interpreter::EvalAttribute(const Expr& expr) {
  CACHALOT_ASSIGN_OR_RETURN(const Value object, Eval(*expr.items[0]));
  return GetAttribute(*this, object, expr.text);
}

Result<Value> Interpreter::EvalItem(const Expr& expr) {
  CACHALOT_ASSIGN_OR_RETURN(const Value object, Eval(*expr.items[0]));
  CACHALOT_ASSIGN_OR_RETURN(const Value key, Eval(*expr.items[1]));
  return GetItem(*this, object, key);
}

Result<Value> Interpreter::EvalSlice(const Expr& expr) {
  CACHALOT_ASSIGN_OR_RETURN(const Value object, Eval(*expr.items[0]));
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!expr.items[i + 1]) continue;
    CACHALOT_ASSIGN_OR_RETURN(bounds[i], Eval(*expr.items[i + 1]));
  }
  return GetSlice(*this, object, bounds[0], bounds[1], bounds[2]);
}

}  // namespace cachalot::text::jinja
