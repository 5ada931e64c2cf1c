// LogWriter and LogReader put values into bytes and take them out again. How a struct is made up is said once, by an
// overload of Fields that serves both: Fields(archive, value) hands over each member in turn.
// Threads:   each belongs to one.
// Ownership: a writer owns its bytes; a reader walks over bytes of others.
// Invariant: a reader never passes the end, and makes nothing larger than what it read: past it, or after a value that
//            cannot be, ok() is false and what follows is empty.
// Cost:      linear in the bytes.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace cachalot::engine {

// T, const or not: for overloads of Fields.
template <class T, class U>
concept Like = std::same_as<std::remove_const_t<T>, U>;

class LogWriter {
 public:
  template <class... Values>
  void operator()(const Values&... values) {
    (Put(values), ...);
  }
  template <class Enum>
  void EnumUpTo(const Enum& value, Enum) {
    Put(static_cast<std::underlying_type_t<Enum>>(value));
  }
  std::string Take() { return std::exchange(bytes_, {}); }

 private:
  void Put(std::integral auto value) {
    const auto bits = static_cast<uint64_t>(value);
    for (size_t i = 0; i < sizeof(value); ++i) bytes_.push_back(static_cast<char>(bits >> (8 * i)));
  }
  void Put(float value) { Put(std::bit_cast<uint32_t>(value)); }
  void Put(double value) { Put(std::bit_cast<uint64_t>(value)); }
  void Put(const std::string& value) {
    Put(uint64_t{value.size()});
    bytes_ += value;
  }
  template <class T>
  void Put(const std::vector<T>& values) {
    Put(uint64_t{values.size()});
    for (const T& value : values) Put(value);
  }
  template <class T, size_t kSize>
  void Put(const std::array<T, kSize>& values) {
    for (const T& value : values) Put(value);
  }
  template <class T>
  void Put(const std::optional<T>& value) {
    Put(value.has_value());
    if (value) Put(*value);
  }
  template <class A, class B>
  void Put(const std::pair<A, B>& value) {
    (*this)(value.first, value.second);
  }
  template <class Tag, class Rep>
  void Put(const Id<Tag, Rep>& value) {
    Put(value.value);
  }
  template <class Rep, class Period>
  void Put(const std::chrono::duration<Rep, Period>& value) {
    Put(value.count());
  }
  template <class T>
  requires std::is_class_v<T> || std::is_enum_v<T>
  void Put(const T& value) { Fields(*this, value); }

  std::string bytes_;
};

class LogReader {
 public:
  explicit LogReader(std::string_view bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  bool done() const { return ok_ && left_.empty(); }
  void Fail() { ok_ = false; }

  template <class... Values>
  void operator()(Values&... values) {
    (Get(values), ...);
  }
  template <class Enum>
  void EnumUpTo(Enum& value, Enum last) {
    std::underlying_type_t<Enum> number{};
    Get(number);
    if (number > static_cast<std::underlying_type_t<Enum>>(last)) Fail();
    value = ok_ ? static_cast<Enum>(number) : Enum{};
  }

 private:
  template <std::integral T>
  void Get(T& value) {
    uint64_t bits = 0;
    if (left_.size() < sizeof(T)) Fail();
    for (size_t i = 0; ok_ && i < sizeof(T); ++i) bits |= uint64_t{static_cast<uint8_t>(left_[i])} << (8 * i);
    if (ok_) left_.remove_prefix(sizeof(T));
    value = static_cast<T>(bits);
  }
  void Get(float& value) { value = std::bit_cast<float>(Number<uint32_t>()); }
  void Get(double& value) { value = std::bit_cast<double>(Number<uint64_t>()); }
  void Get(std::string& value) {
    const uint64_t size = Number<uint64_t>();
    if (size > left_.size()) Fail();
    value = ok_ ? left_.substr(0, size) : std::string_view();
    left_.remove_prefix(value.size());
  }
  template <class T>
  void Get(std::vector<T>& values) {
    values.clear();
    uint64_t size = Number<uint64_t>();
    if (size > left_.size()) Fail();  // each has a byte at least
    for (; ok_ && size > 0; --size) Get(values.emplace_back());
  }
  template <class T, size_t kSize>
  void Get(std::array<T, kSize>& values) {
    for (T& value : values) Get(value);
  }
  template <class T>
  void Get(std::optional<T>& value) {
    value.reset();
    if (Number<bool>()) Get(value.emplace());
  }
  template <class A, class B>
  void Get(std::pair<A, B>& value) {
    (*this)(value.first, value.second);
  }
  template <class Tag, class Rep>
  void Get(Id<Tag, Rep>& value) {
    Get(value.value);
  }
  template <class Rep, class Period>
  void Get(std::chrono::duration<Rep, Period>& value) {
    value = std::chrono::duration<Rep, Period>(Number<Rep>());
  }
  template <class T>
  requires std::is_class_v<T> || std::is_enum_v<T>
  void Get(T& value) { Fields(*this, value); }
  template <class T>
  T Number() {
    T value{};
    Get(value);
    return value;
  }

  std::string_view left_;
  bool ok_ = true;
};

}  // namespace cachalot::engine
