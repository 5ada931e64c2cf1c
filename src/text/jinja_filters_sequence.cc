#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_sequence.h"
#include "text/jinja_text.h"

namespace cachalot::text::jinja {
namespace {

Result<Value> Length(Runtime&, CallInput in) {
  if (const std::optional<int64_t> length = LengthOf(in.self)) return Value::Int(*length);
  return Invalid(fmt::format("object of type '{}' has no len()", TypeName(in.self)));
}

Result<Value> LengthOrLoop(Runtime& rt, CallInput in) {
  if (!in.self.is(Kind::kLoop)) return Length(rt, in);
  CACHALOT_ASSIGN_OR_RETURN(const int64_t length, in.self.as<LoopObject>()->Length(rt));
  return Value::Int(length);
}

Result<Value> First(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const Value iterator, Iterate(rt, in.self));
  Value item;
  CACHALOT_ASSIGN_OR_RETURN(const bool found, iterator.as<IteratorObject>()->Next(rt, &item));
  return found ? item : rt.Undefined("No first item, sequence was empty.");
}

Result<Value> Last(Runtime& rt, CallInput in) {
  const std::optional<int64_t> length = LengthOf(in.self);
  if (!length) return Invalid(fmt::format("'{}' object is not reversible", TypeName(in.self)));
  if (*length == 0) return rt.Undefined("No last item, sequence was empty.");
  if (in.self.is(Kind::kStr) || in.self.is_sequence()) return GetItem(rt, in.self, Value::Int(-1));
  CACHALOT_ASSIGN_OR_RETURN(const Value iterator, IterateReversed(rt, in.self));
  Value item;
  CACHALOT_RETURN_IF_ERROR(iterator.as<IteratorObject>()->Next(rt, &item).status());
  return item;
}

Result<Value> List(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(rt, in.self));
  return rt.List(std::move(items));
}

Result<Value> Join(Runtime& rt, CallInput in) {
  std::string separator;
  if (in.has(0)) {
    CACHALOT_ASSIGN_OR_RETURN(separator, ToText(rt, in[0]));
  }
  const AttributePath path = SplitPath(rt, in[1]);
  CACHALOT_ASSIGN_OR_RETURN(const Value iterator, Iterate(rt, in.self));
  std::string out;
  Value item;
  for (bool is_first = true;; is_first = false) {
    CACHALOT_ASSIGN_OR_RETURN(const bool more, iterator.as<IteratorObject>()->Next(rt, &item));
    if (!more) return rt.Str(std::move(out));
    CACHALOT_ASSIGN_OR_RETURN(item, FollowPath(rt, std::move(item), path, {}));
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, ToText(rt, item));
    CACHALOT_RETURN_IF_ERROR(rt.TickBytes(separator.size()));
    CACHALOT_RETURN_IF_ERROR(rt.CanGrow(out.size() + separator.size() + text.size()));
    if (!is_first) out += separator;
    out += text;
  }
}

// The paths of "a,b.c"; one empty path when there is no attribute.
std::vector<AttributePath> SplitPaths(Runtime& rt, const Value& attribute) {
  if (!attribute.is(Kind::kStr)) return {SplitPath(rt, attribute)};
  std::vector<AttributePath> paths;
  std::string_view rest = attribute.text();
  while (true) {
    const size_t comma = rest.find(',');
    paths.push_back(SplitPathText(rt, rest.substr(0, comma)));
    if (comma == std::string_view::npos) return paths;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<Value> TakeValues(std::vector<Keyed> items) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (Keyed& item : items) values.push_back(std::move(item.value));
  return values;
}

Result<Value> Sort(Runtime& rt, CallInput in) {
  const std::vector<AttributePath> paths = SplitPaths(rt, in[2]);
  const bool case_sensitive = Truth(in[1]);
  CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(rt, in.self));
  std::vector<Keyed> keyed;
  for (Value& item : items) {
    std::vector<Value> key;
    for (const AttributePath& path : paths) {
      CACHALOT_ASSIGN_OR_RETURN(Value part, FollowPath(rt, item, path, {}));
      CACHALOT_ASSIGN_OR_RETURN(part, SortKey(rt, part, case_sensitive));
      key.push_back(std::move(part));
    }
    keyed.push_back({rt.List(std::move(key)), std::move(item)});
  }
  CACHALOT_RETURN_IF_ERROR(SortByKey(rt, &keyed, Truth(in[0])));
  return rt.List(TakeValues(std::move(keyed)));
}

Result<Value> DictSort(Runtime& rt, CallInput in) {
  if (in.self.is(Kind::kUndefined)) return UndefinedError(in.self);
  if (!in.self.is(Kind::kDict)) return Invalid(fmt::format("'{}' object has no attribute 'items'", TypeName(in.self)));
  const std::string_view by = in.has(1) && in[1].is(Kind::kStr) ? std::string_view(in[1].text()) : "key";
  const bool bad_by = in.has(1) && !in[1].is(Kind::kStr);
  if (bad_by || (by != "key" && by != "value")) return Invalid("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const Dict::Entry& entry : in.self.dict().entries()) {
    CACHALOT_ASSIGN_OR_RETURN(Value key, SortKey(rt, by == "key" ? entry.key : entry.value, Truth(in[0])));
    keyed.push_back({std::move(key), rt.Tuple({entry.key, entry.value})});
  }
  CACHALOT_RETURN_IF_ERROR(SortByKey(rt, &keyed, Truth(in[2])));
  return rt.List(TakeValues(std::move(keyed)));
}

Result<Value> GroupBy(Runtime& rt, CallInput in) {
  const AttributePath path = SplitPath(rt, in[0]);
  CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(rt, in.self));
  std::vector<Keyed> keyed;
  for (Value& item : items) {
    CACHALOT_ASSIGN_OR_RETURN(Value key, FollowPath(rt, item, path, in[1]));
    CACHALOT_ASSIGN_OR_RETURN(key, SortKey(rt, key, Truth(in[2])));
    keyed.push_back({std::move(key), std::move(item)});
  }
  CACHALOT_RETURN_IF_ERROR(SortByKey(rt, &keyed, false));
  std::vector<Value> groups;
  for (size_t first = 0; first < keyed.size();) {
    size_t last = first + 1;
    for (; last < keyed.size(); ++last) {
      CACHALOT_ASSIGN_OR_RETURN(const bool equal, Equals(rt, keyed[first].key, keyed[last].key));
      if (!equal) break;
    }
    std::vector<Value> members;
    for (size_t i = first; i < last; ++i) members.push_back(std::move(keyed[i].value));
    // The group's name has the case of its first member.
    CACHALOT_ASSIGN_OR_RETURN(Value grouper, FollowPath(rt, members.front(), path, in[1]));
    std::vector<Value> pair = {std::move(grouper), rt.List(std::move(members))};
    groups.push_back(rt.Make<SequenceObject>(Kind::kTuple, std::move(pair), true));
    first = last;
  }
  return rt.List(std::move(groups));
}

Result<Value> Extreme(Runtime& rt, CallInput in, bool want_less) {
  const AttributePath path = SplitPath(rt, in[1]);
  CACHALOT_ASSIGN_OR_RETURN(const Value iterator, Iterate(rt, in.self));
  Value best, best_key, item;
  while (true) {
    CACHALOT_ASSIGN_OR_RETURN(const bool more, iterator.as<IteratorObject>()->Next(rt, &item));
    if (!more) break;
    CACHALOT_ASSIGN_OR_RETURN(Value key, FollowPath(rt, item, path, {}));
    CACHALOT_ASSIGN_OR_RETURN(key, SortKey(rt, key, Truth(in[0])));
    bool better = best.missing();
    if (!better) {
      CACHALOT_ASSIGN_OR_RETURN(better, Compare(rt, want_less ? Op::kLt : Op::kGt, key, best_key));
    }
    if (!better) continue;
    best = item;
    best_key = std::move(key);
  }
  return best.missing() ? rt.Undefined("No aggregated item, sequence was empty.") : best;
}

Result<Value> Min(Runtime& rt, CallInput in) { return Extreme(rt, in, true); }
Result<Value> Max(Runtime& rt, CallInput in) { return Extreme(rt, in, false); }

Result<Value> Sum(Runtime& rt, CallInput in) {
  const AttributePath path = SplitPath(rt, in[0]);
  Value total = in.has(1) ? in[1] : Value::Int(0);
  if (total.is(Kind::kStr)) return Invalid("sum() can't sum strings [use ''.join(seq) instead]");
  CACHALOT_ASSIGN_OR_RETURN(const Value iterator, Iterate(rt, in.self));
  Value item;
  while (true) {
    CACHALOT_ASSIGN_OR_RETURN(const bool more, iterator.as<IteratorObject>()->Next(rt, &item));
    if (!more) return total;
    CACHALOT_ASSIGN_OR_RETURN(item, FollowPath(rt, std::move(item), path, {}));
    CACHALOT_ASSIGN_OR_RETURN(total, Arithmetic(rt, Op::kAdd, total, item));
  }
}

Result<Value> Reverse(Runtime& rt, CallInput in) {
  if (in.self.is(Kind::kStr)) return GetSlice(rt, in.self, {}, {}, Value::Int(-1));
  if (LengthOf(in.self)) return IterateReversed(rt, in.self);
  if (!IsIterable(in.self)) return Invalid("argument must be iterable");
  CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(rt, in.self));
  std::ranges::reverse(items);
  return rt.List(std::move(items));
}

Result<Value> Attribute(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view name, TextArgument(in, 0));
  CACHALOT_ASSIGN_OR_RETURN(std::optional<Value> found, FindAttribute(rt, in.self, name));
  if (found) return *std::move(found);
  return rt.Undefined(fmt::format("'{} object' has no attribute {}", TypeName(in.self), StrRepr(name)));
}

Result<Value> Default(Runtime& rt, CallInput in) {
  if (in.self.is(Kind::kUndefined) || (Truth(in[1]) && !Truth(in.self))) return in.has(0) ? in[0] : rt.Str({});
  return in.self;
}

}  // namespace

std::span<const Builtin> SequenceFilters() {
  static constexpr Builtin kTable[] = {
      {"length", LengthOrLoop},
      {"count", LengthOrLoop},
      {"first", First},
      {"last", Last},
      {"list", List},
      {"join", Join, 0, {"d", "attribute"}},
      {"sort", Sort, 0, {"reverse", "case_sensitive", "attribute"}},
      {"dictsort", DictSort, 0, {"case_sensitive", "by", "reverse"}},
      {"groupby", GroupBy, 1, {"attribute", "default", "case_sensitive"}},
      {"min", Min, 0, {"case_sensitive", "attribute"}},
      {"max", Max, 0, {"case_sensitive", "attribute"}},
      {"sum", Sum, 0, {"attribute", "start"}},
      {"reverse", Reverse},
      {"attr", Attribute, 1, {"name"}},
      {"default", Default, 0, {"default_value", "boolean"}},
      {"d", Default, 0, {"default_value", "boolean"}},
      {"tojson", FilterToJson, 0, {"ensure_ascii", "indent", "separators", "sort_keys"}},
  };
  return kTable;
}

}  // namespace cachalot::text::jinja
