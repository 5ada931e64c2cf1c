// Runtime is what every operation of one render shares: budgets, allocation and calls.
// Threads:   one render, one thread.
// Ownership: owns the heap; values made by it must not outlive it.
// Invariant: no operation of a template can take more steps, bytes or native stack than the limits allow.
// Cost:      Tick is a comparison.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/jinja_value.h"

namespace cachalot::text::jinja {

struct Limits {
  uint64_t steps = 50'000'000;             // one per node visited, element walked or 64 bytes handled
  size_t heap_bytes = size_t{256} << 20;   // values alive at one time
  size_t output_bytes = size_t{64} << 20;  // rendered text
  int depth = 800;                         // nested evaluations: macros, expressions, blocks
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

class Runtime {
 public:
  Runtime(const Limits& limits, int64_t unix_seconds)
      : limits_(limits), unix_seconds_(unix_seconds), heap_(limits.heap_bytes) {}
  virtual ~Runtime() = default;

  virtual Result<Value> Call(const Value& callee, Arguments arguments) = 0;

  // Pays for `cost` steps. Fails when a budget is used up.
  Status Tick(uint64_t cost = 1);
  Status TickBytes(size_t bytes) { return Tick(1 + bytes / 64); }
  // Whether `bytes` more may be allocated: for operations whose result can be much larger than their operands.
  Status CanGrow(size_t bytes);

  // The failure that raise_exception(message) is: its text reaches the caller as it is.
  Status Raise(std::string message);
  bool raised() const { return raised_; }

  Heap* heap() { return &heap_; }
  const Limits& limits() const { return limits_; }
  int64_t unix_seconds() const { return unix_seconds_; }

  Value Str(std::string text, bool markup = false);
  Value List(std::vector<Value> items);
  Value Tuple(std::vector<Value> items);
  Value MakeDict(Dict dict);
  Value Undefined(std::string message);
  template <class T, class... Args>
  Value Make(Kind kind, Args&&... args) {
    return Value(kind, new T(&heap_, std::forward<Args>(args)...));
  }

  // One level of native recursion; ok() is false when there are too many.
  class Level {
   public:
    explicit Level(Runtime* rt) : rt_(rt) { ++rt_->depth_; }
    ~Level() { --rt_->depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    bool ok() const { return rt_->depth_ <= rt_->limits_.depth; }

   private:
    Runtime* rt_;
  };
  static Status TooDeep();

 private:
  Limits limits_;
  int64_t unix_seconds_;
  uint64_t steps_ = 0;
  int depth_ = 0;
  bool raised_ = false;
  Heap heap_;
};

}  // namespace cachalot::text::jinja
