#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_sequence.h"

namespace cachalot::text::jinja {
namespace {

int DepthOf(const Value& source, const Arguments& arguments) {
  int depth = source.depth();
  for (const Value& value : arguments.positional) depth = std::max(depth, value.depth());
  for (const auto& [name, value] : arguments.keywords) depth = std::max(depth, value.depth());
  return depth + 1;
}

// A filter or test that is named by a value, with its arguments.
struct NamedCall {
  const Builtin* builtin = nullptr;
  Arguments arguments;

  Result<Value> Run(Runtime& rt, const Value& item) const { return CallBuiltin(rt, *builtin, item, arguments); }
};

// arguments[first] is the name, those after it and the keywords are what the builtin gets.
Result<NamedCall> MakeNamedCall(bool is_filter, const Arguments& arguments, size_t first) {
  const Value& name = arguments.positional[first];
  const char* kind = is_filter ? "filter" : "test";
  if (name.is(Kind::kUndefined)) {
    return Invalid(fmt::format("No {} named Undefined. ({}; did you forget to quote the callable name?)", kind,
                               UndefinedError(name).message()));
  }
  NamedCall call;
  if (name.is(Kind::kStr)) call.builtin = is_filter ? FindFilter(name.text()) : FindTest(name.text());
  if (call.builtin == nullptr) {
    return Invalid(fmt::format("No {} named '{}'.", kind, name.is(Kind::kStr) ? name.text() : TypeName(name)));
  }
  call.arguments = arguments;
  call.arguments.positional.erase(call.arguments.positional.begin(),
                                  call.arguments.positional.begin() + static_cast<ptrdiff_t>(first) + 1);
  return call;
}

// Walks a source lazily: nothing is looked at before the first item is asked for.
class LazyIterator : public IteratorObject {
 public:
  LazyIterator(Heap* heap, Value source, Arguments arguments)
      : IteratorObject(heap, arguments.positional.size() * sizeof(Value), DepthOf(source, arguments)),
        arguments_(std::move(arguments)),
        source_(std::move(source)) {}

  Result<bool> Next(Runtime& rt, Value* out) final {
    CACHALOT_RETURN_IF_ERROR(rt.Tick());
    if (!started_) {
      started_ = true;
      if (!StartsEmpty()) {
        CACHALOT_RETURN_IF_ERROR(Start(rt));
        CACHALOT_ASSIGN_OR_RETURN(walker_, Iterate(rt, source_));
      }
    }
    if (walker_.missing()) return false;
    CACHALOT_ASSIGN_OR_RETURN(const bool more, Produce(rt, out));
    if (!more) walker_ = Value();
    return more;
  }

 protected:
  // Whether Python would not even check the arguments.
  virtual bool StartsEmpty() const { return !Truth(source_); }
  virtual Status Start(Runtime& rt) = 0;
  virtual Result<bool> Produce(Runtime& rt, Value* out) = 0;
  Result<bool> NextOfSource(Runtime& rt, Value* out) { return walker_.as<IteratorObject>()->Next(rt, out); }
  const Value& source() const { return source_; }

  Arguments arguments_;

 private:
  Value source_;
  Value walker_;
  bool started_ = false;
};

class MapIterator final : public LazyIterator {
 public:
  using LazyIterator::LazyIterator;

 private:
  Status Start(Runtime& rt) override {
    auto& keywords = arguments_.keywords;
    const auto is_attribute = [](const auto& keyword) { return keyword.first == "attribute"; };
    if (arguments_.positional.empty() && std::ranges::any_of(keywords, is_attribute)) {
      for (const auto& [name, value] : keywords) {
        if (name == "attribute") {
          path_ = SplitPath(rt, value);
        } else if (name == "default") {
          fallback_ = value;
        } else {
          return Invalid(fmt::format("Unexpected keyword argument '{}'", name));
        }
      }
      return OkStatus();
    }
    if (arguments_.positional.empty()) return Invalid("map requires a filter argument");
    CACHALOT_ASSIGN_OR_RETURN(call_, MakeNamedCall(true, arguments_, 0));
    return OkStatus();
  }

  Result<bool> Produce(Runtime& rt, Value* out) override {
    Value item;
    CACHALOT_ASSIGN_OR_RETURN(const bool more, NextOfSource(rt, &item));
    if (!more) return false;
    if (call_.builtin != nullptr) {
      CACHALOT_ASSIGN_OR_RETURN(*out, call_.Run(rt, item));
    } else {
      CACHALOT_ASSIGN_OR_RETURN(*out, FollowPath(rt, std::move(item), path_, fallback_));
    }
    return true;
  }

  NamedCall call_;
  AttributePath path_;
  Value fallback_;
};

class SelectIterator final : public LazyIterator {
 public:
  SelectIterator(Heap* heap, Value source, Arguments arguments, bool by_attribute, bool keep)
      : LazyIterator(heap, std::move(source), std::move(arguments)), by_attribute_(by_attribute), keep_(keep) {}

 private:
  Status Start(Runtime& rt) override {
    const size_t test_at = by_attribute_ ? 1 : 0;
    if (by_attribute_) {
      if (arguments_.positional.empty()) return Invalid("Missing parameter for attribute name");
      path_ = SplitPath(rt, arguments_.positional[0]);
    }
    if (arguments_.positional.size() <= test_at) return OkStatus();
    CACHALOT_ASSIGN_OR_RETURN(call_, MakeNamedCall(false, arguments_, test_at));
    return OkStatus();
  }

  Result<bool> Produce(Runtime& rt, Value* out) override {
    while (true) {
      CACHALOT_ASSIGN_OR_RETURN(const bool more, NextOfSource(rt, out));
      if (!more) return false;
      CACHALOT_ASSIGN_OR_RETURN(Value tested, FollowPath(rt, *out, path_, {}));
      if (call_.builtin != nullptr) {
        CACHALOT_ASSIGN_OR_RETURN(tested, call_.Run(rt, tested));
      }
      if (Truth(tested) == keep_) return true;
    }
  }

  bool by_attribute_, keep_;
  AttributePath path_;
  NamedCall call_;
};

class UniqueIterator final : public LazyIterator {
 public:
  using LazyIterator::LazyIterator;

 private:
  bool StartsEmpty() const override { return false; }
  Status Start(Runtime& rt) override {
    path_ = SplitPath(rt, arguments_.positional[1]);
    return OkStatus();
  }

  Result<bool> Produce(Runtime& rt, Value* out) override {
    while (true) {
      CACHALOT_ASSIGN_OR_RETURN(const bool more, NextOfSource(rt, out));
      if (!more) return false;
      CACHALOT_ASSIGN_OR_RETURN(Value key, FollowPath(rt, *out, path_, {}));
      CACHALOT_ASSIGN_OR_RETURN(key, SortKey(rt, key, Truth(arguments_.positional[0])));
      CACHALOT_ASSIGN_OR_RETURN(const Value* seen, seen_.Find(rt, key));
      if (seen != nullptr) continue;
      ChargeMore(sizeof(Dict::Entry) + 64);
      CACHALOT_RETURN_IF_ERROR(seen_.Set(rt, std::move(key), Value::None()));
      return true;
    }
  }

  AttributePath path_;
  Dict seen_;
};

class BatchIterator final : public LazyIterator {
 public:
  using LazyIterator::LazyIterator;

 private:
  bool StartsEmpty() const override { return false; }
  Status Start(Runtime&) override { return OkStatus(); }

  Result<bool> Produce(Runtime& rt, Value* out) override {
    const Value& size = arguments_.positional[0];
    const Value& fill = arguments_.positional[1];
    std::vector<Value> batch;
    if (!held_.missing()) batch.push_back(std::exchange(held_, Value()));
    while (true) {
      Value item;
      CACHALOT_ASSIGN_OR_RETURN(const bool more, NextOfSource(rt, &item));
      if (!more) break;
      CACHALOT_ASSIGN_OR_RETURN(const bool full, Equals(rt, Value::Int(static_cast<int64_t>(batch.size())), size));
      if (full) {
        held_ = std::move(item);
        *out = rt.List(std::move(batch));
        return true;
      }
      batch.push_back(std::move(item));
    }
    if (batch.empty()) return false;
    if (!fill.missing() && !fill.is(Kind::kNone)) CACHALOT_RETURN_IF_ERROR(FillUp(rt, size, fill, &batch));
    *out = rt.List(std::move(batch));
    return true;
  }

  Status FillUp(Runtime& rt, const Value& size, const Value& fill, std::vector<Value>* batch) {
    if (!size.is_integral()) return Invalid("batch needs a whole number");
    const int64_t missing = size.integer() - static_cast<int64_t>(batch->size());
    if (missing <= 0) return OkStatus();
    const size_t count = static_cast<size_t>(missing);
    CACHALOT_RETURN_IF_ERROR(rt.CanGrow(count > SIZE_MAX / sizeof(Value) ? SIZE_MAX : count * sizeof(Value)));
    CACHALOT_RETURN_IF_ERROR(rt.Tick(count));
    batch->insert(batch->end(), count, fill);
    return OkStatus();
  }

  Value held_;  // first of the next batch
};

class SliceIterator final : public LazyIterator {
 public:
  using LazyIterator::LazyIterator;

 private:
  bool StartsEmpty() const override { return false; }
  Status Start(Runtime& rt) override {
    CACHALOT_ASSIGN_OR_RETURN(items_, ToVector(rt, source()));
    ChargeMore(items_.size() * sizeof(Value));
    const Value& slices = arguments_.positional[0];
    if (!slices.is_integral()) return Invalid("slice needs a whole number");
    slices_ = slices.integer();
    if (slices_ == 0) return Invalid("integer division or modulo by zero");
    return OkStatus();
  }

  Result<bool> Produce(Runtime& rt, Value* out) override {
    if (number_ >= slices_) return false;
    const int64_t length = static_cast<int64_t>(items_.size());
    const int64_t per_slice = length / slices_;
    const int64_t with_extra = length % slices_;
    const int64_t start = number_ * per_slice + std::min(number_, with_extra);
    const int64_t end = start + per_slice + (number_ < with_extra ? 1 : 0);
    CACHALOT_RETURN_IF_ERROR(rt.Tick(1 + static_cast<uint64_t>(end - start)));
    std::vector<Value> slice(items_.begin() + start, items_.begin() + end);
    const Value& fill = arguments_.positional[1];
    if (!fill.missing() && !fill.is(Kind::kNone) && number_ >= with_extra) slice.push_back(fill);
    ++number_;
    *out = rt.List(std::move(slice));
    return true;
  }

  std::vector<Value> items_;
  int64_t slices_ = 0;
  int64_t number_ = 0;
};

class ItemsIterator final : public LazyIterator {
 public:
  using LazyIterator::LazyIterator;

 private:
  bool StartsEmpty() const override { return source().is(Kind::kUndefined); }
  Status Start(Runtime& rt) override {
    if (!source().is(Kind::kDict)) return Invalid("Can only get item pairs from a mapping.");
    CACHALOT_ASSIGN_OR_RETURN(
        pairs_, Iterate(rt, rt.Make<DictViewObject>(Kind::kDictView, source(), DictViewObject::Part::kItems)));
    return OkStatus();
  }
  Result<bool> Produce(Runtime& rt, Value* out) override { return pairs_.as<IteratorObject>()->Next(rt, out); }

  Value pairs_;
};

template <class Iterator>
Result<Value> Lazy(Runtime& rt, CallInput in) {
  return rt.Make<Iterator>(Kind::kIterator, in.self, std::move(in.arguments));
}

template <bool by_attribute, bool keep>
Result<Value> Select(Runtime& rt, CallInput in) {
  return rt.Make<SelectIterator>(Kind::kIterator, in.self, std::move(in.arguments), by_attribute, keep);
}

}  // namespace

std::span<const Builtin> LazyFilters() {
  static constexpr Builtin kTable[] = {
      {"map", Lazy<MapIterator>, kAnyArguments},
      {"select", Select<false, true>, kAnyArguments},
      {"reject", Select<false, false>, kAnyArguments},
      {"selectattr", Select<true, true>, kAnyArguments},
      {"rejectattr", Select<true, false>, kAnyArguments},
      {"unique", Lazy<UniqueIterator>, 0, {"case_sensitive", "attribute"}},
      {"batch", Lazy<BatchIterator>, 1, {"linecount", "fill_with"}},
      {"slice", Lazy<SliceIterator>, 1, {"slices", "fill_with"}},
      {"items", Lazy<ItemsIterator>},
  };
  return kTable;
}

}  // namespace cachalot::text::jinja
