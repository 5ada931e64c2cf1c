#include "text/jinja_symbols.h"

namespace cachalot::text::jinja {

SlotRef RelativeSlot(const FunctionScope* from, const SlotTarget& target) {
  SlotRef ref{0, target.index};
  for (; from != target.function; from = from->parent) ++ref.up;
  return ref;
}

bool Symbols::HasRef(const std::string& name) const {
  return refs_.contains(name) || (base_ != nullptr && base_->HasRef(name));
}

bool Symbols::DidStore(const std::string& name) const {
  return stores_.contains(name) || (base_ != nullptr && base_->DidStore(name));
}

std::optional<SlotTarget> Symbols::FindRef(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr; scope = scope->parent_) {
    for (const Symbols* layer = scope; layer != nullptr; layer = layer->base_) {
      if (const auto found = layer->refs_.find(name); found != layer->refs_.end()) return found->second;
    }
  }
  return std::nullopt;
}

SlotTarget Symbols::Define(const std::string& name, Entry entry) {
  const SlotTarget target{function_, function_->Slot(level_, name)};
  refs_[name] = target;
  loads_[target.index] = std::move(entry);
  return target;
}

void Symbols::Load(const std::string& name) {
  if (!FindRef(name)) Define(name, {.kind = Kind::kResolve, .name = name});
}

void Symbols::Store(const std::string& name) {
  stores_.insert(name);
  if (HasRef(name)) return;
  const std::optional<SlotTarget> outer = parent_ == nullptr ? std::nullopt : parent_->FindRef(name);
  Define(name, outer ? Entry{.kind = Kind::kAlias, .source = *outer} : Entry{.kind = Kind::kUndefined});
}

SlotTarget Symbols::DeclareParameter(const std::string& name) {
  stores_.insert(name);
  return Define(name, {.kind = Kind::kParameter});
}

void Symbols::Merge(std::initializer_list<const Symbols*> branches) {
  std::set<std::string> new_stores;
  for (const Symbols* branch : branches) {
    for (const std::string& name : branch->stores_) {
      if (!DidStore(name)) new_stores.insert(name);
    }
  }
  for (const Symbols* branch : branches) {
    for (const auto& [name, target] : branch->refs_) refs_[name] = target;
    for (const auto& [slot, entry] : branch->loads_) loads_[slot] = entry;
    stores_.insert(branch->stores_.begin(), branch->stores_.end());
  }
  // A name that only some branches set keeps its outer value in the others.
  for (const std::string& name : new_stores) {
    const std::optional<SlotTarget> target = FindRef(name);
    const std::optional<SlotTarget> outer = parent_ == nullptr ? std::nullopt : parent_->FindRef(name);
    loads_[target->index] =
        outer ? Entry{.kind = Kind::kAlias, .source = *outer} : Entry{.kind = Kind::kResolve, .name = name};
  }
}

Scope Symbols::MakeScope() const {
  Scope scope;
  for (const auto& [slot, entry] : loads_) {
    scope.leave.push_back(slot);
    switch (entry.kind) {
      case Kind::kParameter: break;
      case Kind::kResolve:
        scope.enter.push_back({.action = ScopeEntry::Action::kResolve, .slot = slot, .name = entry.name});
        break;
      case Kind::kAlias:
        scope.enter.push_back(
            {.action = ScopeEntry::Action::kAlias, .slot = slot, .source = RelativeSlot(function_, entry.source)});
        break;
      case Kind::kUndefined: scope.enter.push_back({.action = ScopeEntry::Action::kClear, .slot = slot}); break;
    }
  }
  return scope;
}

}  // namespace cachalot::text::jinja
