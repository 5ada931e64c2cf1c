// The syntax tree of a template: what the parser makes, the resolver annotates and the interpreter walks.
// Threads:   plain data; read-only once resolved.
// Ownership: a node owns its children.
// Invariant: nesting is at most kMaxExprDepth and kMaxBlockDepth, so walking it recursively is safe.
// Cost:      one allocation per node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cachalot::text::jinja {

struct Builtin;
struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

inline constexpr int kMaxExprDepth = 200;
inline constexpr int kMaxBlockDepth = 60;

// A variable: `index` in the frame of the function `up` levels outside of the one that runs.
struct SlotRef {
  uint32_t up = 0;
  uint32_t index = 0;
};

enum class ExprKind : uint8_t {
  kNone,       // constants
  kBool,       //   integer != 0
  kInt,        //   integer
  kFloat,      //   number
  kStr,        //   text, const_index
  kName,       // text, slot
  kNsRef,      // text . attribute, slot; only as a target
  kTuple,      // items
  kList,       // items
  kDict,       // items: key, value, key, value, ...
  kCond,       // items: test, then, else (may be null)
  kBinary,     // op; items: left, right
  kUnary,      // op: kAdd or kSub; items: operand
  kNot,        // items: operand
  kAnd,        // items: left, right
  kOr,         // items: left, right
  kCompare,    // items: first operand and those after each of compare_ops
  kConcat,     // items
  kFilter,     // text, builtin; items: operand (null inside a filter block), then arguments
  kTest,       // text, builtin; items: operand, then arguments
  kCall,       // items: callee, then arguments
  kAttribute,  // items: object; text
  kItem,       // items: object, key
  kSlice,      // items: object, start, stop, step (each of the last three may be null)
};

enum class Op : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,  // arithmetic
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn,  // comparison
};

struct Keyword {
  std::string name;
  ExprPtr value;
};

struct Expr {
  ExprKind kind = ExprKind::kNone;
  Op op = Op::kAdd;
  bool is_store = false;  // a name that is assigned to
  int line = 0;
  int depth = 1;
  int64_t integer = 0;
  double number = 0;
  uint32_t const_index = 0;
  SlotRef slot;
  const Builtin* builtin = nullptr;  // null: unknown, which fails when it runs
  std::string text;
  std::string attribute;
  std::vector<ExprPtr> items;
  std::vector<Op> compare_ops;
  std::vector<Keyword> keywords;
  ExprPtr star_args, star_keywords;  // f(*a, **k)
};

// What happens to the variables of a scope when it is entered.
struct ScopeEntry {
  enum class Action : uint8_t { kResolve, kAlias, kClear };
  Action action = Action::kClear;
  uint32_t slot = 0;  // in the function's own frame
  SlotRef source;     // kAlias
  std::string name;   // kResolve: from the render's variables
};
struct Scope {
  std::vector<ScopeEntry> enter;
  std::vector<uint32_t> leave;  // slots that become unset
};

// A body with its own frame: the template, a macro, a recursive loop, a loop's filter.
struct Function {
  uint32_t slots = 0;
  Scope scope;
};

enum class StmtKind : uint8_t {
  kData,         // text
  kOutput,       // exprs
  kIf,           // exprs: one test per branch; branches: as many bodies, and one more for else
  kFor,          // loop
  kSet,          // target, expr
  kSetBlock,     // target, expr (filter chain or null), body, scope
  kMacro,        // target, macro
  kCallBlock,    // macro (the caller's body), expr: a kCall, or null for {% generation %}
  kFilterBlock,  // expr (filter chain), body, scope
  kWith,         // targets, exprs, body, scope
  kBreak,
  kContinue,
};

struct Macro {
  std::string name;  // empty: a caller
  std::vector<ExprPtr> params;
  std::vector<ExprPtr> defaults;  // of the last params
  Body body;
  Function function;
  // Slots of the special parameters, where the body uses them.
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
  bool caller_is_param = false;
  uint32_t caller_slot = 0, kwargs_slot = 0, varargs_slot = 0;
};

struct Loop {
  ExprPtr target, iterable, test;
  Body body, otherwise;
  bool recursive = false;
  bool extended = false;  // the body uses `loop`
  uint32_t loop_slot = 0;
  Scope scope, else_scope;
  ExprPtr test_target;     // target again, in the frame of test_function
  Function test_function;  // with test
  Function function;       // recursive
};

struct Stmt {
  StmtKind kind = StmtKind::kData;
  int line = 0;
  std::string text;
  ExprPtr target, expr;
  std::vector<ExprPtr> targets, exprs;
  std::vector<Body> branches;
  Body body;
  Scope scope;
  std::unique_ptr<Macro> macro;
  std::unique_ptr<Loop> loop;
};

struct Template {
  Body body;
  Function function;
  uint32_t constants = 0;  // number of string constants
  std::string late_error;  // what makes it invalid if nothing else does: Python itself finds these last
};

}  // namespace cachalot::text::jinja
