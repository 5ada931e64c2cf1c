// Any bytes as a frame of byte planes: it is refused as corrupt or fills just its place, the same way twice. The same
// bytes as KV: they come back from their frame, and what becomes of that frame when some of it is overwritten is no
// less harmless.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "codec/byte_planes.h"

namespace {

using cachalot::Code;
using cachalot::Status;
using cachalot::codec::BytePlanes;

void CheckDecode(BytePlanes& codec, std::span<const std::byte> frame, size_t raw_bytes) {
  std::vector<std::byte> first(raw_bytes), second(raw_bytes, std::byte{1});
  const Status status = codec.Decode(frame, first);
  CACHALOT_CHECK(status.ok() || status.code() == Code::kCorrupt);
  CACHALOT_CHECK(codec.Decode(frame, second).ok() == status.ok());
  if (status.ok()) CACHALOT_CHECK(first == second);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static BytePlanes codec = BytePlanes::Make(1).value();
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  // The size that the frame itself claims, so that the fuzzer comes past that check, within reason.
  uint64_t claimed = 0;
  for (size_t i = std::min<size_t>(size, 16); i-- > 8;) claimed = claimed << 8 | data[i];
  CheckDecode(codec, bytes, std::min<uint64_t>(claimed, 1 << 16));

  for (const uint32_t element_bytes : {1u, 2u, 4u}) {
    std::vector<std::byte> frame, back(size);
    CACHALOT_CHECK(codec.Encode(bytes, element_bytes, frame).ok());
    CACHALOT_CHECK(codec.Decode(frame, back).ok());
    CACHALOT_CHECK(std::ranges::equal(bytes, back));
    for (size_t i = 0; i + 2 < size && i < 12; i += 3) {
      frame[(data[i] | data[i + 1] << 8) % frame.size()] = static_cast<std::byte>(data[i + 2]);
    }
    CheckDecode(codec, frame, size);
  }
  return 0;
}
