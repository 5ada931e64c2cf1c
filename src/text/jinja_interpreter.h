// Interpreter renders one resolved template once.
// Threads:   one render, one thread; the template may be shared.
// Ownership: borrows the template; owns all values of the render.
// Invariant: the output is what Jinja's generated Python would yield; a render that exceeds a limit fails.
// Cost:      one step per node visited; see Limits.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "text/jinja_ast.h"
#include "text/jinja_runtime.h"
#include "text/jinja_value.h"

namespace cachalot::text::jinja {

// The variables of one running function.
struct Activation {
  Activation(Heap* heap, Activation* parent, uint32_t slots);
  ~Activation();
  Activation(const Activation&) = delete;
  Activation& operator=(const Activation&) = delete;

  Heap* heap;
  Activation* parent;  // of the function around it
  std::vector<Value> slots;
  bool captured = false;  // a macro refers to it: it stays until the render ends
};

class Interpreter final : public Runtime {
 public:
  Interpreter(const Template& tree, const Limits& limits, int64_t unix_seconds);
  ~Interpreter() override;

  void SetVariable(const std::string& name, Value value) { variables_[name] = std::move(value); }
  // kInvalid: the message of raise_exception as it is, or "line N: reason". May be called once.
  Result<std::string> Render();

  Result<Value> Call(const Value& callee, Arguments arguments) override;

 private:
  friend class LoopFilter;
  friend class FrameGuard;
  friend class Capture;
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  // Statements.
  Status ExecBody(const Body& body);
  Status Exec(const Stmt& stmt);
  Status ExecNode(const Stmt& stmt);
  Status ExecOutput(const Stmt& stmt);
  Status ExecIf(const Stmt& stmt);
  Status ExecFor(const Loop& loop);
  Status ExecSet(const Stmt& stmt);
  Status ExecSetBlock(const Stmt& stmt);
  Status ExecFilterBlock(const Stmt& stmt);
  Status ExecCallBlock(const Stmt& stmt);
  Status ExecWith(const Stmt& stmt);
  Status RunLoop(const Loop& loop, const Value& iterable, int depth0);
  Status RunLoopBody(const Loop& loop, LoopObject* state, const Value& loop_value, bool* any);
  Result<Value> CallLoop(const LoopObject& caller, const Value& iterable);
  Result<Value> CallMacro(const Macro& macro, Activation* closure, Arguments arguments);
  Status BindMacroArguments(const Macro& macro, Arguments* arguments);
  Value MakeMacro(const Macro& macro);
  Status Assign(const Expr& target, const Value& value);
  Status CheckNamespaces(const Expr& target);
  void Enter(const Scope& scope);
  void Leave(const Scope& scope);
  Status Emit(std::string_view text);
  Status EmitValue(const Value& value);
  Status EmitBlock(const Value& value);

  // Expressions.
  Result<Value> Eval(const Expr& expr);
  Result<Value> EvalNode(const Expr& expr);
  Result<Value> EvalName(const Expr& expr);
  Result<Value> EvalString(const Expr& expr);
  Result<std::vector<Value>> EvalItems(const Expr& expr);
  Result<Value> EvalDict(const Expr& expr);
  Result<Value> EvalCondition(const Expr& expr);
  Result<Value> EvalBinary(const Expr& expr);
  Result<Value> EvalUnary(const Expr& expr);
  Result<Value> EvalLogic(const Expr& expr);
  Result<Value> EvalCompare(const Expr& expr);
  Result<Value> EvalConcat(const Expr& expr);
  Result<Value> EvalFilterOrTest(const Expr& expr);
  Result<Value> EvalCall(const Expr& expr, const Value& caller);
  Result<Value> EvalAttribute(const Expr& expr);
  Result<Value> EvalItem(const Expr& expr);
  Result<Value> EvalSlice(const Expr& expr);
  // The arguments after items[first].
  Result<Arguments> EvalArguments(const Expr& expr, size_t first);
  Status AddStarKeywords(const Expr& expr, Arguments* arguments);

  Activation* FrameAt(uint32_t up) const;
  Value& Slot(const SlotRef& ref) { return FrameAt(ref.up)->slots[ref.index]; }

  const Template& tree_;
  std::unordered_map<std::string, Value> variables_;
  std::vector<Value> constants_;
  std::vector<std::unique_ptr<Activation>> kept_;
  Activation* frame_ = nullptr;
  std::string* output_ = nullptr;
  Flow flow_ = Flow::kNext;
  Value block_input_;   // what the innermost filter of a filter block is applied to
  int error_line_ = 0;  // of the innermost node that failed
};

}  // namespace cachalot::text::jinja
