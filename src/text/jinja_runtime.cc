#include "text/jinja_runtime.h"

#include <fmt/format.h>

namespace cachalot::text::jinja {

Status Runtime::Tick(uint64_t cost) {
  steps_ += cost;
  if (steps_ > limits_.steps) return Invalid(fmt::format("the template takes more than {} steps", limits_.steps));
  if (heap_.exhausted()) {
    return Invalid(fmt::format("the template needs more than {} bytes of memory", limits_.heap_bytes));
  }
  if (heap_.too_deep()) return Invalid(fmt::format("a value is nested deeper than {}", kMaxValueDepth));
  return OkStatus();
}

Status Runtime::CanGrow(size_t bytes) {
  if (heap_.Fits(bytes)) return OkStatus();
  return Invalid(fmt::format("the template needs more than {} bytes of memory", limits_.heap_bytes));
}

Status Runtime::Raise(std::string message) {
  raised_ = true;
  return Invalid(std::move(message));
}

Status Runtime::TooDeep() { return Invalid("the template recurses too deeply"); }

Value Runtime::Str(std::string text, bool markup) { return Make<StrObject>(Kind::kStr, std::move(text), markup); }
Value Runtime::List(std::vector<Value> items) { return Make<SequenceObject>(Kind::kList, std::move(items)); }
Value Runtime::Tuple(std::vector<Value> items) { return Make<SequenceObject>(Kind::kTuple, std::move(items)); }
Value Runtime::MakeDict(Dict dict) { return Make<DictObject>(Kind::kDict, std::move(dict)); }
Value Runtime::Undefined(std::string message) { return Make<UndefinedObject>(Kind::kUndefined, std::move(message)); }

}  // namespace cachalot::text::jinja
