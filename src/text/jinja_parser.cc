#include "text/jinja_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/jinja_parser_internal.h"

namespace cachalot::text::jinja {
namespace {

StmtPtr MakeStmt(StmtKind kind, int line) {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = kind;
  stmt->line = line;
  return stmt;
}

// "'elif' or 'else' or 'endif'"
std::string QuotedAlternatives(const std::vector<std::string_view>& names) {
  std::string out;
  for (std::string_view name : names) out += fmt::format("{}'{}'", out.empty() ? "" : " or ", name);
  return out;
}

}  // namespace

Parser::Parser(std::string_view source) : tokens_(Tokenize(source)) {
  if (Token& last = tokens_.back(); last.type == TokenType::kEnd) {
    last.line = tokens_.size() > 1 ? tokens_[tokens_.size() - 2].line : 1;
  }
}

Result<Template> Parser::Run() {
  Template result;
  CACHALOT_ASSIGN_OR_RETURN(result.body, ParseUntil({}));
  result.constants = constants_;
  result.late_error = std::move(late_error_);
  return result;
}

const Token& Parser::Look() {
  const Token& next = tokens_[std::min(position_ + 1, tokens_.size() - 1)];
  if (next.type == TokenType::kError) looked_at_error_ = true;
  return next;
}

Token Parser::Next() {
  Token token = Current();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool Parser::SkipName(std::string_view name) {
  if (!Current().IsName(name)) return false;
  Next();
  return true;
}

bool Parser::SkipOperator(std::string_view spelling) {
  if (!Current().IsOperator(spelling)) return false;
  Next();
  return true;
}

Status Parser::FailAt(const std::string& message, int line) {
  const Token& last = tokens_.back();
  if (last.type == TokenType::kError && (AtType(TokenType::kError) || looked_at_error_)) {
    return Invalid(fmt::format("line {}: {}", last.line, last.text));
  }
  return Invalid(fmt::format("line {}: {}", line, message));
}

void Parser::FailLate(const std::string& message, int line) {
  if (late_error_.empty()) late_error_ = fmt::format("line {}: {}", line, message);
}

Status Parser::Unexpected(const std::string& expected) {
  if (AtType(TokenType::kEnd)) return Fail(fmt::format("unexpected end of template, expected '{}'.", expected));
  return Fail(fmt::format("expected token '{}', got '{}'", expected, DescribeToken(Current())));
}

Status Parser::Expect(TokenType type) {
  if (!AtType(type)) return Unexpected(DescribeTokenType(type));
  Next();
  return OkStatus();
}

Status Parser::ExpectOperator(std::string_view spelling) {
  if (!SkipOperator(spelling)) return Unexpected(std::string(spelling));
  return OkStatus();
}

Status Parser::ExpectName(std::string_view name) {
  if (!SkipName(name)) return Unexpected(std::string(name));
  return OkStatus();
}

Result<std::string> Parser::ExpectAnyName() {
  if (!AtType(TokenType::kName)) return Unexpected("name");
  return Next().text;
}

Result<ExprPtr> Parser::Finish(ExprPtr node) {
  int deepest = 0;
  const auto consider = [&](const ExprPtr& child) {
    if (child) deepest = std::max(deepest, child->depth);
  };
  for (const ExprPtr& item : node->items) consider(item);
  for (const Keyword& keyword : node->keywords) consider(keyword.value);
  consider(node->star_args);
  consider(node->star_keywords);
  node->depth = deepest + 1;
  if (node->depth > kMaxExprDepth) {
    return FailAt(fmt::format("the expression is nested deeper than {}", kMaxExprDepth), node->line);
  }
  return node;
}

Status Parser::UnexpectedEnd(const std::vector<std::string_view>& end_tags) {
  std::string message = "Unexpected end of template.";
  if (!end_tags.empty()) {
    message += fmt::format(" Jinja was looking for the following tags: {}.", QuotedAlternatives(end_tags));
  }
  if (!open_tags_.empty()) {
    message += fmt::format(" The innermost block that needs to be closed is '{}'.", open_tags_.back());
  }
  return Fail(message);
}

Status Parser::UnknownTag(const std::string& tag, int line) {
  static constexpr std::string_view kUnsupported[] = {"block", "extends", "include", "import", "from", "autoescape"};
  if (std::ranges::find(kUnsupported, tag) != std::end(kUnsupported)) {
    return FailAt(fmt::format("the tag '{}' is not supported in chat templates", tag), line);
  }
  std::string message = fmt::format("Encountered unknown tag '{}'.", tag);
  if (!end_tags_.empty() && !end_tags_.back().empty()) {
    const bool misplaced =
        std::ranges::any_of(end_tags_, [&](const auto& tags) { return std::ranges::find(tags, tag) != tags.end(); });
    message += misplaced
                   ? " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for "
                   : " Jinja was looking for the following tags: ";
    message += QuotedAlternatives(end_tags_.back()) + ".";
  }
  if (!open_tags_.empty()) {
    message += fmt::format(" The innermost block that needs to be closed is '{}'.", open_tags_.back());
  }
  return FailAt(message, line);
}

Result<Body> Parser::ParseBody(const std::vector<std::string_view>& end_tags, bool skip_end) {
  SkipOperator(":");
  CACHALOT_RETURN_IF_ERROR(Expect(TokenType::kBlockEnd));
  CACHALOT_ASSIGN_OR_RETURN(Body body, ParseUntil(end_tags));
  if (AtType(TokenType::kEnd)) return UnexpectedEnd(end_tags);
  if (skip_end) Next();
  return body;
}

Status Parser::ParseOutput(Body* body) {
  const int line = Current().line;
  Next();
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr expr, ParseTuple({}));
  CACHALOT_RETURN_IF_ERROR(Expect(TokenType::kVariableEnd));
  StmtPtr output = MakeStmt(StmtKind::kOutput, line);
  output->exprs.push_back(std::move(expr));
  body->push_back(std::move(output));
  return OkStatus();
}

// Statements up to one of the end tags, which becomes the current token, or to the end.
Result<Body> Parser::ParseUntil(const std::vector<std::string_view>& end_tags) {
  if (++block_nesting_ > kMaxBlockDepth) return Fail(fmt::format("blocks are nested deeper than {}", kMaxBlockDepth));
  end_tags_.push_back(end_tags);
  Body body;
  while (!AtType(TokenType::kEnd)) {
    if (AtType(TokenType::kData)) {
      Token data = Next();
      body.push_back(MakeStmt(StmtKind::kData, data.line));
      body.back()->text = std::move(data.text);
    } else if (AtType(TokenType::kVariableBegin)) {
      CACHALOT_RETURN_IF_ERROR(ParseOutput(&body));
    } else if (AtType(TokenType::kBlockBegin)) {
      Next();
      if (AtType(TokenType::kName) && std::ranges::find(end_tags, Current().text) != end_tags.end()) break;
      CACHALOT_ASSIGN_OR_RETURN(StmtPtr statement, ParseStatement());
      body.push_back(std::move(statement));
      CACHALOT_RETURN_IF_ERROR(Expect(TokenType::kBlockEnd));
    } else {
      return Fail(fmt::format("unexpected {}", DescribeToken(Current())));
    }
  }
  end_tags_.pop_back();
  --block_nesting_;
  return body;
}

Result<StmtPtr> Parser::ParseStatement() {
  if (!AtType(TokenType::kName)) return Fail("tag name expected");
  const std::string tag = Current().text;
  open_tags_.push_back(tag);
  CACHALOT_ASSIGN_OR_RETURN(StmtPtr statement, ParseKnownStatement(tag));
  open_tags_.pop_back();
  return statement;
}

Result<StmtPtr> Parser::ParseKnownStatement(const std::string& tag) {
  using Method = Result<StmtPtr> (Parser::*)(int);
  static constexpr std::pair<std::string_view, Method> kStatements[] = {
      {"for", &Parser::ParseFor},
      {"if", &Parser::ParseIf},
      {"set", &Parser::ParseSet},
      {"macro", &Parser::ParseMacro},
      {"call", &Parser::ParseCallBlock},
      {"generation", &Parser::ParseGeneration},
      {"filter", &Parser::ParseFilterBlock},
      {"with", &Parser::ParseWith},
      {"print", &Parser::ParsePrint},
  };
  const int line = Current().line;
  for (const auto& [name, method] : kStatements) {
    if (name != tag) continue;
    Next();
    return (this->*method)(line);
  }
  if (tag != "break" && tag != "continue") {
    open_tags_.pop_back();
    return UnknownTag(tag, line);
  }
  if (loops_ == 0) FailLate(fmt::format("'{}' outside loop", tag), line);
  Next();
  return MakeStmt(tag == "break" ? StmtKind::kBreak : StmtKind::kContinue, line);
}

Result<StmtPtr> Parser::ParseFor(int line) {
  StmtPtr stmt = MakeStmt(StmtKind::kFor, line);
  stmt->loop = std::make_unique<Loop>();
  Loop& loop = *stmt->loop;
  CACHALOT_ASSIGN_OR_RETURN(loop.target, ParseTarget("in", false));
  CACHALOT_RETURN_IF_ERROR(ExpectName("in"));
  CACHALOT_ASSIGN_OR_RETURN(loop.iterable, ParseTuple({.with_condition = false, .end_name = "recursive"}));
  if (SkipName("if")) {
    CACHALOT_ASSIGN_OR_RETURN(loop.test, ParseExpression());
  }
  loop.recursive = SkipName("recursive");
  // A recursive loop is a function of its own; nothing in its else branch can break out of it.
  const int outer_loops = loop.recursive ? std::exchange(loops_, 0) : loops_;
  ++loops_;
  CACHALOT_ASSIGN_OR_RETURN(loop.body, ParseBody({"endfor", "else"}, false));
  --loops_;
  if (Next().text == "else") {
    CACHALOT_ASSIGN_OR_RETURN(loop.otherwise, ParseBody({"endfor"}, true));
  }
  loops_ = outer_loops;
  return stmt;
}

Result<StmtPtr> Parser::ParseIf(int line) {
  StmtPtr stmt = MakeStmt(StmtKind::kIf, line);
  while (true) {
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr test, ParseTuple({.with_condition = false}));
    CACHALOT_ASSIGN_OR_RETURN(Body body, ParseBody({"elif", "else", "endif"}, false));
    stmt->exprs.push_back(std::move(test));
    stmt->branches.push_back(std::move(body));
    const Token end = Next();
    if (end.text == "elif") continue;
    if (end.text == "else") {
      CACHALOT_ASSIGN_OR_RETURN(Body otherwise, ParseBody({"endif"}, true));
      stmt->branches.push_back(std::move(otherwise));
    }
    return stmt;
  }
}

Result<StmtPtr> Parser::ParseSet(int line) {
  StmtPtr stmt = MakeStmt(StmtKind::kSet, line);
  CACHALOT_ASSIGN_OR_RETURN(stmt->target, ParseTarget({}, true));
  if (SkipOperator("=")) {
    CACHALOT_ASSIGN_OR_RETURN(stmt->expr, ParseTuple({}));
    return stmt;
  }
  stmt->kind = StmtKind::kSetBlock;
  if (Current().IsOperator("|")) {
    CACHALOT_ASSIGN_OR_RETURN(stmt->expr, ParseFilters(nullptr, false));
  }
  CACHALOT_ASSIGN_OR_RETURN(stmt->body, ParseBody({"endset"}, true));
  return stmt;
}

Result<StmtPtr> Parser::ParseMacro(int line) {
  StmtPtr stmt = MakeStmt(StmtKind::kMacro, line);
  stmt->macro = std::make_unique<Macro>();
  CACHALOT_ASSIGN_OR_RETURN(stmt->target, ParseNameTarget());
  stmt->macro->name = stmt->target->text;
  CACHALOT_RETURN_IF_ERROR(ParseSignature(stmt->macro.get()));
  const int outer_loops = std::exchange(loops_, 0);
  CACHALOT_ASSIGN_OR_RETURN(stmt->macro->body, ParseBody({"endmacro"}, true));
  loops_ = outer_loops;
  return stmt;
}

Result<StmtPtr> Parser::ParseCallBlock(int line) {
  StmtPtr stmt = MakeStmt(StmtKind::kCallBlock, line);
  stmt->macro = std::make_unique<Macro>();
  if (Current().IsOperator("(")) CACHALOT_RETURN_IF_ERROR(ParseSignature(stmt->macro.get()));
  CACHALOT_ASSIGN_OR_RETURN(stmt->expr, ParseExpression());
  if (stmt->expr->kind != ExprKind::kCall) return FailAt("expected call", line);
  const int outer_loops = std::exchange(loops_, 0);
  CACHALOT_ASSIGN_OR_RETURN(stmt->macro->body, ParseBody({"endcall"}, true));
  loops_ = outer_loops;
  return stmt;
}

Result<StmtPtr> Parser::ParseGeneration(int line) {
  StmtPtr stmt = MakeStmt(StmtKind::kCallBlock, line);
  stmt->macro = std::make_unique<Macro>();
  const int outer_loops = std::exchange(loops_, 0);
  CACHALOT_ASSIGN_OR_RETURN(stmt->macro->body, ParseBody({"endgeneration"}, true));
  loops_ = outer_loops;
  return stmt;
}

Result<StmtPtr> Parser::ParseFilterBlock(int line) {
  StmtPtr stmt = MakeStmt(StmtKind::kFilterBlock, line);
  CACHALOT_ASSIGN_OR_RETURN(stmt->expr, ParseFilters(nullptr, true));
  CACHALOT_ASSIGN_OR_RETURN(stmt->body, ParseBody({"endfilter"}, true));
  return stmt;
}

Result<StmtPtr> Parser::ParseWith(int line) {
  StmtPtr stmt = MakeStmt(StmtKind::kWith, line);
  while (!AtType(TokenType::kBlockEnd)) {
    if (!stmt->targets.empty()) CACHALOT_RETURN_IF_ERROR(ExpectOperator(","));
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr target, ParseTarget({}, false));
    CACHALOT_RETURN_IF_ERROR(ExpectOperator("="));
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    stmt->targets.push_back(std::move(target));
    stmt->exprs.push_back(std::move(value));
  }
  CACHALOT_ASSIGN_OR_RETURN(stmt->body, ParseBody({"endwith"}, true));
  return stmt;
}

Result<StmtPtr> Parser::ParsePrint(int line) {
  StmtPtr stmt = MakeStmt(StmtKind::kOutput, line);
  while (!AtType(TokenType::kBlockEnd)) {
    if (!stmt->exprs.empty()) CACHALOT_RETURN_IF_ERROR(ExpectOperator(","));
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    stmt->exprs.push_back(std::move(value));
  }
  return stmt;
}

Status Parser::ParseSignature(Macro* macro) {
  CACHALOT_RETURN_IF_ERROR(ExpectOperator("("));
  while (!Current().IsOperator(")")) {
    if (!macro->params.empty()) CACHALOT_RETURN_IF_ERROR(ExpectOperator(","));
    CACHALOT_ASSIGN_OR_RETURN(ExprPtr param, ParseNameTarget());
    const bool is_repeated =
        std::ranges::any_of(macro->params, [&](const ExprPtr& other) { return other->text == param->text; });
    if (is_repeated) FailLate(fmt::format("duplicate argument '{}' in a macro", param->text), param->line);
    if (SkipOperator("=")) {
      CACHALOT_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      macro->defaults.push_back(std::move(value));
    } else if (!macro->defaults.empty()) {
      return Fail("non-default argument follows default argument");
    }
    macro->params.push_back(std::move(param));
  }
  return ExpectOperator(")");
}

Result<ExprPtr> Parser::ParseNameTarget() {
  const int line = Current().line;
  CACHALOT_ASSIGN_OR_RETURN(std::string name, ExpectAnyName());
  auto target = std::make_unique<Expr>();
  target->kind = ExprKind::kName;
  target->line = line;
  target->text = std::move(name);
  CACHALOT_RETURN_IF_ERROR(MarkStored(target.get()));
  return target;
}

Result<ExprPtr> Parser::ParseTarget(std::string_view end_name, bool with_namespace) {
  CACHALOT_ASSIGN_OR_RETURN(ExprPtr target,
                            ParseTuple({.simplified = true, .with_namespace = with_namespace, .end_name = end_name}));
  CACHALOT_RETURN_IF_ERROR(MarkStored(target.get()));
  return target;
}

Status Parser::MarkStored(Expr* target) {
  static constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
  switch (target->kind) {
    case ExprKind::kNsRef: return OkStatus();
    case ExprKind::kName:
      if (std::ranges::find(kConstants, target->text) != std::end(kConstants)) {
        return FailAt("can't assign to 'name'", target->line);
      }
      target->is_store = true;
      return OkStatus();
    case ExprKind::kTuple:
      for (const ExprPtr& item : target->items) CACHALOT_RETURN_IF_ERROR(MarkStored(item.get()));
      return OkStatus();
    case ExprKind::kList: return FailAt("can't assign to 'list'", target->line);
    case ExprKind::kDict: return FailAt("can't assign to 'dict'", target->line);
    default: return FailAt("can't assign to 'const'", target->line);
  }
}

Result<Template> ParseTemplate(std::string_view source) {
  if (const size_t bad = FindInvalidUtf8(source); bad != std::string_view::npos) {
    return Invalid(fmt::format("line {}: the template is not valid UTF-8 (byte {})",
                               1 + std::count(source.begin(), source.begin() + static_cast<ptrdiff_t>(bad), '\n'),
                               bad));
  }
  return Parser(source).Run();
}

}  // namespace cachalot::text::jinja
