// Builtin describes a filter, test, method or global function; the Find functions are the tables of them.
// Threads:   the tables are constant.
// Ownership: static storage.
// Invariant: a builtin with parameters gets exactly that many positional values, kMissing where none was given.
// Cost:      finding one is a hash or linear look-up in a small table.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/status.h"
#include "text/jinja_runtime.h"
#include "text/jinja_value.h"

namespace cachalot::text::jinja {

// What a builtin is called with. `self` is the filtered or tested value, or the object of a method.
struct CallInput {
  const Value& self;
  Arguments& arguments;
  const Value& operator[](size_t i) const { return arguments.positional[i]; }
  // Whether argument i was given at all.
  bool has(size_t i) const { return !arguments.positional[i].missing(); }
};

using BuiltinFunction = Result<Value> (*)(Runtime& rt, CallInput in);

inline constexpr size_t kMaxBuiltinParameters = 5;
inline constexpr int kAnyArguments = -1;  // as `required`: the function looks at the arguments itself

struct Builtin {
  std::string_view name;
  BuiltinFunction function;
  int required = 0;
  // Parameter names; "_" can be given by position only.
  std::array<std::string_view, kMaxBuiltinParameters> parameters = {};
};

// Checks the arguments against the parameters and calls.
Result<Value> CallBuiltin(Runtime& rt, const Builtin& builtin, const Value& self, Arguments arguments);

// Null when there is none of that name.
const Builtin* FindFilter(std::string_view name);
const Builtin* FindTest(std::string_view name);
// Whether Jinja has a filter or test of that name, which need not be supported here.
bool IsKnownFilter(std::string_view name);

struct MethodLookup {
  const Builtin* method = nullptr;
  bool is_unsafe = false;  // it exists, but the sandbox forbids it
};
MethodLookup FindMethod(const Value& object, std::string_view name);

// range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
std::span<const Builtin> Globals();

// The tables, one per file.
std::span<const Builtin> TextFilters();
std::span<const Builtin> SequenceFilters();
std::span<const Builtin> LazyFilters();
std::span<const Builtin> NumberFilters();
std::span<const Builtin> MarkupFilters();
std::span<const Builtin> Tests();
std::span<const Builtin> TextMethods();        // of str: those that make another text
std::span<const Builtin> TextSearchMethods();  // of str: searching, splitting, asking

const Builtin* FindIn(std::span<const Builtin> table, std::string_view name);

// tojson(value) with json.dumps' options.
Result<Value> FilterToJson(Runtime& rt, CallInput in);

// A whole number given as an argument, or `missing` if it was not given.
Result<int64_t> IntArgument(const CallInput& in, size_t i, int64_t missing);
// A string given as an argument.
Result<std::string_view> TextArgument(const CallInput& in, size_t i);

}  // namespace cachalot::text::jinja
