// BytePlanes packs the bytes of KV without loss, for tiers where room or bandwidth is dearer than time: the first bytes
// of all elements, then the second ones, and so on, each plane compressed by zstd on its own. Signs and exponents
// repeat, mantissas hardly do.
// Threads:   one BytePlanes belongs to one thread.
// Ownership: owns its working memory, which grows to the largest plane seen and zstd's own.
// Invariant: Decode(Encode(x)) is x; equal bytes, element size and level give equal frames. No frame, however it is
//            forged, makes Decode write past `into` or allocate more than its size.
// Cost:      linear; src/codec/byte_planes_bench.cc measures it.
//
// A frame, little endian:
//   "CBP1", element_bytes u8, three zero bytes, raw_bytes u64, stored_bytes u32 of each plane,
//   the planes: as they are where stored_bytes is their size, else one zstd stream,
//   the raw_bytes % element_bytes bytes that are left over, as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace cachalot::codec {

class BytePlanes {
 public:
  static constexpr uint64_t kMostRawBytes = uint64_t{1} << 30;

  // A level of zstd: larger is smaller and slower, negative is faster. kInvalid outside its range.
  static Result<BytePlanes> Make(int level);
  ~BytePlanes();
  BytePlanes(BytePlanes&&) noexcept;
  BytePlanes& operator=(BytePlanes&&) noexcept;

  // Replaces `frame`. kInvalid when element_bytes is not 1, 2 or 4, or raw is larger than kMostRawBytes.
  Status Encode(std::span<const std::byte> raw, uint32_t element_bytes, std::vector<std::byte>& frame);
  // Fills `into`. kCorrupt, with any contents in it, when this is no frame of exactly so many bytes.
  Status Decode(std::span<const std::byte> frame, std::span<std::byte> into);

  // The largest frame of so many bytes.
  static uint64_t FrameBound(uint64_t raw_bytes, uint32_t element_bytes);

 private:
  struct Contexts;
  explicit BytePlanes(std::unique_ptr<Contexts> contexts);
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace cachalot::codec
