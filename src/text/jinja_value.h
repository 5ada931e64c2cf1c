// Value is what a template computes with: Python's None, bool, int, float, str, list, tuple, dict and a few more.
// Threads:   values of one render belong to one thread (counts are not atomic).
// Ownership: a Value shares its object; a Heap counts the bytes of all objects of one render and outlives them.
// Invariant: lists, tuples, dicts and strings do not change once a template can see them, so they form no cycle;
//            objects that could (namespaces, loops) are registered with the heap, which empties them at the end.
// Cost:      copying a Value is a count; an object is one allocation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace cachalot::text::jinja {

struct Activation;
struct Builtin;
struct Loop;
struct Macro;
class Runtime;

enum class Kind : uint8_t {
  kMissing,  // an unset variable or an argument that was not given; never seen by a template
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kStr,
  kList,
  kTuple,
  kDict,
  kDictView,
  kRange,
  kIterator,  // what Python calls a generator: can be walked once
  kNamespace,
  kMacro,
  kFunction,
  kMethod,
  kLoop,
  kCycler,
  kJoiner,
};

// Deeper nesting of values fails the render: walking them recursively stays safe.
inline constexpr int kMaxValueDepth = 200;

class Heap {
 public:
  explicit Heap(size_t limit_bytes);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  void Charge(size_t bytes);
  void Refund(size_t bytes) { live_bytes_ -= bytes; }
  // Whether `bytes` more would stay inside the limit.
  bool Fits(size_t bytes) const { return bytes <= limit_bytes_ && live_bytes_ <= limit_bytes_ - bytes; }
  void NoteDepth(int depth) { too_deep_ = too_deep_ || depth > kMaxValueDepth; }
  // Once true, the render fails at its next step.
  bool exhausted() const { return exhausted_; }
  bool too_deep() const { return too_deep_; }
  // Keeps a value that may be part of a cycle, to be emptied by EmptyRegistered.
  void Register(class Value value);
  void EmptyRegistered();

 private:
  size_t limit_bytes_;
  size_t live_bytes_ = 0;
  bool exhausted_ = false;
  bool too_deep_ = false;
  std::vector<class Value> registered_;
};

class Object {
 public:
  // `payload_bytes`: what the object holds beyond itself; `depth`: levels of values inside it.
  Object(Heap* heap, size_t payload_bytes, int depth);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  virtual void Empty() {}  // lets go of all values inside
  int depth() const { return depth_; }
  bool is_shared() const { return references_ > 1; }

 protected:
  void ChargeMore(size_t bytes);
  Heap* heap() const { return heap_; }

 private:
  friend class Value;
  Heap* heap_;
  size_t charged_;
  uint32_t references_ = 0;
  int depth_;
};

class Value {
 public:
  Value() : kind_(Kind::kMissing) { payload_.integer = 0; }
  Value(Kind kind, Object* object) : kind_(kind) {
    payload_.object = object;
    ++object->references_;
  }
  Value(const Value& other) : kind_(other.kind_), payload_(other.payload_) {
    if (has_object()) ++payload_.object->references_;
  }
  Value(Value&& other) noexcept : kind_(other.kind_), payload_(other.payload_) { other.kind_ = Kind::kMissing; }
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(payload_, other.payload_);
    return *this;
  }
  ~Value() {
    if (has_object() && --payload_.object->references_ == 0) delete payload_.object;
  }

  static Value None() { return Plain(Kind::kNone, 0); }
  static Value Bool(bool value) { return Plain(Kind::kBool, value); }
  static Value Int(int64_t value) { return Plain(Kind::kInt, value); }
  static Value Float(double value);
  static Value Function(const Builtin* function);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool missing() const { return kind_ == Kind::kMissing; }
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  // Each requires the kind it reads.
  int64_t integer() const { return payload_.integer; }  // kInt, kBool
  double number() const { return payload_.number; }     // kFloat
  double as_double() const { return kind_ == Kind::kFloat ? payload_.number : static_cast<double>(payload_.integer); }
  const Builtin* function() const { return payload_.function; }
  const std::string& text() const;          // kStr
  const std::vector<Value>& items() const;  // kList, kTuple
  const class Dict& dict() const;           // kDict
  Object* object() const { return payload_.object; }
  template <class T>
  T* as() const {
    return static_cast<T*>(payload_.object);
  }

  bool has_object() const { return kind_ == Kind::kUndefined || (kind_ >= Kind::kStr && kind_ != Kind::kFunction); }
  int depth() const { return has_object() ? payload_.object->depth() : 0; }

 private:
  static Value Plain(Kind kind, int64_t integer) {
    Value value;
    value.kind_ = kind;
    value.payload_.integer = integer;
    return value;
  }

  Kind kind_;
  union {
    int64_t integer;
    double number;
    Object* object;
    const Builtin* function;
  } payload_;
};

struct UndefinedObject final : Object {
  UndefinedObject(Heap* heap, std::string message);
  std::string message;  // what using it says
};

struct StrObject final : Object {
  StrObject(Heap* heap, std::string text, bool markup);
  size_t chars() const;  // number of characters
  bool is_ascii() const { return chars() == text.size(); }
  std::string text;
  bool markup;  // HTML-safe, as the filters `safe` and `escape` make it

 private:
  mutable size_t chars_ = SIZE_MAX;  // not counted yet
};

struct SequenceObject final : Object {
  SequenceObject(Heap* heap, std::vector<Value> items, bool is_group = false);
  std::vector<Value> items;
  bool is_group;  // of the filter groupby: (grouper, list)
};

// Keeps the order of insertion. Keys are any hashable values; 1, 1.0 and true are the same key.
class Dict {
 public:
  struct Entry {
    Value key, value;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  // Null when absent.
  const Value* FindText(std::string_view key) const;
  Result<const Value*> Find(Runtime& rt, const Value& key) const;
  // Replaces the value of a key that is there. Fails for a key that cannot be hashed.
  Status Set(Runtime& rt, Value key, Value value);
  void SetText(Runtime& rt, std::string_view key, Value value);
  void Clear();

 private:
  // Index of the entry, or entries().size().
  Result<size_t> Locate(Runtime& rt, const Value& key) const;
  size_t LocateText(std::string_view key) const;
  void Append(Value key, Value value);

  std::vector<Entry> entries_;
  std::map<std::string_view, uint32_t> text_index_;  // of all string keys, once there are many
};

struct DictObject final : Object {
  DictObject(Heap* heap, Dict dict);
  Dict dict;
};

struct DictViewObject final : Object {
  enum class Part : uint8_t { kItems, kKeys, kValues };
  DictViewObject(Heap* heap, Value dict, Part part);
  Value dict;
  Part part;
};

struct RangeObject final : Object {
  RangeObject(Heap* heap, int64_t start, int64_t stop, int64_t step);
  int64_t start, stop, step;
  int64_t length;
  // Requires 0 <= index < length. The product alone may not fit.
  int64_t At(int64_t index) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(index) * static_cast<uint64_t>(step));
  }
};

struct IteratorObject : Object {
  using Object::Object;
  // False at the end, which stays the end.
  virtual Result<bool> Next(Runtime& rt, Value* out) = 0;
};

struct NamespaceObject final : Object {
  explicit NamespaceObject(Heap* heap) : Object(heap, 0, 1) {}
  void Set(Runtime& rt, std::string_view name, Value value);
  void Empty() override { attributes.Clear(); }
  Dict attributes;
};

struct MacroObject final : Object {
  MacroObject(Heap* heap, const Macro* macro, Activation* closure)
      : Object(heap, 0, 1), macro(macro), closure(closure) {}
  const Macro* macro;
  Activation* closure;  // kept by the interpreter until the render ends
};

struct MethodObject final : Object {
  MethodObject(Heap* heap, Value self, const Builtin* method)
      : Object(heap, 0, self.depth() + 1), self(std::move(self)), method(method) {}
  Value self;
  const Builtin* method;
};

struct LoopObject final : Object {
  LoopObject(Heap* heap, Value iterable, Value iterator, int depth0)
      : Object(heap, 0, 1), iterable(std::move(iterable)), iterator(std::move(iterator)), depth0(depth0) {}
  void Empty() override;
  // Moves to the next item; false at the end.
  Result<bool> Advance(Runtime& rt);
  // The item after the current one, or kMissing at the end.
  Result<Value> Peek(Runtime& rt);
  Result<int64_t> Length(Runtime& rt);

  Value iterable, iterator;
  Value after, current, before;  // kMissing: none
  Value last_changed;
  int64_t index0 = -1;
  int64_t length = -1;  // not known yet
  int depth0;
  const Loop* recursive = nullptr;  // how loop(...) renders, where it may be called
  Activation* closure = nullptr;
};

struct CyclerObject final : Object {
  CyclerObject(Heap* heap, std::vector<Value> items);
  std::vector<Value> items;
  size_t position = 0;
};

struct JoinerObject final : Object {
  JoinerObject(Heap* heap, Value separator) : Object(heap, 0, separator.depth() + 1), separator(std::move(separator)) {}
  Value separator;
  bool used = false;
};

}  // namespace cachalot::text::jinja
