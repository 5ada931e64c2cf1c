#include "tier/block_packer.h"

#include <utility>

#include "base/crc32c.h"
#include "codec/byte_planes.h"
#include "tier/byte_fields.h"

namespace cachalot::tier {
namespace {

constexpr int kLevel = 1;  // higher ones win next to nothing on KV
constexpr size_t kCrcBytes = 4;

}  // namespace

BlockPacker::BlockPacker() = default;
BlockPacker::~BlockPacker() = default;

Result<codec::BytePlanes*> BlockPacker::Codec() {
  if (codec_ == nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(codec::BytePlanes made, codec::BytePlanes::Make(kLevel));
    codec_ = std::make_unique<codec::BytePlanes>(std::move(made));
  }
  return codec_.get();
}

Result<uint64_t> BlockPacker::Append(std::span<const std::byte> block, uint32_t element_bytes,
                                     std::vector<std::byte>& out) {
  CACHALOT_ASSIGN_OR_RETURN(codec::BytePlanes * codec, Codec());
  CACHALOT_RETURN_IF_ERROR(codec->Encode(block, element_bytes, frame_));
  if (frame_.size() + kCrcBytes >= block.size()) {
    out.insert(out.end(), block.begin(), block.end());
    return uint64_t{block.size()};
  }
  FieldWriter(frame_).U32(Crc32c(block));
  out.insert(out.end(), frame_.begin(), frame_.end());
  return uint64_t{frame_.size()};
}

Status BlockPacker::Unpack(std::span<const std::byte> packed, std::span<std::byte> into) {
  if (packed.size() < kCrcBytes) return Corrupt("packed block cut short");
  CACHALOT_ASSIGN_OR_RETURN(codec::BytePlanes * codec, Codec());
  CACHALOT_RETURN_IF_ERROR(codec->Decode(packed.first(packed.size() - kCrcBytes), into));
  if (FieldReader(packed.last(kCrcBytes)).U32() == Crc32c(into)) return OkStatus();
  return Corrupt("packed block does not match its checksum");
}

}  // namespace cachalot::tier
