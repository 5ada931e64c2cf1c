#include "text/jinja_value.h"

#include <algorithm>
#include <functional>

#include "text/jinja_ops.h"
#include "text/jinja_runtime.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

constexpr size_t kObjectBytes = 48;     // an object's own fields and the allocator's share
constexpr size_t kIndexNodeBytes = 64;  // one node of a dict's index
constexpr size_t kIndexedFrom = 12;     // entries from which a dict has an index

int DepthOver(const std::vector<Value>& items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return depth + 1;
}

int DepthOver(const Dict& dict) {
  int depth = 0;
  for (const Dict::Entry& entry : dict.entries()) depth = std::max({depth, entry.key.depth(), entry.value.depth()});
  return depth + 1;
}

size_t EntryBytes(size_t entries) {
  return entries * (sizeof(Dict::Entry) + (entries >= kIndexedFrom ? kIndexNodeBytes : 0));
}

int64_t RangeLength(int64_t start, int64_t stop, int64_t step) {
  const bool empty = step > 0 ? start >= stop : start <= stop;
  if (empty) return 0;
  const uint64_t span = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                 : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t length = (span - 1) / stride + 1;
  return static_cast<int64_t>(std::min<uint64_t>(length, INT64_MAX));
}

}  // namespace

Heap::Heap(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

Heap::~Heap() { EmptyRegistered(); }

void Heap::Charge(size_t bytes) {
  live_bytes_ += bytes;
  exhausted_ = exhausted_ || live_bytes_ > limit_bytes_;
}

void Heap::Register(Value value) {
  Charge(sizeof(Value));
  registered_.push_back(std::move(value));
}

void Heap::EmptyRegistered() {
  for (const Value& value : registered_) value.object()->Empty();
  Refund(registered_.size() * sizeof(Value));
  registered_.clear();
}

Object::Object(Heap* heap, size_t payload_bytes, int depth)
    : heap_(heap), charged_(kObjectBytes + payload_bytes), depth_(depth) {
  heap_->Charge(charged_);
  heap_->NoteDepth(depth);
}

Object::~Object() { heap_->Refund(charged_); }

void Object::ChargeMore(size_t bytes) {
  charged_ += bytes;
  heap_->Charge(bytes);
}

Value Value::Float(double value) {
  Value result;
  result.kind_ = Kind::kFloat;
  result.payload_.number = value;
  return result;
}

Value Value::Function(const Builtin* function) {
  Value result;
  result.kind_ = Kind::kFunction;
  result.payload_.function = function;
  return result;
}

const std::string& Value::text() const { return as<StrObject>()->text; }
const std::vector<Value>& Value::items() const { return as<SequenceObject>()->items; }
const Dict& Value::dict() const { return as<DictObject>()->dict; }

UndefinedObject::UndefinedObject(Heap* heap, std::string message)
    : Object(heap, message.size(), 1), message(std::move(message)) {}

StrObject::StrObject(Heap* heap, std::string text, bool markup)
    : Object(heap, text.size(), 1), text(std::move(text)), markup(markup) {}

size_t StrObject::chars() const {
  if (chars_ == SIZE_MAX) chars_ = CountChars(text);
  return chars_;
}

SequenceObject::SequenceObject(Heap* heap, std::vector<Value> items, bool is_group)
    : Object(heap, items.size() * sizeof(Value), DepthOver(items)), items(std::move(items)), is_group(is_group) {}

const Value* Dict::FindText(std::string_view key) const {
  const size_t at = LocateText(key);
  return at == entries_.size() ? nullptr : &entries_[at].value;
}

Result<const Value*> Dict::Find(Runtime& rt, const Value& key) const {
  CACHALOT_ASSIGN_OR_RETURN(const size_t at, Locate(rt, key));
  return at == entries_.size() ? nullptr : &entries_[at].value;
}

Status Dict::Set(Runtime& rt, Value key, Value value) {
  CACHALOT_ASSIGN_OR_RETURN(const size_t at, Locate(rt, key));
  if (at < entries_.size()) {
    entries_[at].value = std::move(value);
  } else {
    Append(std::move(key), std::move(value));
  }
  return OkStatus();
}

void Dict::SetText(Runtime& rt, std::string_view key, Value value) {
  const size_t at = LocateText(key);
  if (at < entries_.size()) {
    entries_[at].value = std::move(value);
  } else {
    Append(rt.Str(std::string(key)), std::move(value));
  }
}

void Dict::Clear() {
  text_index_.clear();
  entries_.clear();
}

size_t Dict::LocateText(std::string_view key) const {
  if (!text_index_.empty()) {
    const auto found = text_index_.find(key);
    return found == text_index_.end() ? entries_.size() : found->second;
  }
  size_t at = 0;
  while (at < entries_.size() && !(entries_[at].key.is(Kind::kStr) && entries_[at].key.text() == key)) ++at;
  return at;
}

Result<size_t> Dict::Locate(Runtime& rt, const Value& key) const {
  if (key.is(Kind::kStr)) return LocateText(key.text());
  CACHALOT_ASSIGN_OR_RETURN(const bool hashable, IsHashable(rt, key));
  if (!hashable) return Invalid(std::string("unhashable type: '") + TypeName(key) + "'");
  CACHALOT_RETURN_IF_ERROR(rt.Tick(1 + entries_.size() / 8));
  for (size_t at = 0; at < entries_.size(); ++at) {
    if (entries_[at].key.is(Kind::kStr)) continue;
    CACHALOT_ASSIGN_OR_RETURN(const bool equal, Equals(rt, entries_[at].key, key));
    if (equal) return at;
  }
  return entries_.size();
}

void Dict::Append(Value key, Value value) {
  const bool has_index = !text_index_.empty();
  const uint32_t at = static_cast<uint32_t>(entries_.size());
  entries_.push_back({std::move(key), std::move(value)});
  if (has_index) {
    if (entries_[at].key.is(Kind::kStr)) text_index_.emplace(entries_[at].key.text(), at);
  } else if (entries_.size() >= kIndexedFrom) {
    for (uint32_t i = 0; i <= at; ++i) {
      if (entries_[i].key.is(Kind::kStr)) text_index_.emplace(entries_[i].key.text(), i);
    }
  }
}

DictObject::DictObject(Heap* heap, Dict dict)
    : Object(heap, EntryBytes(dict.entries().size()), DepthOver(dict)), dict(std::move(dict)) {}

DictViewObject::DictViewObject(Heap* heap, Value dict, Part part)
    : Object(heap, 0, dict.depth() + 1), dict(std::move(dict)), part(part) {}

RangeObject::RangeObject(Heap* heap, int64_t start, int64_t stop, int64_t step)
    : Object(heap, 0, 1), start(start), stop(stop), step(step), length(RangeLength(start, stop, step)) {}

void NamespaceObject::Set(Runtime& rt, std::string_view name, Value value) {
  const size_t before = attributes.entries().size();
  attributes.SetText(rt, name, std::move(value));
  if (attributes.entries().size() > before) ChargeMore(sizeof(Dict::Entry) + kIndexNodeBytes);
}

void LoopObject::Empty() {
  for (Value* value : {&iterable, &iterator, &after, &current, &before, &last_changed}) *value = Value();
}

Result<bool> LoopObject::Advance(Runtime& rt) {
  Value item = std::exchange(after, Value());
  if (item.missing()) {
    CACHALOT_ASSIGN_OR_RETURN(const bool more, iterator.as<IteratorObject>()->Next(rt, &item));
    if (!more) return false;
  }
  ++index0;
  before = std::exchange(current, std::move(item));
  return true;
}

Result<Value> LoopObject::Peek(Runtime& rt) {
  if (!after.missing()) return after;
  if (iterator.missing()) return Value();
  Value item;
  CACHALOT_ASSIGN_OR_RETURN(const bool more, iterator.as<IteratorObject>()->Next(rt, &item));
  if (more) after = std::move(item);
  return after;
}

Result<int64_t> LoopObject::Length(Runtime& rt) {
  if (length >= 0) return length;
  if (iterator.missing()) return Invalid("the loop is over");
  if (const std::optional<int64_t> known = LengthOf(iterable)) {
    length = *known;
    return length;
  }
  CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> rest, Drain(rt, iterator));
  length = static_cast<int64_t>(rest.size()) + index0 + 1 + (after.missing() ? 0 : 1);
  CACHALOT_ASSIGN_OR_RETURN(iterator, Iterate(rt, rt.List(std::move(rest))));
  return length;
}

CyclerObject::CyclerObject(Heap* heap, std::vector<Value> items)
    : Object(heap, items.size() * sizeof(Value), DepthOver(items)), items(std::move(items)) {}

}  // namespace cachalot::text::jinja
