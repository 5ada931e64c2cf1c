// BodyBudget bounds the bytes of all request bodies in memory; a BodyCharge is one body's share of it.
// Threads:   any.
// Ownership: a charge gives its bytes back when it is destroyed; the budget must outlive it.
// Invariant: the charges never add up to more than the limit.
// Cost:      one atomic operation per change.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace cachalot::server {

class BodyBudget {
 public:
  explicit BodyBudget(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  friend class BodyCharge;
  bool Take(uint64_t bytes) {
    uint64_t used = used_bytes_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_bytes_ - used) return false;
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void Return(uint64_t bytes) { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  const uint64_t limit_bytes_;
  std::atomic<uint64_t> used_bytes_{0};
};

class BodyCharge {
 public:
  BodyCharge() = default;
  explicit BodyCharge(BodyBudget* budget) : budget_(budget) {}
  BodyCharge(BodyCharge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  BodyCharge& operator=(BodyCharge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BodyCharge() {
    if (budget_ != nullptr) budget_->Return(bytes_);
  }

  // False, and nothing changes, when the budget does not hold that much. Requires a budget.
  bool Grow(uint64_t bytes) {
    if (!budget_->Take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }

 private:
  BodyBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace cachalot::server
