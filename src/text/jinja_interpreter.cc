#include "text/jinja_interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace cachalot::text::jinja {

Activation::Activation(Heap* heap, Activation* parent, uint32_t slot_count)
    : heap(heap), parent(parent), slots(slot_count) {
  heap->Charge(sizeof(Activation) + slots.size() * sizeof(Value));
}

Activation::~Activation() { heap->Refund(sizeof(Activation) + slots.size() * sizeof(Value)); }

// Runs a function: its frame is the current one for as long as this lives.
class FrameGuard {
 public:
  FrameGuard(Interpreter* interpreter, Activation* closure, uint32_t slots)
      : interpreter_(interpreter),
        outer_(interpreter->frame_),
        frame_(std::make_unique<Activation>(interpreter->heap(), closure, slots)) {
    interpreter_->frame_ = frame_.get();
  }
  ~FrameGuard() {
    interpreter_->frame_ = outer_;
    if (frame_->captured) interpreter_->kept_.push_back(std::move(frame_));
  }
  FrameGuard(const FrameGuard&) = delete;
  FrameGuard& operator=(const FrameGuard&) = delete;

 private:
  Interpreter* interpreter_;
  Activation* outer_;
  std::unique_ptr<Activation> frame_;
};

// Collects what is written for as long as it lives.
class Capture {
 public:
  explicit Capture(Interpreter* interpreter) : interpreter_(interpreter), outer_(interpreter->output_) {
    interpreter_->output_ = &text_;
  }
  ~Capture() {
    interpreter_->output_ = outer_;
    interpreter_->heap()->Refund(is_taken_ ? taken_bytes_ : text_.size());
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::string Take() {
    is_taken_ = true;
    taken_bytes_ = text_.size();
    interpreter_->output_ = outer_;
    return std::move(text_);
  }

 private:
  Interpreter* interpreter_;
  std::string* outer_;
  std::string text_;
  bool is_taken_ = false;
  size_t taken_bytes_ = 0;
};

// The items of a loop that pass its test.
class LoopFilter final : public IteratorObject {
 public:
  LoopFilter(Heap* heap, Interpreter* interpreter, const Loop* loop, Value source)
      : IteratorObject(heap, 0, source.depth() + 1),
        interpreter_(interpreter),
        loop_(loop),
        source_(std::move(source)),
        frame_(std::make_unique<Activation>(heap, interpreter->frame_, loop->test_function.slots)) {}

  Result<bool> Next(Runtime& rt, Value* out) override {
    Activation* outer = std::exchange(interpreter_->frame_, frame_.get());
    Result<bool> result = NextInFrame(rt, out);
    interpreter_->frame_ = outer;
    return result;
  }

 private:
  Result<bool> NextInFrame(Runtime& rt, Value* out) {
    if (walker_.missing()) {
      interpreter_->Enter(loop_->test_function.scope);
      CACHALOT_ASSIGN_OR_RETURN(walker_, Iterate(rt, source_));
    }
    while (true) {
      CACHALOT_ASSIGN_OR_RETURN(const bool more, walker_.as<IteratorObject>()->Next(rt, out));
      if (!more) return false;
      CACHALOT_RETURN_IF_ERROR(interpreter_->Assign(*loop_->test_target, *out));
      CACHALOT_ASSIGN_OR_RETURN(const Value passes, interpreter_->Eval(*loop_->test));
      if (Truth(passes)) return true;
    }
  }

  Interpreter* interpreter_;
  const Loop* loop_;
  Value source_, walker_;
  std::unique_ptr<Activation> frame_;
};

Interpreter::Interpreter(const Template& tree, const Limits& limits, int64_t unix_seconds)
    : Runtime(limits, unix_seconds), tree_(tree), constants_(tree.constants) {
  for (const Builtin& global : Globals()) variables_[std::string(global.name)] = Value::Function(&global);
}

Interpreter::~Interpreter() {
  // Frames and registered objects can refer to each other: let go of their values first.
  for (const auto& frame : kept_) std::ranges::fill(frame->slots, Value());
  heap()->EmptyRegistered();
}

Result<std::string> Interpreter::Render() {
  std::string text;
  output_ = &text;
  Status status;
  {
    const FrameGuard frame(this, nullptr, tree_.function.slots);
    Enter(tree_.function.scope);
    status = ExecBody(tree_.body);
  }
  heap()->Refund(text.size());
  if (status.ok()) status = Tick(0);
  if (status.ok()) return text;
  if (raised()) return status;
  return Invalid(fmt::format("line {}: {}", error_line_, status.message()));
}

Activation* Interpreter::FrameAt(uint32_t up) const {
  Activation* frame = frame_;
  while (up-- > 0) frame = frame->parent;
  return frame;
}

void Interpreter::Enter(const Scope& scope) {
  for (const ScopeEntry& entry : scope.enter) {
    Value value;
    if (entry.action == ScopeEntry::Action::kAlias) {
      value = Slot(entry.source);
    } else if (entry.action == ScopeEntry::Action::kResolve) {
      if (const auto found = variables_.find(entry.name); found != variables_.end()) value = found->second;
    }
    frame_->slots[entry.slot] = std::move(value);
  }
}

void Interpreter::Leave(const Scope& scope) {
  for (const uint32_t slot : scope.leave) frame_->slots[slot] = Value();
}

Status Interpreter::Emit(std::string_view text) {
  CACHALOT_RETURN_IF_ERROR(TickBytes(text.size()));
  if (output_->size() + text.size() > limits().output_bytes) {
    return Invalid(fmt::format("the output is longer than {} bytes", limits().output_bytes));
  }
  heap()->Charge(text.size());
  output_->append(text);
  return OkStatus();
}

Status Interpreter::EmitValue(const Value& value) {
  if (value.is(Kind::kStr)) return Emit(value.text());
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ToText(*this, value));
  return Emit(text);
}

// What a block yields has to be a string already.
Status Interpreter::EmitBlock(const Value& value) {
  if (!value.is(Kind::kStr)) return Invalid(fmt::format("a block must yield a str, not {}", TypeName(value)));
  return Emit(value.text());
}

Status Interpreter::ExecBody(const Body& body) {
  for (const StmtPtr& stmt : body) {
    CACHALOT_RETURN_IF_ERROR(Exec(*stmt));
    if (flow_ != Flow::kNext) return OkStatus();
  }
  return OkStatus();
}

Status Interpreter::Exec(const Stmt& stmt) {
  const Level level(this);
  Status status = level.ok() ? Tick() : TooDeep();
  if (status.ok()) status = ExecNode(stmt);
  if (!status.ok() && error_line_ == 0) error_line_ = stmt.line;
  return status;
}

Status Interpreter::ExecNode(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kData: return Emit(stmt.text);
    case StmtKind::kOutput: return ExecOutput(stmt);
    case StmtKind::kIf: return ExecIf(stmt);
    case StmtKind::kFor: return ExecFor(*stmt.loop);
    case StmtKind::kSet: return ExecSet(stmt);
    case StmtKind::kSetBlock: return ExecSetBlock(stmt);
    case StmtKind::kMacro: return Assign(*stmt.target, MakeMacro(*stmt.macro));
    case StmtKind::kCallBlock: return ExecCallBlock(stmt);
    case StmtKind::kFilterBlock: return ExecFilterBlock(stmt);
    case StmtKind::kWith: return ExecWith(stmt);
    case StmtKind::kBreak: flow_ = Flow::kBreak; return OkStatus();
    case StmtKind::kContinue: flow_ = Flow::kContinue; return OkStatus();
  }
  return OkStatus();
}

Status Interpreter::ExecOutput(const Stmt& stmt) {
  for (const ExprPtr& expr : stmt.exprs) {
    CACHALOT_ASSIGN_OR_RETURN(const Value value, Eval(*expr));
    CACHALOT_RETURN_IF_ERROR(EmitValue(value));
  }
  return OkStatus();
}

Status Interpreter::ExecIf(const Stmt& stmt) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const Value test, Eval(*stmt.exprs[i]));
    if (Truth(test)) return ExecBody(stmt.branches[i]);
  }
  return stmt.branches.size() > stmt.exprs.size() ? ExecBody(stmt.branches.back()) : OkStatus();
}

Status Interpreter::ExecSet(const Stmt& stmt) {
  CACHALOT_RETURN_IF_ERROR(CheckNamespaces(*stmt.target));
  CACHALOT_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.expr));
  return Assign(*stmt.target, value);
}

Status Interpreter::ExecSetBlock(const Stmt& stmt) {
  Enter(stmt.scope);
  Capture capture(this);
  CACHALOT_RETURN_IF_ERROR(ExecBody(stmt.body));
  if (flow_ != Flow::kNext) return OkStatus();
  Value value = Str(capture.Take());
  if (stmt.expr) {
    block_input_ = std::move(value);
    CACHALOT_ASSIGN_OR_RETURN(value, Eval(*stmt.expr));
  }
  CACHALOT_RETURN_IF_ERROR(CheckNamespaces(*stmt.target));
  CACHALOT_RETURN_IF_ERROR(Assign(*stmt.target, value));
  Leave(stmt.scope);
  return OkStatus();
}

Status Interpreter::ExecFilterBlock(const Stmt& stmt) {
  Enter(stmt.scope);
  Capture capture(this);
  CACHALOT_RETURN_IF_ERROR(ExecBody(stmt.body));
  if (flow_ != Flow::kNext) return OkStatus();
  block_input_ = Str(capture.Take());
  CACHALOT_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.expr));
  CACHALOT_RETURN_IF_ERROR(EmitBlock(value));
  Leave(stmt.scope);
  return OkStatus();
}

Status Interpreter::ExecCallBlock(const Stmt& stmt) {
  const Value caller = MakeMacro(*stmt.macro);
  Value result;
  if (stmt.expr) {
    CACHALOT_ASSIGN_OR_RETURN(result, EvalCall(*stmt.expr, caller));
  } else {
    CACHALOT_ASSIGN_OR_RETURN(result, Call(caller, {}));
  }
  return EmitBlock(result);
}

Status Interpreter::ExecWith(const Stmt& stmt) {
  Enter(stmt.scope);
  for (size_t i = 0; i < stmt.targets.size(); ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.exprs[i]));
    CACHALOT_RETURN_IF_ERROR(Assign(*stmt.targets[i], value));
  }
  CACHALOT_RETURN_IF_ERROR(ExecBody(stmt.body));
  Leave(stmt.scope);
  return OkStatus();
}

Status Interpreter::ExecFor(const Loop& loop) {
  CACHALOT_ASSIGN_OR_RETURN(const Value iterable, Eval(*loop.iterable));
  if (!loop.recursive) return RunLoop(loop, iterable, 0);
  std::string text;
  {
    frame_->captured = true;
    const FrameGuard frame(this, frame_, loop.function.slots);
    Capture capture(this);
    CACHALOT_RETURN_IF_ERROR(RunLoop(loop, iterable, 0));
    text = capture.Take();
  }
  return Emit(text);
}

Result<Value> Interpreter::CallLoop(const LoopObject& caller, const Value& iterable) {
  if (caller.recursive == nullptr) {
    return Invalid("The loop must have the 'recursive' marker to be called recursively.");
  }
  const FrameGuard frame(this, caller.closure, caller.recursive->function.slots);
  Capture capture(this);
  CACHALOT_RETURN_IF_ERROR(RunLoop(*caller.recursive, iterable, caller.depth0 + 1));
  return Str(capture.Take());
}

Status Interpreter::RunLoop(const Loop& loop, const Value& iterable, int depth0) {
  Value source = iterable;
  if (loop.test) {
    Activation* test_parent = loop.recursive ? frame_->parent : frame_;
    Activation* current = std::exchange(frame_, test_parent);
    source = Make<LoopFilter>(Kind::kIterator, this, &loop, iterable);
    frame_ = current;
  }
  CACHALOT_ASSIGN_OR_RETURN(const Value iterator, Iterate(*this, source));
  const Value loop_value = Make<LoopObject>(Kind::kLoop, source, iterator, depth0);
  LoopObject* state = loop_value.as<LoopObject>();
  if (loop.recursive) {
    state->recursive = &loop;
    state->closure = frame_->parent;
  }
  bool any = false;
  const Status status = RunLoopBody(loop, state, loop_value, &any);
  if (!loop.recursive || !loop.otherwise.empty()) Leave(loop.scope);
  // What the loop was over is not needed any more, even if the template has kept the loop itself.
  state->iterable = state->iterator = Value();
  if (state->is_shared()) heap()->Register(loop_value);
  CACHALOT_RETURN_IF_ERROR(status);
  if (any || loop.otherwise.empty()) return OkStatus();
  Enter(loop.else_scope);
  CACHALOT_RETURN_IF_ERROR(ExecBody(loop.otherwise));
  Leave(loop.else_scope);
  return OkStatus();
}

Status Interpreter::RunLoopBody(const Loop& loop, LoopObject* state, const Value& loop_value, bool* any) {
  while (true) {
    CACHALOT_ASSIGN_OR_RETURN(const bool more, state->Advance(*this));
    if (!more) return OkStatus();
    CACHALOT_RETURN_IF_ERROR(Assign(*loop.target, state->current));
    if (loop.extended) frame_->slots[loop.loop_slot] = loop_value;
    Enter(loop.scope);
    CACHALOT_RETURN_IF_ERROR(ExecBody(loop.body));
    const Flow flow = std::exchange(flow_, Flow::kNext);
    if (flow == Flow::kBreak) return OkStatus();
    // As in Jinja, an iteration that ends with continue does not keep the else branch from running.
    if (flow == Flow::kNext) *any = true;
  }
}

Value Interpreter::MakeMacro(const Macro& macro) {
  frame_->captured = true;
  return Make<MacroObject>(Kind::kMacro, &macro, frame_);
}

Status Interpreter::CheckNamespaces(const Expr& target) {
  if (target.kind == ExprKind::kNsRef && !Slot(target.slot).is(Kind::kNamespace)) {
    return Invalid("cannot assign attribute on non-namespace object");
  }
  for (const ExprPtr& item : target.items) CACHALOT_RETURN_IF_ERROR(CheckNamespaces(*item));
  return OkStatus();
}

Status Interpreter::Assign(const Expr& target, const Value& value) {
  if (target.kind == ExprKind::kName) {
    Slot(target.slot) = value;
    return OkStatus();
  }
  if (target.kind == ExprKind::kNsRef) {
    const Value object = Slot(target.slot);
    if (!object.is(Kind::kNamespace)) return Invalid("cannot assign attribute on non-namespace object");
    object.as<NamespaceObject>()->Set(*this, target.attribute, value);
    return OkStatus();
  }
  if (!IsIterable(value)) return Invalid(fmt::format("cannot unpack non-iterable {} object", TypeName(value)));
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<Value> parts, ToVector(*this, value));
  if (parts.size() != target.items.size()) {
    return Invalid(fmt::format("{} values to unpack (expected {})",
                               parts.size() < target.items.size() ? "not enough" : "too many", target.items.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) CACHALOT_RETURN_IF_ERROR(Assign(*target.items[i], parts[i]));
  return OkStatus();
}

Result<Value> Interpreter::Call(const Value& callee, Arguments arguments) {
  switch (callee.kind()) {
    case Kind::kFunction: return CallBuiltin(*this, *callee.function(), Value::None(), std::move(arguments));
    case Kind::kMethod: {
      const MethodObject& method = *callee.as<MethodObject>();
      return CallBuiltin(*this, *method.method, method.self, std::move(arguments));
    }
    case Kind::kMacro: {
      const MacroObject& macro = *callee.as<MacroObject>();
      return CallMacro(*macro.macro, macro.closure, std::move(arguments));
    }
    case Kind::kLoop:
      if (arguments.positional.size() != 1 || !arguments.keywords.empty()) return Invalid("loop() takes one argument");
      return CallLoop(*callee.as<LoopObject>(), arguments.positional[0]);
    case Kind::kJoiner: {
      if (!arguments.positional.empty() || !arguments.keywords.empty()) return Invalid("joiner() takes no arguments");
      JoinerObject& joiner = *callee.as<JoinerObject>();
      return std::exchange(joiner.used, true) ? joiner.separator : Str({});
    }
    case Kind::kUndefined: return UndefinedError(callee);
    default: return Invalid(fmt::format("'{}' object is not callable", TypeName(callee)));
  }
}

namespace {

// Takes the keyword argument of that name; kMissing when it was not given.
Value TakeKeyword(Arguments* arguments, std::string_view name) {
  const auto found =
      std::ranges::find_if(arguments->keywords, [&](const auto& keyword) { return keyword.first == name; });
  if (found == arguments->keywords.end()) return Value();
  Value value = std::move(found->second);
  arguments->keywords.erase(found);
  return value;
}

}  // namespace

// Puts arguments into the slots of the current frame, the macro's own.
Status Interpreter::BindMacroArguments(const Macro& macro, Arguments* arguments) {
  std::vector<Value>& slots = frame_->slots;
  const size_t given = std::min(arguments->positional.size(), macro.params.size());
  for (size_t i = 0; i < macro.params.size(); ++i) {
    slots[macro.params[i]->slot.index] =
        i < given ? arguments->positional[i] : TakeKeyword(arguments, macro.params[i]->text);
  }
  if (macro.uses_caller && !macro.caller_is_param) {
    Value caller = TakeKeyword(arguments, "caller");
    if (caller.missing() || caller.is(Kind::kNone)) caller = Undefined("No caller defined");
    slots[macro.caller_slot] = std::move(caller);
  }
  if (macro.uses_kwargs) {
    Dict rest;
    for (auto& [name, value] : arguments->keywords) rest.SetText(*this, name, std::move(value));
    slots[macro.kwargs_slot] = MakeDict(std::move(rest));
  } else if (!arguments->keywords.empty()) {
    return Invalid(fmt::format("macro '{}' takes no keyword argument '{}'", macro.name, arguments->keywords[0].first));
  }
  if (macro.uses_varargs) {
    slots[macro.varargs_slot] =
        Tuple({arguments->positional.begin() + static_cast<ptrdiff_t>(given), arguments->positional.end()});
  } else if (arguments->positional.size() > macro.params.size()) {
    return Invalid(fmt::format("macro '{}' takes not more than {} argument(s)", macro.name, macro.params.size()));
  }
  return OkStatus();
}

Result<Value> Interpreter::CallMacro(const Macro& macro, Activation* closure, Arguments arguments) {
  const FrameGuard frame(this, closure, macro.function.slots);
  CACHALOT_RETURN_IF_ERROR(BindMacroArguments(macro, &arguments));
  Enter(macro.function.scope);
  const size_t first_default = macro.params.size() - macro.defaults.size();
  for (size_t i = 0; i < macro.params.size(); ++i) {
    const uint32_t slot = macro.params[i]->slot.index;
    if (!frame_->slots[slot].missing()) continue;
    if (i < first_default) {
      frame_->slots[slot] = Undefined(fmt::format("parameter {} was not provided", StrRepr(macro.params[i]->text)));
    } else {
      CACHALOT_ASSIGN_OR_RETURN(Value value, Eval(*macro.defaults[i - first_default]));
      frame_->slots[slot] = std::move(value);
    }
  }
  Capture capture(this);
  CACHALOT_RETURN_IF_ERROR(ExecBody(macro.body));
  return Str(capture.Take());
}

}  // namespace cachalot::text::jinja
