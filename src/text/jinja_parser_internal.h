// Parser is the recursive descent behind ParseTemplate.
// Threads:   one parse, one thread.
// Ownership: owns its tokens.
// Invariant: after a failure the parse is over; every method that fails returns the reason.
// Cost:      linear in the tokens.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace cachalot::text::jinja {

class Parser {
 public:
  explicit Parser(std::string_view source);
  Result<Template> Run();

 private:
  struct TupleOptions {
    bool simplified = false;      // names and literals only: a target
    bool with_condition = true;   // a if b else c
    bool parenthesized = false;   // "()" is a tuple
    bool with_namespace = false;  // ns.attribute is allowed
    std::string_view end_name;    // a name that ends it
  };
  struct CallArguments {
    std::vector<ExprPtr> positional;
    std::vector<Keyword> keywords;
    ExprPtr star_args, star_keywords;
  };

  // Tokens.
  const Token& Current() const { return tokens_[position_]; }
  const Token& Look();
  Token Next();
  bool SkipName(std::string_view name);
  bool SkipOperator(std::string_view spelling);
  bool AtType(TokenType type) const { return Current().type == type; }
  Status Expect(TokenType type);
  Status ExpectOperator(std::string_view spelling);
  Status ExpectName(std::string_view name);
  Result<std::string> ExpectAnyName();
  Status Unexpected(const std::string& expected);
  Status Fail(const std::string& message) { return FailAt(message, Current().line); }
  Status FailAt(const std::string& message, int line);
  // A failure that counts only if the rest of the template is well formed.
  void FailLate(const std::string& message, int line);
  // Gives a finished node its depth.
  Result<ExprPtr> Finish(ExprPtr node);

  // Statements.
  Result<Body> ParseBody(const std::vector<std::string_view>& end_tags, bool skip_end);
  Result<Body> ParseUntil(const std::vector<std::string_view>& end_tags);
  Status ParseOutput(Body* body);
  Result<StmtPtr> ParseStatement();
  Result<StmtPtr> ParseKnownStatement(const std::string& tag);
  Result<StmtPtr> ParseFor(int line);
  Result<StmtPtr> ParseIf(int line);
  Result<StmtPtr> ParseSet(int line);
  Result<StmtPtr> ParseMacro(int line);
  Result<StmtPtr> ParseCallBlock(int line);
  Result<StmtPtr> ParseGeneration(int line);
  Result<StmtPtr> ParseFilterBlock(int line);
  Result<StmtPtr> ParseWith(int line);
  Result<StmtPtr> ParsePrint(int line);
  Status ParseSignature(Macro* macro);
  Result<ExprPtr> ParseTarget(std::string_view end_name, bool with_namespace);
  Result<ExprPtr> ParseNameTarget();
  Status MarkStored(Expr* target);
  Status UnknownTag(const std::string& tag, int line);
  Status UnexpectedEnd(const std::vector<std::string_view>& end_tags);

  // Expressions, loosest first.
  Result<ExprPtr> ParseExpression(bool with_condition = true);
  Result<ExprPtr> ParseCondition();
  Result<ExprPtr> ParseOr();
  Result<ExprPtr> ParseAnd();
  Result<ExprPtr> ParseNot();
  Result<ExprPtr> ParseCompare();
  Result<ExprPtr> ParseSum();
  Result<ExprPtr> ParseConcat();
  Result<ExprPtr> ParseProduct();
  Result<ExprPtr> ParsePower();
  Result<ExprPtr> ParseUnary(bool with_filter = true);
  Result<ExprPtr> ParsePrimary(bool with_namespace = false);
  Result<ExprPtr> ParseNameOrConstant(bool with_namespace);
  Result<ExprPtr> ParseTuple(const TupleOptions& options);
  Result<ExprPtr> ParseList();
  Result<ExprPtr> ParseDict();
  Result<ExprPtr> ParsePostfix(ExprPtr node);
  Result<ExprPtr> ParseFilterChain(ExprPtr node);
  Result<ExprPtr> ParseSubscript(ExprPtr node);
  Result<ExprPtr> ParseSubscribed(ExprPtr object, bool* is_slice);
  Result<ExprPtr> ParseCall(ExprPtr callee);
  Result<ExprPtr> ParseFilters(ExprPtr node, bool starts_inline);
  Result<ExprPtr> ParseTest(ExprPtr node);
  Status ParseTestArguments(Expr* test);
  Status ParseCallArguments(CallArguments* out);
  Status ParseCallArgument(int line, CallArguments* out);
  bool AtTupleEnd(std::string_view end_name) const;

  std::vector<Token> tokens_;
  size_t position_ = 0;
  bool looked_at_error_ = false;
  int nesting_ = 0;        // of expressions being parsed
  int block_nesting_ = 0;  // of statements being parsed
  int loops_ = 0;          // enclosing loops inside the same function
  std::vector<std::string> open_tags_;
  std::vector<std::vector<std::string_view>> end_tags_;
  uint32_t constants_ = 0;
  std::string late_error_;
};

}  // namespace cachalot::text::jinja
