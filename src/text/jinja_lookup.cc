#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

// Attributes every Python object has; the sandbox keeps templates from them.
constexpr std::string_view kObjectAttributes[] = {
    "__class__",   "__delattr__", "__dir__",           "__doc__",         "__eq__",
    "__format__",  "__ge__",      "__getattribute__",  "__getstate__",    "__gt__",
    "__hash__",    "__init__",    "__init_subclass__", "__le__",          "__lt__",
    "__ne__",      "__new__",     "__reduce__",        "__reduce_ex__",   "__repr__",
    "__setattr__", "__sizeof__",  "__str__",           "__subclasshook__"};
constexpr std::string_view kContainerAttributes[] = {"__contains__", "__getitem__", "__iter__", "__len__"};

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool IsContainer(const Value& value) { return LengthOf(value).has_value(); }

// How messages name the type of what was looked into.
std::string ObjectTypeRepr(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone: return "None";
    case Kind::kNamespace:
    case Kind::kCycler:
    case Kind::kJoiner: return fmt::format("jinja2.utils.{} object", TypeName(value));
    case Kind::kMacro:
    case Kind::kLoop: return fmt::format("jinja2.runtime.{} object", TypeName(value));
    case Kind::kStr: return value.as<StrObject>()->markup ? "markupsafe.Markup object" : "str object";
    default: return fmt::format("{} object", TypeName(value));
  }
}

Result<Value> UndefinedElement(Runtime& rt, const Value& object, const Value& key) {
  if (key.is(Kind::kStr)) {
    return rt.Undefined(fmt::format("{} has no attribute {}", StrRepr(ObjectTypeRepr(object)), StrRepr(key.text())));
  }
  CACHALOT_ASSIGN_OR_RETURN(const std::string repr, ToRepr(rt, key));
  return rt.Undefined(fmt::format("{} has no element {}", ObjectTypeRepr(object), repr));
}

Result<Value> LoopAttribute(Runtime& rt, const Value& value, std::string_view name) {
  LoopObject& loop = *value.as<LoopObject>();
  if (name == "index") return Value::Int(loop.index0 + 1);
  if (name == "index0") return Value::Int(loop.index0);
  if (name == "first") return Value::Bool(loop.index0 == 0);
  if (name == "depth") return Value::Int(loop.depth0 + 1);
  if (name == "depth0") return Value::Int(loop.depth0);
  if (name == "length" || name == "revindex" || name == "revindex0") {
    CACHALOT_ASSIGN_OR_RETURN(const int64_t length, loop.Length(rt));
    return Value::Int(name == "length" ? length : length - loop.index0 - (name == "revindex" ? 0 : 1));
  }
  if (name == "last") {
    CACHALOT_ASSIGN_OR_RETURN(const Value next, loop.Peek(rt));
    return Value::Bool(next.missing());
  }
  if (name == "previtem") {
    return loop.index0 == 0 || loop.before.missing() ? rt.Undefined("there is no previous item") : loop.before;
  }
  if (name == "nextitem") {
    CACHALOT_ASSIGN_OR_RETURN(Value next, loop.Peek(rt));
    return next.missing() ? rt.Undefined("there is no next item") : next;
  }
  return Value();
}

Result<Value> MacroAttribute(Runtime& rt, const Macro& macro, std::string_view name) {
  if (name == "name") return macro.name.empty() ? Value::None() : rt.Str(macro.name);
  if (name == "caller") return Value::Bool(macro.uses_caller);
  if (name == "catch_kwargs") return Value::Bool(macro.uses_kwargs);
  if (name == "catch_varargs") return Value::Bool(macro.uses_varargs);
  if (name == "explicit_caller") return Value::Bool(macro.caller_is_param);
  if (name != "arguments") return Value();
  std::vector<Value> names;
  for (const ExprPtr& param : macro.params) names.push_back(rt.Str(param->text));
  return rt.Tuple(std::move(names));
}

// Properties; kMissing when there is none of that name.
Result<Value> Property(Runtime& rt, const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kBool:
    case Kind::kInt:
      if (name == "real" || name == "numerator") return Value::Int(object.integer());
      if (name == "imag") return Value::Int(0);
      return name == "denominator" ? Value::Int(1) : Value();
    case Kind::kFloat:
      if (name == "real") return object;
      return name == "imag" ? Value::Float(0) : Value();
    case Kind::kTuple:
      if (!object.as<SequenceObject>()->is_group) return Value();
      if (name == "grouper") return object.items()[0];
      return name == "list" ? object.items()[1] : Value();
    case Kind::kRange:
      if (name == "start") return Value::Int(object.as<RangeObject>()->start);
      if (name == "stop") return Value::Int(object.as<RangeObject>()->stop);
      return name == "step" ? Value::Int(object.as<RangeObject>()->step) : Value();
    case Kind::kMacro: return MacroAttribute(rt, *object.as<MacroObject>()->macro, name);
    case Kind::kLoop: return LoopAttribute(rt, object, name);
    case Kind::kCycler: {
      const CyclerObject& cycler = *object.as<CyclerObject>();
      if (name == "current") return cycler.items[cycler.position];
      if (name == "pos") return Value::Int(static_cast<int64_t>(cycler.position));
      return name == "items" ? rt.Tuple(cycler.items) : Value();
    }
    case Kind::kJoiner:
      if (name == "sep") return object.as<JoinerObject>()->separator;
      return name == "used" ? Value::Bool(object.as<JoinerObject>()->used) : Value();
    default: return Value();
  }
}

Value Unsafe(Runtime& rt, const Value& object, std::string_view name) {
  return rt.Undefined(fmt::format("access to attribute {} of '{}' object is unsafe.", StrRepr(name), TypeName(object)));
}

// object[key] for whole-number keys of sequences; nothing when it is out of range.
std::optional<Value> ElementByIndex(Runtime& rt, const Value& object, int64_t index) {
  const int64_t length = LengthOf(object).value_or(0);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  switch (object.kind()) {
    case Kind::kStr: {
      const StrObject& text = *object.as<StrObject>();
      return rt.Str(std::string(CharAt(text, static_cast<size_t>(index))), text.markup);
    }
    case Kind::kRange: return Value::Int(object.as<RangeObject>()->At(index));
    default: return object.items()[static_cast<size_t>(index)];
  }
}

// object[key] as Python's own subscript does; nothing where Python raises a LookupError or TypeError.
Result<std::optional<Value>> Subscript(Runtime& rt, const Value& object, const Value& key) {
  switch (object.kind()) {
    case Kind::kUndefined: return UndefinedError(object);
    case Kind::kDict: {
      CACHALOT_ASSIGN_OR_RETURN(const bool hashable, IsHashable(rt, key));
      if (!hashable) return std::optional<Value>();
      CACHALOT_ASSIGN_OR_RETURN(const Value* found, object.dict().Find(rt, key));
      return found == nullptr ? std::nullopt : std::optional<Value>(*found);
    }
    case Kind::kStr:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      if (!key.is_integral()) return std::optional<Value>();
      if (object.is(Kind::kStr)) CACHALOT_RETURN_IF_ERROR(rt.TickBytes(object.text().size() / 8));
      return ElementByIndex(rt, object, key.integer());
    default: return std::optional<Value>();
  }
}

struct SliceBounds {
  int64_t start, stop, step, count;
};

// A slice index, clamped to the length; `missing` where it is left out.
Result<int64_t> SliceIndex(const Value& value, int64_t missing, int64_t length, int64_t step) {
  if (value.missing() || value.is(Kind::kNone)) return missing;
  if (!value.is_integral()) {
    return Invalid("slice indices must be integers or None or have an __index__ method");
  }
  int64_t index = value.integer();
  if (index < 0) index = index < -length ? -1 : index + length;
  if (index < 0) return step < 0 ? -1 : 0;
  if (index >= length) return step < 0 ? length - 1 : length;
  return index;
}

Result<SliceBounds> Bounds(int64_t length, const Value& start, const Value& stop, const Value& step) {
  int64_t stride = 1;
  if (!step.missing() && !step.is(Kind::kNone)) {
    if (!step.is_integral()) return Invalid("slice indices must be integers or None or have an __index__ method");
    stride = std::clamp<int64_t>(step.integer(), -INT64_MAX, INT64_MAX);
    if (stride == 0) return Invalid("slice step cannot be zero");
  }
  CACHALOT_ASSIGN_OR_RETURN(const int64_t first, SliceIndex(start, stride < 0 ? length - 1 : 0, length, stride));
  CACHALOT_ASSIGN_OR_RETURN(const int64_t last, SliceIndex(stop, stride < 0 ? -1 : length, length, stride));
  int64_t count = 0;
  if (stride > 0 && first < last) count = (last - first - 1) / stride + 1;
  if (stride < 0 && last < first) count = (first - last - 1) / -stride + 1;
  return SliceBounds{first, last, stride, count};
}

Result<Value> SliceText(Runtime& rt, const StrObject& text, const SliceBounds& bounds) {
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.text.size()));
  if (bounds.count == 0) return rt.Str({}, text.markup);
  if (bounds.step == 1) {
    return rt.Str(std::string(CharRange(text, static_cast<size_t>(bounds.start),
                                        static_cast<size_t>(bounds.start + bounds.count))),
                  text.markup);
  }
  CACHALOT_RETURN_IF_ERROR(rt.Tick(text.chars() + static_cast<uint64_t>(bounds.count)));
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(text.chars() * sizeof(uint32_t)));
  std::vector<uint32_t> offsets;
  for (size_t pos = 0; pos < text.text.size(); pos += DecodeUtf8(text.text, pos).bytes) {
    offsets.push_back(static_cast<uint32_t>(pos));
  }
  std::string out;
  for (int64_t i = 0; i < bounds.count; ++i) {
    const size_t at = offsets[static_cast<size_t>(bounds.start + i * bounds.step)];
    out += text.text.substr(at, DecodeUtf8(text.text, at).bytes);
  }
  return rt.Str(std::move(out), text.markup);
}

Result<Value> SliceRange(Runtime& rt, const RangeObject& range, const SliceBounds& bounds) {
  int64_t stride = 0, first = 0, stop = 0;
  const bool overflows =
      __builtin_mul_overflow(range.step, bounds.step, &stride) ||
      __builtin_mul_overflow(bounds.start, range.step, &first) || __builtin_add_overflow(first, range.start, &first) ||
      __builtin_mul_overflow(bounds.stop, range.step, &stop) || __builtin_add_overflow(stop, range.start, &stop);
  if (overflows) return Invalid("the slice of a range does not fit in 64 bits");
  return rt.Make<RangeObject>(Kind::kRange, first, stop, stride);
}

}  // namespace

Result<std::optional<Value>> FindAttribute(Runtime& rt, const Value& object, std::string_view name) {
  if (object.is(Kind::kNamespace)) {
    const Value* found = object.as<NamespaceObject>()->attributes.FindText(name);
    if (found == nullptr) return std::optional<Value>();
    return std::optional<Value>(name.starts_with('_') ? Unsafe(rt, object, name) : *found);
  }
  if (name.starts_with("__") &&
      (IsOneOf(name, kObjectAttributes) || (IsContainer(object) && IsOneOf(name, kContainerAttributes)))) {
    return std::optional<Value>(Unsafe(rt, object, name));
  }
  if (object.is(Kind::kUndefined)) return UndefinedError(object);
  const MethodLookup method = FindMethod(object, name);
  if (method.is_unsafe) return std::optional<Value>(Unsafe(rt, object, name));
  if (method.method != nullptr)
    return std::optional<Value>(rt.Make<MethodObject>(Kind::kMethod, object, method.method));
  CACHALOT_ASSIGN_OR_RETURN(Value property, Property(rt, object, name));
  return property.missing() ? std::nullopt : std::optional<Value>(std::move(property));
}

Result<Value> GetItem(Runtime& rt, const Value& object, const Value& key) {
  CACHALOT_ASSIGN_OR_RETURN(std::optional<Value> element, Subscript(rt, object, key));
  if (element) return *std::move(element);
  if (key.is(Kind::kStr)) {
    CACHALOT_ASSIGN_OR_RETURN(std::optional<Value> attribute, FindAttribute(rt, object, key.text()));
    if (attribute) return *std::move(attribute);
  }
  return UndefinedElement(rt, object, key);
}

Result<Value> GetAttribute(Runtime& rt, const Value& object, std::string_view name) {
  CACHALOT_ASSIGN_OR_RETURN(std::optional<Value> attribute, FindAttribute(rt, object, name));
  if (attribute) return *std::move(attribute);
  if (object.is(Kind::kDict)) {
    if (const Value* found = object.dict().FindText(name)) return *found;
  }
  return rt.Undefined(fmt::format("{} has no attribute {}", StrRepr(ObjectTypeRepr(object)), StrRepr(name)));
}

Result<Value> GetSlice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is(Kind::kUndefined)) return UndefinedError(object);
  const bool can_slice = object.is(Kind::kStr) || object.is_sequence() || object.is(Kind::kRange);
  if (!can_slice) return Invalid(fmt::format("'{}' object cannot be sliced", TypeName(object)));
  CACHALOT_ASSIGN_OR_RETURN(const SliceBounds bounds, Bounds(*LengthOf(object), start, stop, step));
  if (object.is(Kind::kStr)) return SliceText(rt, *object.as<StrObject>(), bounds);
  if (object.is(Kind::kRange)) {
    return SliceRange(rt, *object.as<RangeObject>(), bounds);
  }
  CACHALOT_RETURN_IF_ERROR(rt.Tick(1 + static_cast<uint64_t>(bounds.count) / 8));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(bounds.count));
  for (int64_t i = 0; i < bounds.count; ++i) {
    items.push_back(object.items()[static_cast<size_t>(bounds.start + i * bounds.step)]);
  }
  return object.is(Kind::kList) ? rt.List(std::move(items)) : rt.Tuple(std::move(items));
}

}  // namespace cachalot::text::jinja
