#include "text/jinja_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "text/jinja_builtins.h"
#include "text/jinja_symbols.h"

namespace cachalot::text::jinja {
namespace {

// Calls f(child) for each direct child of an expression.
template <class F>
void ForEachChild(const Expr& expr, F&& f) {
  for (const ExprPtr& item : expr.items) {
    if (item) f(*item);
  }
  for (const Keyword& keyword : expr.keywords) f(*keyword.value);
  if (expr.star_args) f(*expr.star_args);
  if (expr.star_keywords) f(*expr.star_keywords);
}

// Finds which of some names a body reads before it stores them, nested bodies included.
class UndeclaredFinder {
 public:
  explicit UndeclaredFinder(std::set<std::string> names) : names_(std::move(names)) {}

  const std::set<std::string>& Run(const Body& body) {
    Visit(body);
    return found_;
  }

 private:
  void Visit(const Expr* expr) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::kName) {
      if (expr->is_store) {
        names_.erase(expr->text);
      } else if (names_.contains(expr->text)) {
        found_.insert(expr->text);
      }
      return;
    }
    ForEachChild(*expr, [&](const Expr& child) { Visit(&child); });
  }
  void Visit(const std::vector<ExprPtr>& exprs) {
    for (const ExprPtr& expr : exprs) Visit(expr.get());
  }
  void Visit(const Body& body) {
    for (const StmtPtr& stmt : body) Visit(*stmt);
  }

  void Visit(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kFor:
        Visit(stmt.loop->target.get());
        Visit(stmt.loop->iterable.get());
        Visit(stmt.loop->body);
        Visit(stmt.loop->otherwise);
        Visit(stmt.loop->test.get());
        return;
      case StmtKind::kIf:
        for (size_t i = 0; i < stmt.branches.size(); ++i) {
          if (i < stmt.exprs.size()) Visit(stmt.exprs[i].get());
          Visit(stmt.branches[i]);
        }
        return;
      case StmtKind::kMacro:
      case StmtKind::kCallBlock:
        Visit(stmt.expr.get());
        Visit(stmt.macro->params);
        Visit(stmt.macro->defaults);
        Visit(stmt.macro->body);
        return;
      case StmtKind::kFilterBlock:
        Visit(stmt.body);
        Visit(stmt.expr.get());
        return;
      default:
        Visit(stmt.target.get());
        Visit(stmt.targets);
        Visit(stmt.exprs);
        Visit(stmt.expr.get());
        Visit(stmt.body);
    }
  }

  std::set<std::string> names_;
  std::set<std::string> found_;
};

// First pass over a scope: which names it loads and stores, in the order of the text. Bodies with a scope of their
// own are not entered.
class Analyzer {
 public:
  explicit Analyzer(Symbols* symbols) : symbols_(symbols) {}

  void Loads(const Expr* expr) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::kName || expr->kind == ExprKind::kNsRef) {
      symbols_->Load(expr->text);
      return;
    }
    ForEachChild(*expr, [&](const Expr& child) { Loads(&child); });
  }
  void Loads(const std::vector<ExprPtr>& exprs) {
    for (const ExprPtr& expr : exprs) Loads(expr.get());
  }
  void Stores(const Expr& target) {
    if (target.kind == ExprKind::kName) symbols_->Store(target.text);
    if (target.kind == ExprKind::kNsRef) symbols_->Load(target.text);
    for (const ExprPtr& item : target.items) Stores(*item);
  }
  void Parameters(const Expr& target) {
    if (target.kind == ExprKind::kName) symbols_->DeclareParameter(target.text);
    for (const ExprPtr& item : target.items) Parameters(*item);
  }
  void Visit(const Body& body) {
    for (const StmtPtr& stmt : body) Visit(*stmt);
  }

 private:
  void Visit(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kOutput:
      case StmtKind::kWith: Loads(stmt.exprs); return;
      case StmtKind::kIf: VisitIf(stmt); return;
      case StmtKind::kFor: Loads(stmt.loop->iterable.get()); return;
      case StmtKind::kSet:
        Loads(stmt.expr.get());
        Stores(*stmt.target);
        return;
      case StmtKind::kSetBlock:
      case StmtKind::kMacro: Stores(*stmt.target); return;
      case StmtKind::kCallBlock:
      case StmtKind::kFilterBlock: Loads(stmt.expr.get()); return;
      case StmtKind::kData:
      case StmtKind::kBreak:
      case StmtKind::kContinue: return;
    }
  }

  void VisitIf(const Stmt& stmt) {
    Loads(stmt.exprs[0].get());
    Symbols first = symbols_->Branch();
    Analyzer(&first).Visit(stmt.branches[0]);
    Symbols elifs = symbols_->Branch();
    for (size_t i = 1; i < stmt.exprs.size(); ++i) {
      Analyzer(&elifs).Loads(stmt.exprs[i].get());
      Symbols branch = elifs.Branch();
      Analyzer(&branch).Visit(stmt.branches[i]);
      elifs.Merge({&branch});
    }
    Symbols otherwise = symbols_->Branch();
    if (stmt.branches.size() > stmt.exprs.size()) Analyzer(&otherwise).Visit(stmt.branches.back());
    symbols_->Merge({&first, &elifs, &otherwise});
  }

  Symbols* symbols_;
};

// A target again, without slots.
ExprPtr CloneTarget(const Expr& target) {
  auto copy = std::make_unique<Expr>();
  copy->kind = target.kind;
  copy->is_store = target.is_store;
  copy->line = target.line;
  copy->text = target.text;
  for (const ExprPtr& item : target.items) copy->items.push_back(CloneTarget(*item));
  return copy;
}

const Expr* FindStoreOfLoop(const Expr& target) {
  if (target.kind == ExprKind::kName && target.is_store && target.text == "loop") return &target;
  for (const ExprPtr& item : target.items) {
    if (const Expr* found = FindStoreOfLoop(*item)) return found;
  }
  return nullptr;
}

// Second pass: gives every name its slot, every filter and test its function, and every scope its entries.
class Resolver {
 public:
  struct Frame {
    Symbols* symbols;
    bool is_soft;  // inside an if: unknown filters fail only when they run
    Frame Soft() const { return {symbols, true}; }
  };

  Status Run(Template* tree) {
    FunctionScope* function = NewFunction(nullptr);
    Symbols symbols(nullptr, function);
    Analyzer(&symbols).Visit(tree->body);
    CACHALOT_RETURN_IF_ERROR(Visit(tree->body, {&symbols, false}));
    tree->function = Finish(symbols);
    return OkStatus();
  }

 private:
  FunctionScope* NewFunction(const FunctionScope* parent) {
    functions_.push_back({.parent = parent});
    return &functions_.back();
  }

  static Function Finish(const Symbols& symbols) {
    return {static_cast<uint32_t>(symbols.function()->slots.size()), symbols.MakeScope()};
  }

  Status Bind(Expr* name, const Frame& frame) {
    const std::optional<SlotTarget> target = frame.symbols->FindRef(name->text);
    if (!target) return Invalid(fmt::format("line {}: '{}' cannot be used here", name->line, name->text));
    name->slot = RelativeSlot(frame.symbols->function(), *target);
    return OkStatus();
  }

  Status BindBuiltin(Expr* call, const Frame& frame) {
    const bool is_filter = call->kind == ExprKind::kFilter;
    call->builtin = is_filter ? FindFilter(call->text) : FindTest(call->text);
    if (call->builtin != nullptr || frame.is_soft) return OkStatus();
    if (is_filter && IsKnownFilter(call->text)) {
      return Invalid(
          fmt::format("line {}: the filter '{}' is not supported in chat templates", call->line, call->text));
    }
    return Invalid(fmt::format("line {}: No {} named '{}'.", call->line, is_filter ? "filter" : "test", call->text));
  }

  Status Visit(Expr* expr, const Frame& frame) {
    if (expr == nullptr) return OkStatus();
    if (expr->kind == ExprKind::kName || expr->kind == ExprKind::kNsRef) return Bind(expr, frame);
    if (expr->kind == ExprKind::kFilter || expr->kind == ExprKind::kTest) {
      CACHALOT_RETURN_IF_ERROR(BindBuiltin(expr, frame));
    }
    const Frame inner = expr->kind == ExprKind::kCond ? frame.Soft() : frame;
    for (const ExprPtr& item : expr->items) CACHALOT_RETURN_IF_ERROR(Visit(item.get(), inner));
    for (const Keyword& keyword : expr->keywords) CACHALOT_RETURN_IF_ERROR(Visit(keyword.value.get(), inner));
    CACHALOT_RETURN_IF_ERROR(Visit(expr->star_args.get(), inner));
    return Visit(expr->star_keywords.get(), inner);
  }
  Status Visit(const std::vector<ExprPtr>& exprs, const Frame& frame) {
    for (const ExprPtr& expr : exprs) CACHALOT_RETURN_IF_ERROR(Visit(expr.get(), frame));
    return OkStatus();
  }
  Status Visit(const Body& body, const Frame& frame) {
    for (const StmtPtr& stmt : body) CACHALOT_RETURN_IF_ERROR(Visit(stmt.get(), frame));
    return OkStatus();
  }

  Status Visit(Stmt* stmt, const Frame& frame) {
    switch (stmt->kind) {
      case StmtKind::kOutput: return Visit(stmt->exprs, frame);
      case StmtKind::kIf:
        CACHALOT_RETURN_IF_ERROR(Visit(stmt->exprs, frame.Soft()));
        for (const Body& branch : stmt->branches) CACHALOT_RETURN_IF_ERROR(Visit(branch, frame.Soft()));
        return OkStatus();
      case StmtKind::kFor: return VisitFor(stmt, frame);
      case StmtKind::kSet:
        CACHALOT_RETURN_IF_ERROR(Visit(stmt->expr.get(), frame));
        return Visit(stmt->target.get(), frame);
      case StmtKind::kSetBlock:
      case StmtKind::kFilterBlock: return VisitBuffered(stmt, frame);
      case StmtKind::kMacro:
        CACHALOT_RETURN_IF_ERROR(VisitMacro(stmt->macro.get(), stmt->line, frame));
        return Visit(stmt->target.get(), frame);
      case StmtKind::kCallBlock:
        CACHALOT_RETURN_IF_ERROR(VisitMacro(stmt->macro.get(), stmt->line, frame));
        return Visit(stmt->expr.get(), frame);
      case StmtKind::kWith: return VisitWith(stmt, frame);
      case StmtKind::kData:
      case StmtKind::kBreak:
      case StmtKind::kContinue: return OkStatus();
    }
    return OkStatus();
  }

  // A set or filter block: the body has its own scope, and so has the filter.
  Status VisitBuffered(Stmt* stmt, const Frame& frame) {
    Symbols symbols(frame.symbols, frame.symbols->function());
    Analyzer analyzer(&symbols);
    analyzer.Visit(stmt->body);
    if (stmt->kind == StmtKind::kFilterBlock) analyzer.Loads(stmt->expr.get());
    CACHALOT_RETURN_IF_ERROR(Visit(stmt->body, {&symbols, false}));
    CACHALOT_RETURN_IF_ERROR(Visit(stmt->expr.get(), {&symbols, false}));
    stmt->scope = symbols.MakeScope();
    return Visit(stmt->target.get(), frame);
  }

  Status VisitWith(Stmt* stmt, const Frame& frame) {
    Symbols symbols(frame.symbols, frame.symbols->function());
    Analyzer analyzer(&symbols);
    for (const ExprPtr& target : stmt->targets) analyzer.Parameters(*target);
    analyzer.Visit(stmt->body);
    CACHALOT_RETURN_IF_ERROR(Visit(stmt->exprs, frame));
    CACHALOT_RETURN_IF_ERROR(Visit(stmt->targets, {&symbols, false}));
    CACHALOT_RETURN_IF_ERROR(Visit(stmt->body, {&symbols, false}));
    stmt->scope = symbols.MakeScope();
    return OkStatus();
  }

  Status VisitMacro(Macro* macro, int line, const Frame& frame) {
    Symbols symbols(frame.symbols, NewFunction(frame.symbols->function()));
    const auto analyze = [&] {
      Analyzer analyzer(&symbols);
      for (const ExprPtr& param : macro->params) analyzer.Parameters(*param);
      analyzer.Loads(macro->defaults);
      analyzer.Visit(macro->body);
    };
    analyze();
    const auto is_param = [&](std::string_view name) {
      return std::ranges::any_of(macro->params, [&](const ExprPtr& param) { return param->text == name; });
    };
    const std::set<std::string> used = UndeclaredFinder({"caller", "kwargs", "varargs"}).Run(macro->body);
    macro->uses_caller = used.contains("caller");
    macro->caller_is_param = is_param("caller");
    if (macro->uses_caller && macro->caller_is_param && !HasDefault(*macro, "caller")) {
      return Invalid(
          fmt::format("line {}: When defining macros or call blocks the special \"caller\" argument must be "
                      "omitted or be given a default.",
                      line));
    }
    if (macro->uses_caller && !macro->caller_is_param) macro->caller_slot = symbols.DeclareParameter("caller").index;
    macro->uses_kwargs = used.contains("kwargs") && !is_param("kwargs");
    if (macro->uses_kwargs) macro->kwargs_slot = symbols.DeclareParameter("kwargs").index;
    macro->uses_varargs = used.contains("varargs") && !is_param("varargs");
    if (macro->uses_varargs) macro->varargs_slot = symbols.DeclareParameter("varargs").index;
    analyze();
    const Frame inner{&symbols, false};
    CACHALOT_RETURN_IF_ERROR(Visit(macro->params, inner));
    CACHALOT_RETURN_IF_ERROR(Visit(macro->defaults, inner));
    CACHALOT_RETURN_IF_ERROR(Visit(macro->body, inner));
    macro->function = Finish(symbols);
    return OkStatus();
  }

  static bool HasDefault(const Macro& macro, std::string_view name) {
    for (size_t i = macro.params.size() - macro.defaults.size(); i < macro.params.size(); ++i) {
      if (macro.params[i]->text == name) return true;
    }
    return false;
  }

  // The filter of a loop is a function of its own, which sees the loop's target only.
  Status VisitLoopTest(Loop* loop, const Frame& frame) {
    Symbols symbols(frame.symbols, NewFunction(frame.symbols->function()));
    Analyzer analyzer(&symbols);
    analyzer.Parameters(*loop->target);
    analyzer.Loads(loop->test.get());
    loop->test_target = CloneTarget(*loop->target);
    CACHALOT_RETURN_IF_ERROR(Visit(loop->test_target.get(), {&symbols, false}));
    CACHALOT_RETURN_IF_ERROR(Visit(loop->test.get(), {&symbols, false}));
    loop->test_function = Finish(symbols);
    return OkStatus();
  }

  Status VisitFor(Stmt* stmt, const Frame& frame) {
    Loop* loop = stmt->loop.get();
    CACHALOT_RETURN_IF_ERROR(CheckLoopName(*stmt));
    FunctionScope* function = frame.symbols->function();
    if (loop->recursive) function = NewFunction(function);
    Symbols body(frame.symbols, function);
    Symbols otherwise(frame.symbols, function);
    loop->extended = loop->recursive || UndeclaredFinder({"loop"}).Run(loop->body).contains("loop");
    if (loop->extended) loop->loop_slot = body.DeclareParameter("loop").index;
    Analyzer body_analyzer(&body);
    body_analyzer.Parameters(*loop->target);
    body_analyzer.Visit(loop->body);
    Analyzer(&otherwise).Visit(loop->otherwise);
    if (loop->test) CACHALOT_RETURN_IF_ERROR(VisitLoopTest(loop, frame));
    CACHALOT_RETURN_IF_ERROR(Visit(loop->iterable.get(), frame));
    CACHALOT_RETURN_IF_ERROR(Visit(loop->target.get(), {&body, false}));
    CACHALOT_RETURN_IF_ERROR(Visit(loop->body, {&body, false}));
    CACHALOT_RETURN_IF_ERROR(Visit(loop->otherwise, {&otherwise, false}));
    loop->scope = body.MakeScope();
    loop->else_scope = otherwise.MakeScope();
    if (loop->recursive) loop->function.slots = static_cast<uint32_t>(function->slots.size());
    return OkStatus();
  }

  // `loop` may not be stored anywhere inside a loop.
  static Status CheckLoopName(const Stmt& stmt) {
    const auto check_target = [](const ExprPtr& target) {
      const Expr* found = target ? FindStoreOfLoop(*target) : nullptr;
      if (found == nullptr) return OkStatus();
      return Invalid(fmt::format("line {}: Can't assign to special loop variable in for-loop target", found->line));
    };
    if (stmt.kind != StmtKind::kMacro) CACHALOT_RETURN_IF_ERROR(check_target(stmt.target));
    for (const StmtPtr& inner : stmt.body) CACHALOT_RETURN_IF_ERROR(CheckLoopName(*inner));
    for (const Body& branch : stmt.branches) {
      for (const StmtPtr& inner : branch) CACHALOT_RETURN_IF_ERROR(CheckLoopName(*inner));
    }
    if (stmt.macro) {
      for (const StmtPtr& inner : stmt.macro->body) CACHALOT_RETURN_IF_ERROR(CheckLoopName(*inner));
    }
    if (!stmt.loop) return OkStatus();
    CACHALOT_RETURN_IF_ERROR(check_target(stmt.loop->target));
    for (const StmtPtr& inner : stmt.loop->body) CACHALOT_RETURN_IF_ERROR(CheckLoopName(*inner));
    for (const StmtPtr& inner : stmt.loop->otherwise) CACHALOT_RETURN_IF_ERROR(CheckLoopName(*inner));
    return OkStatus();
  }

  std::deque<FunctionScope> functions_;
};

}  // namespace

Status ResolveNames(Template* tree) {
  CACHALOT_RETURN_IF_ERROR(Resolver().Run(tree));
  return tree->late_error.empty() ? OkStatus() : Invalid(tree->late_error);
}

}  // namespace cachalot::text::jinja
