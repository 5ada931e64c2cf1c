// BlockPacker makes blocks smaller on their way to disk, without loss, and what they were on their way back.
// Threads:   belongs to one.
// Ownership: owns its working memory, which grows to the largest block seen.
// Invariant: Unpack gives what was packed, or says that it does not. Whatever it is given, it writes into `into` alone.
// Cost:      linear; codec/byte_planes.h has the codec, and its bench the speed.
//
// A packed block is a frame of codec/byte_planes.h and the CRC-32C of what it unpacks to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace cachalot::codec {
class BytePlanes;
}

namespace cachalot::tier {

class BlockPacker {
 public:
  BlockPacker();
  ~BlockPacker();

  // Appends the packed block to `out` if that is smaller than the block, else the block as it is. The bytes appended.
  // `element_bytes` as BytePlanes takes it.
  Result<uint64_t> Append(std::span<const std::byte> block, uint32_t element_bytes, std::vector<std::byte>& out);
  // kCorrupt when `packed` is not of a block as large as `into`.
  Status Unpack(std::span<const std::byte> packed, std::span<std::byte> into);

 private:
  Result<codec::BytePlanes*> Codec();

  std::unique_ptr<codec::BytePlanes> codec_;  // made when it is first needed
  std::vector<std::byte> frame_;
};

}  // namespace cachalot::tier
