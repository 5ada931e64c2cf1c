// StagingPool is the memory through which bytes pass on their way to or from a disk or a peer; Staging holds a part.
// Threads:   a pool belongs to whoever guards it; a Staging is dropped by the owner's thread.
// Ownership: a Staging gives its part back when it is destroyed; its home must outlive it.
// Invariant: parts begin at multiples of 4096 and do not overlap; taken_bytes(), counted in whole pages of 4096, never
//            exceeds the memory that the pool was given.
// Cost:      O(free parts): first fit, neighbours joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace cachalot::tier {

class StagingPool {
 public:
  static constexpr uint64_t kPage = 4096;

  // Requires memory that begins at a multiple of 4096; what is beyond its last whole page stays unused.
  explicit StagingPool(std::span<std::byte> memory);

  bool Fits(uint64_t bytes) const;
  // Exactly `bytes` in one piece, or nothing. Requires bytes > 0.
  std::optional<std::span<std::byte>> Take(uint64_t bytes);
  // Requires a part that was taken.
  void GiveBack(std::span<std::byte> part);

  uint64_t total_bytes() const { return memory_.size(); }
  uint64_t taken_bytes() const { return taken_bytes_; }

 private:
  std::map<uint64_t, uint64_t>::const_iterator FirstFit(uint64_t bytes) const;

  const std::span<std::byte> memory_;
  std::map<uint64_t, uint64_t> free_;  // bytes by offset; no two are neighbours
  uint64_t taken_bytes_ = 0;
};

// Where a Staging goes back to.
class StagingHome {
 public:
  virtual void GiveBack(std::span<std::byte> part) = 0;

 protected:
  ~StagingHome() = default;
};

class Staging {
 public:
  Staging() = default;
  Staging(StagingHome* home, std::span<std::byte> part) : home_(home), bytes_(part) {}
  Staging(Staging&& other) noexcept
      : home_(std::exchange(other.home_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}
  Staging& operator=(Staging&& other) noexcept {
    std::swap(home_, other.home_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Staging() {
    if (home_ != nullptr) home_->GiveBack(bytes_);
  }

  // Empty when it holds none.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  StagingHome* home_ = nullptr;
  std::span<std::byte> bytes_;
};

}  // namespace cachalot::tier
