// AlignedBytes is memory that direct file access takes: it begins on a page and grows by whole pages.
// Threads:   belongs to one.
// Ownership: owns its memory; spans of it end with the next Resize.
// Invariant: the address is a multiple of kDiskPage.
// Cost:      Resize allocates only to grow, and keeps nothing of the contents then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/check.h"
#include "tier/disk_format.h"

namespace cachalot::tier {

class AlignedBytes {
 public:
  // `bytes` bytes of unspecified contents.
  std::span<std::byte> Resize(uint64_t bytes) {
    if (bytes > capacity_) {
      capacity_ = ToPages(bytes);
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kDiskPage, capacity_)));
      CACHALOT_CHECK(memory_ != nullptr);
    }
    return {memory_.get(), bytes};
  }
  uint64_t capacity_bytes() const { return capacity_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  uint64_t capacity_ = 0;
};

}  // namespace cachalot::tier
