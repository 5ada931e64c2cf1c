// Symbols are the names that one scope of a template loads and stores, and where their values live.
// Threads:   one resolve, one thread.
// Ownership: holds pointers to enclosing scopes, which outlive it.
// Invariant: a name of a scope has one slot; a scope of the same level and function reuses the slot of an earlier one.
// Cost:      a look-up is logarithmic in the names of a scope, times the scopes around it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "text/jinja_ast.h"

namespace cachalot::text::jinja {

// The slots of one function's frame.
struct FunctionScope {
  const FunctionScope* parent = nullptr;
  std::map<std::pair<int, std::string>, uint32_t> slots = {};  // by nesting level and name

  uint32_t Slot(int level, const std::string& name) {
    return slots.try_emplace({level, name}, static_cast<uint32_t>(slots.size())).first->second;
  }
};

struct SlotTarget {
  const FunctionScope* function = nullptr;
  uint32_t index = 0;
};

class Symbols {
 public:
  Symbols(const Symbols* parent, FunctionScope* function)
      : parent_(parent), base_(nullptr), function_(function), level_(parent == nullptr ? 0 : parent->level_ + 1) {}

  // A scope for one branch of an `if`, whose changes Merge brings back.
  Symbols Branch() const { return Symbols(this); }
  void Merge(std::initializer_list<const Symbols*> branches);

  void Load(const std::string& name);
  void Store(const std::string& name);
  SlotTarget DeclareParameter(const std::string& name);
  std::optional<SlotTarget> FindRef(const std::string& name) const;
  bool DidStore(const std::string& name) const;

  FunctionScope* function() const { return function_; }
  // What entering and leaving the scope does.
  Scope MakeScope() const;

 private:
  enum class Kind : uint8_t { kParameter, kResolve, kAlias, kUndefined };
  struct Entry {
    Kind kind = Kind::kUndefined;
    SlotTarget source = {};  // kAlias
    std::string name = {};   // kResolve
  };

  explicit Symbols(const Symbols* base)
      : parent_(base->parent_), base_(base), function_(base->function_), level_(base->level_) {}

  bool HasRef(const std::string& name) const;
  SlotTarget Define(const std::string& name, Entry entry);

  const Symbols* parent_;
  const Symbols* base_;  // of a branch: the scope it belongs to
  FunctionScope* function_;
  int level_;
  std::map<std::string, SlotTarget> refs_;
  std::map<uint32_t, Entry> loads_;  // by slot
  std::set<std::string> stores_;
};

// How many functions out of `from` the slot lies, and its index there.
SlotRef RelativeSlot(const FunctionScope* from, const SlotTarget& target);

}  // namespace cachalot::text::jinja
