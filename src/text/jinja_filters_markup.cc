#include <fmt/format.h>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace cachalot::text::jinja {
namespace {

bool IsSafe(const Value& value) { return value.is(Kind::kStr) && value.as<StrObject>()->markup; }

Result<Value> EscapedText(Runtime& rt, const Value& value) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ToText(rt, value));
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(text.size() * 5));
  return rt.Str(EscapeHtml(text), true);
}

Result<Value> Escape(Runtime& rt, CallInput in) {
  if (IsSafe(in.self)) return in.self;
  return EscapedText(rt, in.self);
}

Result<Value> ForceEscape(Runtime& rt, CallInput in) { return EscapedText(rt, in.self); }

Result<Value> Safe(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(std::string text, ToText(rt, in.self));
  return rt.Str(std::move(text), true);
}

// Percent-encodes all but letters, digits, "_.-~" and, in a path, "/".
std::string QuoteUrl(std::string_view text, bool for_query) {
  std::string out;
  for (char c : text) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                          c == '.' || c == '-' || c == '~' || (c == '/' && !for_query);
    if (is_plain) {
      out.push_back(c);
    } else if (c == ' ' && for_query) {
      out.push_back('+');
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Result<std::string> QuoteValue(Runtime& rt, const Value& value, bool for_query) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ToText(rt, value));
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(text.size() * 3));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 8));
  return QuoteUrl(text, for_query);
}

Result<Value> UrlEncode(Runtime& rt, CallInput in) {
  if (in.self.is(Kind::kStr) || !IsIterable(in.self)) {
    CACHALOT_ASSIGN_OR_RETURN(std::string quoted, QuoteValue(rt, in.self, false));
    return rt.Str(std::move(quoted));
  }
  Value pairs = in.self;
  if (pairs.is(Kind::kDict)) {
    pairs = rt.Make<DictViewObject>(Kind::kDictView, in.self, DictViewObject::Part::kItems);
  }
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<Value> items, ToVector(rt, pairs));
  std::string out;
  for (const Value& item : items) {
    CACHALOT_ASSIGN_OR_RETURN(const std::vector<Value> pair, ToVector(rt, item));
    if (pair.size() != 2) return Invalid("urlencode needs (key, value) pairs");
    CACHALOT_ASSIGN_OR_RETURN(const std::string key, QuoteValue(rt, pair[0], true));
    CACHALOT_ASSIGN_OR_RETURN(const std::string value, QuoteValue(rt, pair[1], true));
    if (&item != &items.front()) out += '&';
    out += key + "=" + value;
    CACHALOT_RETURN_IF_ERROR(rt.CanGrow(out.size()));
  }
  return rt.Str(std::move(out));
}

}  // namespace

std::span<const Builtin> MarkupFilters() {
  static constexpr Builtin kTable[] = {
      {"e", Escape}, {"escape", Escape}, {"forceescape", ForceEscape}, {"safe", Safe}, {"urlencode", UrlEncode},
  };
  return kTable;
}

}  // namespace cachalot::text::jinja
