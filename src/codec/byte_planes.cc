#include "codec/byte_planes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <zstd.h>

#include "base/copy_bytes.h"

namespace cachalot::codec {
namespace {

constexpr std::byte kMagic[4] = {std::byte{'C'}, std::byte{'B'}, std::byte{'P'}, std::byte{'1'}};
constexpr uint64_t kHeaderBytes = 16, kSizeBytes = 4;
// A plane that shrinks by less is stored as it is: the bytes won are not worth the time to unpack them.
constexpr uint64_t kLeastSavingPart = 32;

constexpr bool IsElementSize(uint64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4; }

void PutLittle(uint64_t value, std::span<std::byte> to) {
  for (std::byte& byte : to) {
    byte = static_cast<std::byte>(value);
    value >>= 8;
  }
}

uint64_t GetLittle(std::span<const std::byte> from) {
  uint64_t value = 0;
  for (size_t i = from.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(from[i]);
  return value;
}

template <size_t kStride>
void GatherPlane(const std::byte* elements, size_t count, std::byte* plane) {
  for (size_t i = 0; i < count; ++i) plane[i] = elements[i * kStride];
}

template <size_t kStride>
void ScatterPlane(const std::byte* plane, size_t count, std::byte* elements) {
  for (size_t i = 0; i < count; ++i) elements[i * kStride] = plane[i];
}

void Gather(const std::byte* elements, size_t count, uint32_t stride, std::byte* plane) {
  if (stride == 1) GatherPlane<1>(elements, count, plane);
  if (stride == 2) GatherPlane<2>(elements, count, plane);
  if (stride == 4) GatherPlane<4>(elements, count, plane);
}

void Scatter(const std::byte* plane, size_t count, uint32_t stride, std::byte* elements) {
  if (stride == 1) ScatterPlane<1>(plane, count, elements);
  if (stride == 2) ScatterPlane<2>(plane, count, elements);
  if (stride == 4) ScatterPlane<4>(plane, count, elements);
}

struct Free {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// What a frame says of itself, checked against its own length.
struct Header {
  uint32_t element_bytes = 0;
  uint64_t plane_bytes = 0;
  uint64_t rest_bytes = 0;
  uint64_t stored_bytes[4] = {};
};

Result<Header> ReadHeader(std::span<const std::byte> frame, uint64_t raw_bytes) {
  if (frame.size() < kHeaderBytes || !std::ranges::equal(frame.first(4), kMagic)) {
    return Corrupt("byte planes: not a frame");
  }
  Header header{.element_bytes = std::to_integer<uint32_t>(frame[4])};
  if (!IsElementSize(header.element_bytes) || GetLittle(frame.subspan(5, 3)) != 0) {
    return Corrupt("byte planes: elements of an unknown size");
  }
  if (const uint64_t found = GetLittle(frame.subspan(8, 8)); found != raw_bytes) {
    return Corrupt(fmt::format("byte planes: the frame is of {} bytes, expected {}", found, raw_bytes));
  }
  header.plane_bytes = raw_bytes / header.element_bytes;
  header.rest_bytes = raw_bytes % header.element_bytes;
  uint64_t expected = kHeaderBytes + header.element_bytes * kSizeBytes + header.rest_bytes;
  if (frame.size() < expected) return Corrupt("byte planes: the frame is cut short");
  for (uint32_t plane = 0; plane < header.element_bytes; ++plane) {
    header.stored_bytes[plane] = GetLittle(frame.subspan(kHeaderBytes + plane * kSizeBytes, kSizeBytes));
    if (header.stored_bytes[plane] > header.plane_bytes)
      return Corrupt("byte planes: a plane is larger than it may be");
    expected += header.stored_bytes[plane];
  }
  if (frame.size() != expected) {
    return Corrupt(fmt::format("byte planes: the frame has {} bytes, expected {}", frame.size(), expected));
  }
  return header;
}

}  // namespace

struct BytePlanes::Contexts {
  int level = 1;
  std::unique_ptr<ZSTD_CCtx, Free> compress{ZSTD_createCCtx()};
  std::unique_ptr<ZSTD_DCtx, Free> decompress{ZSTD_createDCtx()};
  std::vector<std::byte> plane;

  // Stores `plane`, and says in how many bytes. Requires as much room as it has.
  size_t Pack(std::span<std::byte> to);
  // Fills `plane`. Whether these bytes are just one stream of its size.
  bool Unpack(std::span<const std::byte> stored);
};

size_t BytePlanes::Contexts::Pack(std::span<std::byte> to) {
  const size_t room = plane.size() - std::max<size_t>(plane.size() / kLeastSavingPart, 1);
  const size_t bytes = ZSTD_compressCCtx(compress.get(), to.data(), room, plane.data(), plane.size(), level);
  if (!ZSTD_isError(bytes)) return bytes;
  CopyBytes(plane, to);  // it did not fit
  return plane.size();
}

// The magic number keeps out the formats of old versions, which the library reads too.
bool BytePlanes::Contexts::Unpack(std::span<const std::byte> stored) {
  if (stored.size() < 4 || GetLittle(stored.first(4)) != ZSTD_MAGICNUMBER) return false;
  if (ZSTD_findFrameCompressedSize(stored.data(), stored.size()) != stored.size()) return false;
  return ZSTD_decompressDCtx(decompress.get(), plane.data(), plane.size(), stored.data(), stored.size()) ==
         plane.size();
}

BytePlanes::BytePlanes(std::unique_ptr<Contexts> contexts) : contexts_(std::move(contexts)) {}
BytePlanes::~BytePlanes() = default;
BytePlanes::BytePlanes(BytePlanes&&) noexcept = default;
BytePlanes& BytePlanes::operator=(BytePlanes&&) noexcept = default;

Result<BytePlanes> BytePlanes::Make(int level) {
  if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel()) {
    return Invalid(fmt::format("zstd level {}: expected {} to {}", level, ZSTD_minCLevel(), ZSTD_maxCLevel()));
  }
  auto contexts = std::make_unique<Contexts>();
  contexts->level = level;
  if (contexts->compress == nullptr || contexts->decompress == nullptr) return Internal("zstd: no memory");
  return BytePlanes(std::move(contexts));
}

uint64_t BytePlanes::FrameBound(uint64_t raw_bytes, uint32_t element_bytes) {
  return kHeaderBytes + element_bytes * kSizeBytes + raw_bytes;
}

Status BytePlanes::Encode(std::span<const std::byte> raw, uint32_t element_bytes, std::vector<std::byte>& frame) {
  if (!IsElementSize(element_bytes)) {
    return Invalid(fmt::format("byte planes: elements of {} bytes, expected 1, 2 or 4", element_bytes));
  }
  if (raw.size() > kMostRawBytes) {
    return Invalid(fmt::format("byte planes: {} bytes, expected at most {}", raw.size(), kMostRawBytes));
  }
  const size_t plane_bytes = raw.size() / element_bytes, rest_bytes = raw.size() % element_bytes;
  contexts_->plane.resize(plane_bytes);
  frame.resize(FrameBound(raw.size(), element_bytes));
  const std::span<std::byte> out(frame);
  std::ranges::copy(kMagic, out.begin());
  PutLittle(element_bytes, out.subspan(4, 4));
  PutLittle(raw.size(), out.subspan(8, 8));

  size_t end = kHeaderBytes + element_bytes * kSizeBytes;
  for (uint32_t plane = 0; plane < element_bytes; ++plane) {
    size_t stored = 0;
    if (plane_bytes > 0) {
      Gather(raw.data() + plane, plane_bytes, element_bytes, contexts_->plane.data());
      stored = contexts_->Pack(out.subspan(end, plane_bytes));
    }
    PutLittle(stored, out.subspan(kHeaderBytes + plane * kSizeBytes, kSizeBytes));
    end += stored;
  }
  CopyBytes(raw.last(rest_bytes), out.subspan(end));
  frame.resize(end + rest_bytes);
  return OkStatus();
}

Status BytePlanes::Decode(std::span<const std::byte> frame, std::span<std::byte> into) {
  CACHALOT_ASSIGN_OR_RETURN(const Header header, ReadHeader(frame, into.size()));
  contexts_->plane.resize(header.plane_bytes);
  std::span<const std::byte> rest = frame.subspan(kHeaderBytes + header.element_bytes * kSizeBytes);
  for (uint32_t plane = 0; plane < header.element_bytes; ++plane) {
    const std::span<const std::byte> stored = rest.first(header.stored_bytes[plane]);
    rest = rest.subspan(stored.size());
    if (header.plane_bytes == 0) continue;
    const bool packed = stored.size() < header.plane_bytes;
    if (packed && !contexts_->Unpack(stored)) {
      return Corrupt(fmt::format("byte planes: plane {} cannot be unpacked", plane));
    }
    Scatter(packed ? contexts_->plane.data() : stored.data(), header.plane_bytes, header.element_bytes,
            into.data() + plane);
  }
  CopyBytes(rest, into.last(header.rest_bytes));
  return OkStatus();
}

}  // namespace cachalot::codec
