#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

// The element `index` of a value with a length, in iteration order; strings are walked by TextIterator instead.
Value ElementAt(Runtime& rt, const Value& value, int64_t index) {
  const auto at = static_cast<size_t>(index);
  switch (value.kind()) {
    case Kind::kList:
    case Kind::kTuple: return value.items()[at];
    case Kind::kDict: return value.dict().entries()[at].key;
    case Kind::kDictView: {
      const DictViewObject& view = *value.as<DictViewObject>();
      const Dict::Entry& entry = view.dict.dict().entries()[at];
      if (view.part == DictViewObject::Part::kKeys) return entry.key;
      if (view.part == DictViewObject::Part::kValues) return entry.value;
      return rt.Tuple({entry.key, entry.value});
    }
    case Kind::kRange: return Value::Int(value.as<RangeObject>()->At(index));
    default: return Value();
  }
}

class ElementIterator final : public IteratorObject {
 public:
  ElementIterator(Heap* heap, Value source, bool reversed)
      : IteratorObject(heap, 0, source.depth() + 1),
        source_(std::move(source)),
        length_(LengthOf(source_).value_or(0)),
        reversed_(reversed) {}

  Result<bool> Next(Runtime& rt, Value* out) override {
    CACHALOT_RETURN_IF_ERROR(rt.Tick());
    if (position_ >= length_) return false;
    const int64_t index = reversed_ ? length_ - 1 - position_ : position_;
    ++position_;
    *out = ElementAt(rt, source_, index);
    return true;
  }

 private:
  Value source_;
  int64_t length_;
  int64_t position_ = 0;
  bool reversed_;
};

class TextIterator final : public IteratorObject {
 public:
  TextIterator(Heap* heap, Value source) : IteratorObject(heap, 0, source.depth() + 1), source_(std::move(source)) {}

  Result<bool> Next(Runtime& rt, Value* out) override {
    CACHALOT_RETURN_IF_ERROR(rt.Tick());
    const std::string& text = source_.text();
    if (position_ >= text.size()) return false;
    const uint32_t bytes = DecodeUtf8(text, position_).bytes;
    *out = rt.Str(text.substr(position_, bytes));
    position_ += bytes;
    return true;
  }

 private:
  Value source_;
  size_t position_ = 0;
};

}  // namespace

std::optional<int64_t> LengthOf(const Value& value) {
  const auto size = [](size_t n) { return static_cast<int64_t>(n); };
  switch (value.kind()) {
    case Kind::kUndefined: return 0;
    case Kind::kStr: return size(value.as<StrObject>()->chars());
    case Kind::kList:
    case Kind::kTuple: return size(value.items().size());
    case Kind::kDict: return size(value.dict().entries().size());
    case Kind::kDictView: return size(value.as<DictViewObject>()->dict.dict().entries().size());
    case Kind::kRange: return value.as<RangeObject>()->length;
    default: return std::nullopt;
  }
}

bool IsIterable(const Value& value) {
  return value.is(Kind::kIterator) || value.is(Kind::kLoop) || LengthOf(value).has_value();
}

Result<Value> Iterate(Runtime& rt, const Value& value) {
  if (value.is(Kind::kIterator)) return value;
  if (value.is(Kind::kStr)) return rt.Make<TextIterator>(Kind::kIterator, value);
  if (LengthOf(value)) return rt.Make<ElementIterator>(Kind::kIterator, value, false);
  return Invalid(fmt::format("'{}' object is not iterable", TypeName(value)));
}

Result<Value> IterateReversed(Runtime& rt, const Value& value) {
  if (value.is(Kind::kStr)) {
    CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> characters, ToVector(rt, value));
    return rt.Make<ElementIterator>(Kind::kIterator, rt.List(std::move(characters)), true);
  }
  if (LengthOf(value)) return rt.Make<ElementIterator>(Kind::kIterator, value, true);
  return Invalid(fmt::format("'{}' object is not reversible", TypeName(value)));
}

Result<std::vector<Value>> Drain(Runtime& rt, const Value& iterator) {
  std::vector<Value> items;
  Value item;
  while (true) {
    CACHALOT_ASSIGN_OR_RETURN(const bool more, iterator.as<IteratorObject>()->Next(rt, &item));
    if (!more) return items;
    if ((items.size() & 1023) == 0) CACHALOT_RETURN_IF_ERROR(rt.CanGrow(items.size() * sizeof(Value)));
    items.push_back(std::move(item));
  }
}

Result<std::vector<Value>> ToVector(Runtime& rt, const Value& value) {
  if (value.is_sequence()) {
    CACHALOT_RETURN_IF_ERROR(rt.Tick(1 + value.items().size() / 8));
    return value.items();
  }
  CACHALOT_ASSIGN_OR_RETURN(const Value iterator, Iterate(rt, value));
  return Drain(rt, iterator);
}

std::string_view CharRange(const StrObject& text, size_t first, size_t last) {
  const std::string_view view = text.text;
  if (first >= last) return {};
  if (text.is_ascii()) return view.substr(first, last - first);
  const size_t start = CharOffset(view, first);
  return view.substr(start, CharOffset(view.substr(start), last - first));
}

std::string_view CharAt(const StrObject& text, size_t index) { return CharRange(text, index, index + 1); }

}  // namespace cachalot::text::jinja
