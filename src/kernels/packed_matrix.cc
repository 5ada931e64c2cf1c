#include "kernels/packed_matrix.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/thread_pool.h"
#include "kernels/dequantize.h"
#include "kernels/half-inl.h"
#include "kernels/quant_blocks.h"

namespace cachalot::kernels {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kMapBytes = 2 << 20;  // from here on memory is mapped, in huge pages where the system has them

bool IsFloat(TensorType type) { return FormatOf(type).bits == 0; }

uint64_t PanelBytes(TensorType type, uint64_t columns) {
  if (IsFloat(type)) return (columns * kPanelRows * FloatBytes(type) + kAlignment - 1) / kAlignment * kAlignment;
  const QuantFormat format = FormatOf(type);
  const uint64_t scale_blocks = columns / kGroup / GroupsPerScaleBlock(format.scales);
  const uint64_t bytes = ScalesOffset(format, columns) + scale_blocks * ScaleBlockBytes(format.scales);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t SourceRowBytes(TensorType type, uint64_t columns) {
  const TensorTypeInfo& info = InfoOf(type);
  return columns / info.block_values * info.block_bytes;
}

Status CheckSource(TensorType type, uint32_t rows, uint32_t columns, uint64_t bytes) {
  const TensorTypeInfo& info = InfoOf(type);
  const std::string what =
      std::string(info.name) + " matrix [" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
  if (rows == 0 || columns == 0) return Invalid(what + ": both sizes must be at least 1");
  if (columns % info.block_values != 0) {
    return Invalid(what + ": columns must be a multiple of " + std::to_string(info.block_values));
  }
  const uint64_t row_bytes = SourceRowBytes(type, columns);
  if (bytes / row_bytes != rows || bytes % row_bytes != 0) {
    return Invalid(what + ": expected " + std::to_string(rows) + " rows of " + std::to_string(row_bytes) +
                   " bytes, got " + std::to_string(bytes) + " bytes");
  }
  return OkStatus();
}

void Put16(std::byte* p, uint16_t value) { std::memcpy(p, &value, sizeof value); }
uint16_t Get16(const std::byte* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Where row `lane` of a panel keeps the weights of its groups, and their scales.
class PanelLane {
 public:
  PanelLane(TensorType type, uint64_t columns, std::byte* panel, uint32_t lane)
      : format_(FormatOf(type)), weights_(panel), scales_(panel + ScalesOffset(format_, columns)), lane_(lane) {}

  void Write(uint64_t group, const QuantGroup& values) {
    WriteWeights(weights_ + group * WeightBytesPerGroup(format_.bits), values.weights);
    std::byte* block = ScaleBlock(group);
    Put16(block + 2 * lane_, values.d);
    if (HasMin(format_.scales)) Put16(block + 2 * kPanelRows + 2 * lane_, values.min);
    if (GroupsPerScaleBlock(format_.scales) == 1) return;
    for (uint32_t i = 0; i < 2; ++i) block[GroupScale(group, i)] = std::byte{values.scales[i]};
  }

  QuantGroup Read(uint64_t group) const {
    QuantGroup values;
    ReadWeights(weights_ + group * WeightBytesPerGroup(format_.bits), values.weights);
    const std::byte* block = ScaleBlock(group);
    values.d = Get16(block + 2 * lane_);
    if (HasMin(format_.scales)) values.min = Get16(block + 2 * kPanelRows + 2 * lane_);
    if (GroupsPerScaleBlock(format_.scales) == 1) return values;
    for (uint32_t i = 0; i < 2; ++i) values.scales[i] = static_cast<uint8_t>(block[GroupScale(group, i)]);
    return values;
  }

 private:
  std::byte* ScaleBlock(uint64_t group) const {
    return scales_ + group / GroupsPerScaleBlock(format_.scales) * ScaleBlockBytes(format_.scales);
  }
  uint64_t GroupScale(uint64_t group, uint32_t i) const {
    const uint64_t header = (HasMin(format_.scales) ? 4 : 2) * kPanelRows;
    return header + (group % GroupsPerScaleBlock(format_.scales) * 2 + i) * kPanelRows + lane_;
  }

  // Columns 4s to 4s + 3 of the group are the bytes 4*lane to 4*lane + 3 of step s.
  void WriteWeights(std::byte* at, const uint8_t* weights) {
    for (uint32_t step = 0; step < 8; ++step) {
      uint32_t four;
      std::memcpy(&four, weights + 4 * step, sizeof four);
      if (format_.bits == 8) {
        OrWord(at, step, four);
        continue;
      }
      OrWord(at, step / 2, (four & 0x0f0f0f0fu) << (step % 2 * 4));
      const uint32_t top = (four >> 4) & 0x03030303u;
      if (format_.bits == 5) OrWord(at, 4, top << step);
      if (format_.bits == 6) OrWord(at, 4 + step / 4, top << (step % 4 * 2));
    }
  }

  void ReadWeights(const std::byte* at, uint8_t* weights) const {
    for (uint32_t step = 0; step < 8; ++step) {
      uint32_t four;
      if (format_.bits == 8) {
        four = Word(at, step);
      } else {
        four = (Word(at, step / 2) >> (step % 2 * 4)) & 0x0f0f0f0fu;
        if (format_.bits == 5) four |= ((Word(at, 4) >> step) & 0x01010101u) << 4;
        if (format_.bits == 6) four |= ((Word(at, 4 + step / 4) >> (step % 4 * 2)) & 0x03030303u) << 4;
      }
      std::memcpy(weights + 4 * step, &four, sizeof four);
    }
  }

  // This lane's four bytes of the 64-byte chunk `chunk`.
  uint32_t Word(const std::byte* at, uint32_t chunk) const {
    uint32_t word;
    std::memcpy(&word, at + 64 * chunk + 4 * lane_, sizeof word);
    return word;
  }
  void OrWord(std::byte* at, uint32_t chunk, uint32_t bits) {
    const uint32_t word = Word(at, chunk) | bits;
    std::memcpy(at + 64 * chunk + 4 * lane_, &word, sizeof word);
  }

  QuantFormat format_;
  std::byte* weights_;
  std::byte* scales_;
  uint32_t lane_;
};

// The panel must be zero.
void PackQuantRow(TensorType type, uint32_t columns, const std::byte* source, std::byte* panel, uint32_t lane) {
  PanelLane out(type, columns, panel, lane);
  for (uint64_t group = 0; group < columns / kGroup; ++group) out.Write(group, ReadGroup(type, source, group));
}

void PackFloatRow(TensorType type, uint32_t columns, const std::byte* source, std::byte* panel, uint32_t lane) {
  const uint32_t size = FloatBytes(type);
  for (uint64_t k = 0; k < columns; ++k) std::memcpy(panel + (k * kPanelRows + lane) * size, source + k * size, size);
}

void PackRowAsF32(TensorType type, uint32_t columns, const std::byte* source, std::byte* panel, uint32_t lane) {
  const TensorTypeInfo& info = InfoOf(type);
  float values[256];
  for (uint64_t k = 0; k < columns;) {
    const uint64_t count = std::min<uint64_t>(columns - k, 256);  // 256 is a multiple of every block
    Dequantize(type, source + k / info.block_values * info.block_bytes, count, values);
    for (uint64_t i = 0; i < count; ++i, ++k) {
      std::memcpy(panel + (k * kPanelRows + lane) * sizeof(float), values + i, sizeof(float));
    }
  }
}

}  // namespace

void PackedMatrix::Free::operator()(std::byte* p) const {
  if (mapped_bytes == 0) {
    std::free(p);
  } else {
    munmap(p, mapped_bytes);
  }
}

Result<PackedMatrix> PackedMatrix::Allocate(TensorType type, uint32_t rows, uint32_t columns) {
  PackedMatrix out;
  out.type_ = type;
  out.rows_ = rows;
  out.columns_ = columns;
  out.panel_bytes_ = PanelBytes(type, columns);
  const Status no_memory = Unavailable("no memory for " + std::to_string(out.panels()) + " weight panels of " +
                                       std::to_string(out.panel_bytes_) + " bytes");
  if (out.panels() > SIZE_MAX / 2 / out.panel_bytes_) return no_memory;
  const uint64_t bytes = out.bytes();
  if (bytes < kMapBytes) {
    void* p = std::aligned_alloc(kAlignment, bytes);
    if (p == nullptr) return no_memory;
    std::memset(p, 0, bytes);
    out.data_ = {static_cast<std::byte*>(p), Free()};
    return out;
  }
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return no_memory;
  madvise(p, bytes, MADV_HUGEPAGE);  // a wish: small pages do too
  out.data_ = {static_cast<std::byte*>(p), Free(bytes)};
  return out;
}

Result<PackedMatrix> PackedMatrix::PackRows(TensorType stored, const Source& source, ThreadPool& pool,
                                            PackRow pack_row) {
  CACHALOT_RETURN_IF_ERROR(CheckSource(source.type, source.rows, source.columns, source.bytes.size()));
  CACHALOT_ASSIGN_OR_RETURN(PackedMatrix out, Allocate(stored, source.rows, source.columns));
  const uint64_t row_bytes = SourceRowBytes(source.type, source.columns);
  pool.ParallelFor(out.panels(), [&](size_t panel) {
    const uint64_t first = uint64_t{panel} * kPanelRows;
    const uint64_t last = std::min<uint64_t>(first + kPanelRows, source.rows);
    std::byte* to = out.data_.get() + panel * out.panel_bytes_;
    for (uint64_t row = first; row < last; ++row) {
      pack_row(source.type, source.columns, source.bytes.data() + row * row_bytes, to,
               static_cast<uint32_t>(row - first));
    }
  });
  return out;
}

Result<PackedMatrix> PackedMatrix::Pack(TensorType type, uint32_t rows, uint32_t columns,
                                        std::span<const std::byte> bytes, ThreadPool& pool) {
  return PackRows(type, {type, rows, columns, bytes}, pool, IsFloat(type) ? PackFloatRow : PackQuantRow);
}

Result<PackedMatrix> PackedMatrix::PackAsF32(TensorType type, uint32_t rows, uint32_t columns,
                                             std::span<const std::byte> bytes, ThreadPool& pool) {
  return PackRows(TensorType::kF32, {type, rows, columns, bytes}, pool, PackRowAsF32);
}

bool PackedMatrix::takes_quantised() const { return !IsFloat(type_); }

void PackedMatrix::DequantiseRow(uint32_t row, float* out) const {
  CACHALOT_CHECK(row < rows_);
  std::byte* panel = data_.get() + row / kPanelRows * panel_bytes_;
  const uint32_t lane = row % kPanelRows;
  if (takes_quantised()) {
    const PanelLane in(type_, columns_, panel, lane);
    for (uint64_t group = 0; group < columns_ / kGroup; ++group) {
      DequantizeGroup(type_, in.Read(group), out + group * kGroup);
    }
    return;
  }
  const uint32_t size = FloatBytes(type_);
  for (uint64_t k = 0; k < columns_; ++k) Dequantize(type_, panel + (k * kPanelRows + lane) * size, 1, out + k);
}

}  // namespace cachalot::kernels
