// FieldWriter and FieldReader: fixed-width fields in little-endian bytes, as files hold them.
// Threads:   each belongs to one.
// Ownership: a writer appends to a vector, a reader walks over bytes; both borrow.
// Invariant: a reader never passes the end: past it ok() is false and all fields are zero.
// Cost:      one small copy per field.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cachalot::tier {

class FieldWriter {
 public:
  explicit FieldWriter(std::vector<std::byte>& out) : out_(out) {}

  void U32(uint32_t value) { Unsigned(value, 4); }
  void U64(uint64_t value) { Unsigned(value, 8); }
  void Bytes(std::span<const uint8_t> bytes) {
    const std::span<const std::byte> raw = std::as_bytes(bytes);
    out_.insert(out_.end(), raw.begin(), raw.end());
  }

 private:
  void Unsigned(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  std::vector<std::byte>& out_;
};

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  size_t left() const { return left_.size(); }

  uint32_t U32() { return static_cast<uint32_t>(Unsigned(4)); }
  uint64_t U64() { return Unsigned(8); }
  template <size_t kBytes>
  std::array<uint8_t, kBytes> Bytes() {
    std::array<uint8_t, kBytes> out{};
    if (!Has(kBytes)) return out;
    for (size_t i = 0; i < kBytes; ++i) out[i] = static_cast<uint8_t>(left_[i]);
    left_ = left_.subspan(kBytes);
    return out;
  }
  // Of any length; empty past the end.
  std::span<const std::byte> Take(size_t bytes) {
    if (!Has(bytes)) return {};
    const std::span<const std::byte> taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }

 private:
  bool Has(size_t bytes) { return ok_ = ok_ && left_.size() >= bytes; }
  uint64_t Unsigned(size_t bytes) {
    if (!Has(bytes)) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(left_[i]) << (8 * i);
    left_ = left_.subspan(bytes);
    return value;
  }
  std::span<const std::byte> left_;
  bool ok_ = true;
};

}  // namespace cachalot::tier
