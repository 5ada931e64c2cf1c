#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "text/jinja_parser_internal.h"

namespace cachalot::text::jinja {
namespace {

// Methods on the way down: at most four per pair of brackets.
constexpr int kMaxParseNesting = 2 * kMaxExprDepth;

ExprPtr MakeExpr(ExprKind kind, int line) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  return expr;
}

template <class... Items>
ExprPtr MakeNode(ExprKind kind, int line, Items... items) {
  ExprPtr expr = MakeExpr(kind, line);
  (expr->items.push_back(std::move(items)), ...);
  return expr;
}

std::optional<Op> FindOp(const Token& token, std::initializer_list<std::pair<std::string_view, Op>> ops) {
  if (token.type != TokenType::kOperator) return std::nullopt;
  for (const auto& [spelling, op] : ops) {
    if (token.text == spelling) return op;
  }
  return std::nullopt;
}

// Counts a level of recursion for as long as it lives.
class Nested {
 public:
  explicit Nested(int* depth) : depth_(depth) { ++*depth_; }
  ~Nested() { --*depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  int* depth_;
};

}  // namespace

Result<ExprPtr> Parser::ParseExpression(bool with_condition) { return with_condition ? ParseCondition() : ParseOr(); }

Result<ExprPtr> Parser::ParseCondition() {
  const Nested nested(&nesting_);
  if (nesting_ > kMaxParseNesting) return Fail("the expression is nested too deeply");
  int line = Current().line;
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr value, ParseOr());
  while (SkipName("if")) {
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr test, ParseOr());
    ExprPtr otherwise;
    if (SkipName("else")) {
      CACHALOT_ASSIGN_OR_RETURN(otherwise, ParseCondition());
    }
    CACHALOT_ASSIGN_OR_RETURN(
        value, Finish(MakeNode(ExprKind::kCond, line, std::move(test), std::move(value), std::move(otherwise))));
    line = Current().line;
  }
  return value;
}

Result<ExprPtr> Parser::ParseOr() {
  int line = Current().line;
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (SkipName("or")) {
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    CACHALOT_ASSIGN_OR_RETURN(left, Finish(MakeNode(ExprKind::kOr, line, std::move(left), std::move(right))));
    line = Current().line;
  }
  return left;
}

Result<ExprPtr> Parser::ParseAnd() {
  int line = Current().line;
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (SkipName("and")) {
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    CACHALOT_ASSIGN_OR_RETURN(left, Finish(MakeNode(ExprKind::kAnd, line, std::move(left), std::move(right))));
    line = Current().line;
  }
  return left;
}

Result<ExprPtr> Parser::ParseNot() {
  const Nested nested(&nesting_);
  if (nesting_ > kMaxParseNesting) return Fail("the expression is nested too deeply");
  const int line = Current().line;
  if (!SkipName("not")) return ParseCompare();
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  return Finish(MakeNode(ExprKind::kNot, line, std::move(operand)));
}

Result<ExprPtr> Parser::ParseCompare() {
  const int line = Current().line;
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  ExprPtr compare = MakeNode(ExprKind::kCompare, line, std::move(first));
  while (true) {
    std::optional<Op> op =
        FindOp(Current(),
               {{"==", Op::kEq}, {"!=", Op::kNe}, {"<", Op::kLt}, {"<=", Op::kLe}, {">", Op::kGt}, {">=", Op::kGe}});
    if (op || Current().IsName("in")) {
      if (!op) op = Op::kIn;
    } else if (Current().IsName("not") && Look().IsName("in")) {
      Next();
      op = Op::kNotIn;
    } else {
      break;
    }
    Next();
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr operand, ParseSum());
    compare->compare_ops.push_back(*op);
    compare->items.push_back(std::move(operand));
  }
  if (compare->compare_ops.empty()) return std::move(compare->items[0]);
  return Finish(std::move(compare));
}

Result<ExprPtr> Parser::ParseSum() {
  int line = Current().line;
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (const std::optional<Op> op = FindOp(Current(), {{"+", Op::kAdd}, {"-", Op::kSub}})) {
    Next();
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    ExprPtr sum = MakeNode(ExprKind::kBinary, line, std::move(left), std::move(right));
    sum->op = *op;
    CACHALOT_ASSIGN_OR_RETURN(left, Finish(std::move(sum)));
    line = Current().line;
  }
  return left;
}

Result<ExprPtr> Parser::ParseConcat() {
  const int line = Current().line;
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  if (!Current().IsOperator("~")) return first;
  ExprPtr concat = MakeNode(ExprKind::kConcat, line, std::move(first));
  while (SkipOperator("~")) {
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr next, ParseProduct());
    concat->items.push_back(std::move(next));
  }
  return Finish(std::move(concat));
}

Result<ExprPtr> Parser::ParseProduct() {
  int line = Current().line;
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr left, ParsePower());
  while (const std::optional<Op> op =
             FindOp(Current(), {{"*", Op::kMul}, {"/", Op::kDiv}, {"//", Op::kFloorDiv}, {"%", Op::kMod}})) {
    Next();
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr right, ParsePower());
    ExprPtr product = MakeNode(ExprKind::kBinary, line, std::move(left), std::move(right));
    product->op = *op;
    CACHALOT_ASSIGN_OR_RETURN(left, Finish(std::move(product)));
    line = Current().line;
  }
  return left;
}

Result<ExprPtr> Parser::ParsePower() {
  int line = Current().line;
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr left, ParseUnary());
  while (SkipOperator("**")) {
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr right, ParseUnary());
    ExprPtr power = MakeNode(ExprKind::kBinary, line, std::move(left), std::move(right));
    power->op = Op::kPow;
    CACHALOT_ASSIGN_OR_RETURN(left, Finish(std::move(power)));
    line = Current().line;
  }
  return left;
}

Result<ExprPtr> Parser::ParseUnary(bool with_filter) {
  const Nested nested(&nesting_);
  if (nesting_ > kMaxParseNesting) return Fail("the expression is nested too deeply");
  const int line = Current().line;
  ExprPtr node;
  if (const std::optional<Op> op = FindOp(Current(), {{"-", Op::kSub}, {"+", Op::kAdd}})) {
    Next();
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(false));
    ExprPtr unary = MakeNode(ExprKind::kUnary, line, std::move(operand));
    unary->op = *op;
    CACHALOT_ASSIGN_OR_RETURN(node, Finish(std::move(unary)));
  } else {
    CACHALOT_ASSIGN_OR_RETURN(node, ParsePrimary());
  }
  CACHALOT_ASSIGN_OR_RETURN(node, ParsePostfix(std::move(node)));
  if (!with_filter) return node;
  return ParseFilterChain(std::move(node));
}

Result<ExprPtr> Parser::ParseNameOrConstant(bool with_namespace) {
  const Token token = Next();
  if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
    ExprPtr node = MakeExpr(ExprKind::kBool, token.line);
    node->integer = token.text == "true" || token.text == "True";
    return node;
  }
  if (token.text == "none" || token.text == "None") return MakeExpr(ExprKind::kNone, token.line);
  ExprPtr node = MakeExpr(ExprKind::kName, token.line);
  node->text = token.text;
  if (with_namespace && SkipOperator(".")) {
    node->kind = ExprKind::kNsRef;
    CACHALOT_ASSIGN_OR_RETURN(node->attribute, ExpectAnyName());
  }
  return node;
}

Result<ExprPtr> Parser::ParsePrimary(bool with_namespace) {
  const Token& token = Current();
  const int line = token.line;
  switch (token.type) {
    case TokenType::kName: return ParseNameOrConstant(with_namespace);
    case TokenType::kString: {
      ExprPtr node = MakeExpr(ExprKind::kStr, line);
      while (AtType(TokenType::kString)) node->text += Next().text;
      node->const_index = constants_++;
      return node;
    }
    case TokenType::kInteger: {
      ExprPtr node = MakeExpr(ExprKind::kInt, line);
      node->integer = Next().integer;
      return node;
    }
    case TokenType::kFloat: {
      ExprPtr node = MakeExpr(ExprKind::kFloat, line);
      node->number = Next().number;
      return node;
    }
    case TokenType::kOperator:
      if (token.text == "(") {
        Next();
        CACHALOT_ASSIGN_OR_RETURN(ExprPtr node, ParseTuple({.parenthesized = true}));
        CACHALOT_RETURN_IF_ERROR(ExpectOperator(")"));
        return node;
      }
      if (token.text == "[") return ParseList();
      if (token.text == "{") return ParseDict();
      break;
    default: break;
  }
  return Fail(fmt::format("unexpected '{}'", DescribeToken(token)));
}

bool Parser::AtTupleEnd(std::string_view end_name) const {
  return AtType(TokenType::kVariableEnd) || AtType(TokenType::kBlockEnd) || Current().IsOperator(")") ||
         (!end_name.empty() && Current().IsName(end_name));
}

Result<ExprPtr> Parser::ParseTuple(const TupleOptions& options) {
  const Nested nested(&nesting_);
  if (nesting_ > kMaxParseNesting) return Fail("the expression is nested too deeply");
  ExprPtr tuple = MakeExpr(ExprKind::kTuple, Current().line);
  bool is_tuple = false;
  while (true) {
    if (!tuple->items.empty()) CACHALOT_RETURN_IF_ERROR(ExpectOperator(","));
    if (AtTupleEnd(options.end_name)) break;
    if (options.simplified) {
      CACHALOT_ASSIGN_OR_RETURN(ExprPtr item, ParsePrimary(options.with_namespace));
      tuple->items.push_back(std::move(item));
    } else {
      CACHALOT_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression(options.with_condition));
      tuple->items.push_back(std::move(item));
    }
    if (!Current().IsOperator(",")) break;
    is_tuple = true;
    tuple->line = Current().line;
  }
  if (!is_tuple) {
    if (!tuple->items.empty()) return std::move(tuple->items[0]);
    if (!options.parenthesized) return Fail(fmt::format("Expected an expression, got '{}'", DescribeToken(Current())));
  }
  return Finish(std::move(tuple));
}

Result<ExprPtr> Parser::ParseList() {
  ExprPtr list = MakeExpr(ExprKind::kList, Current().line);
  CACHALOT_RETURN_IF_ERROR(ExpectOperator("["));
  while (!Current().IsOperator("]")) {
    if (!list->items.empty()) {
      CACHALOT_RETURN_IF_ERROR(ExpectOperator(","));
      if (Current().IsOperator("]")) break;
    }
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    list->items.push_back(std::move(item));
  }
  CACHALOT_RETURN_IF_ERROR(ExpectOperator("]"));
  return Finish(std::move(list));
}

Result<ExprPtr> Parser::ParseDict() {
  ExprPtr dict = MakeExpr(ExprKind::kDict, Current().line);
  CACHALOT_RETURN_IF_ERROR(ExpectOperator("{"));
  while (!Current().IsOperator("}")) {
    if (!dict->items.empty()) {
      CACHALOT_RETURN_IF_ERROR(ExpectOperator(","));
      if (Current().IsOperator("}")) break;
    }
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    CACHALOT_RETURN_IF_ERROR(ExpectOperator(":"));
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    dict->items.push_back(std::move(key));
    dict->items.push_back(std::move(value));
  }
  CACHALOT_RETURN_IF_ERROR(ExpectOperator("}"));
  return Finish(std::move(dict));
}

Result<ExprPtr> Parser::ParsePostfix(ExprPtr node) {
  while (true) {
    if (Current().IsOperator(".") || Current().IsOperator("[")) {
      CACHALOT_ASSIGN_OR_RETURN(node, ParseSubscript(std::move(node)));
    } else if (Current().IsOperator("(")) {
      CACHALOT_ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::ParseFilterChain(ExprPtr node) {
  while (true) {
    if (Current().IsOperator("|")) {
      CACHALOT_ASSIGN_OR_RETURN(node, ParseFilters(std::move(node), false));
    } else if (Current().IsName("is")) {
      CACHALOT_ASSIGN_OR_RETURN(node, ParseTest(std::move(node)));
    } else if (Current().IsOperator("(")) {
      CACHALOT_ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::ParseSubscript(ExprPtr node) {
  const Token token = Next();
  if (token.text == ".") {
    const Token key = Next();
    if (key.type == TokenType::kName) {
      ExprPtr attribute = MakeNode(ExprKind::kAttribute, token.line, std::move(node));
      attribute->text = key.text;
      return Finish(std::move(attribute));
    }
    if (key.type != TokenType::kInteger) return FailAt("expected name or number", key.line);
    ExprPtr index = MakeExpr(ExprKind::kInt, key.line);
    index->integer = key.integer;
    return Finish(MakeNode(ExprKind::kItem, token.line, std::move(node), std::move(index)));
  }
  ExprPtr keys = MakeExpr(ExprKind::kTuple, token.line);
  bool is_slice = false;
  bool has_slice = false;
  size_t count = 0;
  while (!Current().IsOperator("]")) {
    if (count > 0) CACHALOT_RETURN_IF_ERROR(ExpectOperator(","));
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr key, ParseSubscribed(std::move(node), &is_slice));
    has_slice = has_slice || is_slice;
    if (++count > 1 && has_slice) FailLate("a slice cannot be part of a tuple", token.line);
    if (is_slice) {
      node = std::move(key);
    } else {
      node = std::move(key->items[0]);
      keys->items.push_back(std::move(key->items[1]));
    }
  }
  CACHALOT_RETURN_IF_ERROR(ExpectOperator("]"));
  if (has_slice) return node;
  if (count == 1) return Finish(MakeNode(ExprKind::kItem, token.line, std::move(node), std::move(keys->items[0])));
  CACHALOT_ASSIGN_OR_RETURN(keys, Finish(std::move(keys)));
  return Finish(MakeNode(ExprKind::kItem, token.line, std::move(node), std::move(keys)));
}

// One part of object[...]: kSlice, or kItem with the key.
Result<ExprPtr> Parser::ParseSubscribed(ExprPtr object, bool* is_slice) {
  const int line = Current().line;
  const auto at_end = [&] { return Current().IsOperator("]") || Current().IsOperator(","); };
  ExprPtr start, stop, step;
  *is_slice = false;
  if (!Current().IsOperator(":")) {
    CACHALOT_ASSIGN_OR_RETURN(start, ParseExpression());
    if (!Current().IsOperator(":")) return MakeNode(ExprKind::kItem, line, std::move(object), std::move(start));
  }
  *is_slice = true;
  Next();
  if (!Current().IsOperator(":") && !at_end()) {
    CACHALOT_ASSIGN_OR_RETURN(stop, ParseExpression());
  }
  if (SkipOperator(":") && !at_end()) {
    CACHALOT_ASSIGN_OR_RETURN(step, ParseExpression());
  }
  return Finish(
      MakeNode(ExprKind::kSlice, line, std::move(object), std::move(start), std::move(stop), std::move(step)));
}

Status Parser::ParseCallArgument(int line, CallArguments* out) {
  const char* bad_syntax = "invalid syntax for function call expression";
  if (SkipOperator("*")) {
    if (out->star_args || out->star_keywords) return FailAt(bad_syntax, line);
    CACHALOT_ASSIGN_OR_RETURN(out->star_args, ParseExpression());
    return OkStatus();
  }
  if (SkipOperator("**")) {
    if (out->star_keywords) return FailAt(bad_syntax, line);
    CACHALOT_ASSIGN_OR_RETURN(out->star_keywords, ParseExpression());
    return OkStatus();
  }
  if (AtType(TokenType::kName) && Look().IsOperator("=")) {
    if (out->star_keywords) return FailAt(bad_syntax, line);
    Keyword keyword{.name = Next().text};
    Next();
    CACHALOT_ASSIGN_OR_RETURN(keyword.value, ParseExpression());
    for (const Keyword& other : out->keywords) {
      if (other.name == keyword.name) FailLate(fmt::format("keyword argument repeated: {}", keyword.name), line);
    }
    out->keywords.push_back(std::move(keyword));
    return OkStatus();
  }
  if (out->star_args || out->star_keywords || !out->keywords.empty()) return FailAt(bad_syntax, line);
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr argument, ParseExpression());
  out->positional.push_back(std::move(argument));
  return OkStatus();
}

Status Parser::ParseCallArguments(CallArguments* out) {
  const int line = Current().line;
  CACHALOT_RETURN_IF_ERROR(ExpectOperator("("));
  bool needs_comma = false;
  while (!Current().IsOperator(")")) {
    if (needs_comma) {
      CACHALOT_RETURN_IF_ERROR(ExpectOperator(","));
      if (Current().IsOperator(")")) break;
    }
    CACHALOT_RETURN_IF_ERROR(ParseCallArgument(line, out));
    needs_comma = true;
  }
  return ExpectOperator(")");
}

namespace {

void MoveArguments(std::vector<ExprPtr>* positional, Expr* to) {
  for (ExprPtr& argument : *positional) to->items.push_back(std::move(argument));
}

}  // namespace

Result<ExprPtr> Parser::ParseCall(ExprPtr callee) {
  ExprPtr call = MakeNode(ExprKind::kCall, Current().line, std::move(callee));
  CallArguments arguments;
  CACHALOT_RETURN_IF_ERROR(ParseCallArguments(&arguments));
  MoveArguments(&arguments.positional, call.get());
  call->keywords = std::move(arguments.keywords);
  call->star_args = std::move(arguments.star_args);
  call->star_keywords = std::move(arguments.star_keywords);
  return Finish(std::move(call));
}

Result<ExprPtr> Parser::ParseFilters(ExprPtr node, bool starts_inline) {
  while (starts_inline || SkipOperator("|")) {
    starts_inline = false;
    const int line = Current().line;
    CACHALOT_ASSIGN_OR_RETURN(std::string name, ExpectAnyName());
    while (SkipOperator(".")) {
      CACHALOT_ASSIGN_OR_RETURN(std::string part, ExpectAnyName());
      name += "." + part;
    }
    ExprPtr filter = MakeNode(ExprKind::kFilter, line, std::move(node));
    filter->text = std::move(name);
    if (Current().IsOperator("(")) {
      CallArguments arguments;
      CACHALOT_RETURN_IF_ERROR(ParseCallArguments(&arguments));
      MoveArguments(&arguments.positional, filter.get());
      filter->keywords = std::move(arguments.keywords);
      filter->star_args = std::move(arguments.star_args);
      filter->star_keywords = std::move(arguments.star_keywords);
    }
    CACHALOT_ASSIGN_OR_RETURN(node, Finish(std::move(filter)));
  }
  return node;
}

Status Parser::ParseTestArguments(Expr* test) {
  if (Current().IsOperator("(")) {
    CallArguments arguments;
    CACHALOT_RETURN_IF_ERROR(ParseCallArguments(&arguments));
    MoveArguments(&arguments.positional, test);
    test->keywords = std::move(arguments.keywords);
    test->star_args = std::move(arguments.star_args);
    test->star_keywords = std::move(arguments.star_keywords);
    return OkStatus();
  }
  const bool starts_value = AtType(TokenType::kName) || AtType(TokenType::kString) || AtType(TokenType::kInteger) ||
                            AtType(TokenType::kFloat) || Current().IsOperator("[") || Current().IsOperator("{");
  if (!starts_value || Current().IsName("else") || Current().IsName("or") || Current().IsName("and")) {
    return OkStatus();
  }
  if (Current().IsName("is")) return Fail("You cannot chain multiple tests with is");
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary());
  CACHALOT_ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
  test->items.push_back(std::move(argument));
  return OkStatus();
}

Result<ExprPtr> Parser::ParseTest(ExprPtr node) {
  const int line = Next().line;
  const bool negated = SkipName("not");
  CACHALOT_ASSIGN_OR_RETURN(std::string name, ExpectAnyName());
  while (SkipOperator(".")) {
    CACHALOT_ASSIGN_OR_RETURN(std::string part, ExpectAnyName());
    name += "." + part;
  }
  ExprPtr test = MakeNode(ExprKind::kTest, line, std::move(node));
  test->text = std::move(name);
  CACHALOT_RETURN_IF_ERROR(ParseTestArguments(test.get()));
  CACHALOT_ASSIGN_OR_RETURN(test, Finish(std::move(test)));
  if (!negated) return test;
  return Finish(MakeNode(ExprKind::kNot, line, std::move(test)));
}

}  // namespace cachalot::text::jinja
