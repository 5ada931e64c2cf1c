// The operations of Python's data model on values: truth, comparison, arithmetic, length, iteration, lookup.
// Threads:   as Runtime.
// Ownership: results share their objects.
// Invariant: results and failures are those of Python 3 with Jinja's sandbox; failures are kInvalid.
// Cost:      every element or 64 bytes handled is a step of the runtime's budget.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja_ast.h"
#include "text/jinja_runtime.h"
#include "text/jinja_value.h"

namespace cachalot::text::jinja {

// Python's type name: 'str', 'dict', 'NoneType', ...
const char* TypeName(const Value& value);
bool Truth(const Value& value);
Result<bool> IsHashable(Runtime& rt, const Value& value);

Result<bool> Equals(Runtime& rt, const Value& a, const Value& b);
// a < b. Fails for types that have no order.
Result<bool> Less(Runtime& rt, const Value& a, const Value& b);
Result<bool> Compare(Runtime& rt, Op op, const Value& a, const Value& b);
Result<bool> Contains(Runtime& rt, const Value& container, const Value& item);

Result<Value> Arithmetic(Runtime& rt, Op op, const Value& a, const Value& b);
Result<Value> Negate(const Value& value);
Result<Value> Plus(const Value& value);

// len(); nothing for what has none.
std::optional<int64_t> LengthOf(const Value& value);
// iter(); fails for what cannot be walked.
Result<Value> Iterate(Runtime& rt, const Value& value);
Result<Value> IterateReversed(Runtime& rt, const Value& value);
// list(value); `iterator` is a kIterator.
Result<std::vector<Value>> ToVector(Runtime& rt, const Value& value);
Result<std::vector<Value>> Drain(Runtime& rt, const Value& iterator);
bool IsIterable(const Value& value);

// object[key] and object.name with Jinja's rules: the other kind of lookup is tried too, and what is not there is
// undefined rather than a failure.
Result<Value> GetItem(Runtime& rt, const Value& object, const Value& key);
Result<Value> GetAttribute(Runtime& rt, const Value& object, std::string_view name);
// object[start:stop:step]; kMissing or None for what is left out.
Result<Value> GetSlice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step);
// Python's own attribute of that name, if the type has it; what the sandbox forbids comes back undefined.
Result<std::optional<Value>> FindAttribute(Runtime& rt, const Value& object, std::string_view name);

// "'x' is undefined", as the failure that using the value is.
Status UndefinedError(const Value& undefined);
// "unsupported operand type(s) for +: 'int' and 'str'", or the undefined operand's own message.
Status OperandError(const char* symbol, const Value& a, const Value& b);

// The character `index` of a string; requires index < chars.
std::string_view CharAt(const StrObject& text, size_t index);
// Characters [first, last) of a string.
std::string_view CharRange(const StrObject& text, size_t first, size_t last);

}  // namespace cachalot::text::jinja
