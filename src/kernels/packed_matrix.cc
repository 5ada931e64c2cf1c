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
template <class Byte>  // std::byte, or const to read
class PanelLane {
 public:
  PanelLane(TensorType type, uint64_t columns, Byte* panel, uint32_t lane)
      : format_(FormatOf(type)), weights_(panel), scales_(panel + ScalesOffset(format_, columns)), lane_(lane) {}

  void Write(uint64_t group, const QuantGroup& values) {
    WriteWeights(weights_ + group * WeightBytesPerGroup(format_.bits), values.weights);
    Byte* block = ScaleBlock(group);
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
  Byte* ScaleBlock(uint64_t group) const {
    return scales_ + group / GroupsPerScaleBlock(format_.scales) * ScaleBlockBytes(format_.scales);
  }
  uint64_t GroupScale(uint64_t group, uint32_t i) const {
    const uint64_t header = (HasMin(format_.scales) ? 4 : 2) * kPanelRows;
    return header + (group % GroupsPerScaleBlock(format_.scales) * 2 + i) * kPanelRows + lane_;
  }

  // Columns 4s to 4s + 3 of the group are the bytes 4*lane to 4*lane + 3 of step s.
  void WriteWeights(Byte* at, const uint8_t* weights) {
    uint32_t steps[8];
    std::memcpy(steps, weights, sizeof steps);
    if (format_.bits == 8) {
      for (uint32_t step = 0; step < 8; ++step) PutWord(at, step, steps[step]);
      return;
    }
    uint32_t fifth = 0, top[2] = {};
    for (uint32_t step = 0; step < 8; ++step) {
      const uint32_t high = (steps[step] >> 4) & 0x03030303u;
      fifth |= high << step;
      top[step / 4] |= high << (step % 4 * 2);
      steps[step] &= 0x0f0f0f0fu;
    }
    for (uint32_t chunk = 0; chunk < 4; ++chunk) PutWord(at, chunk, steps[2 * chunk] | steps[2 * chunk + 1] << 4);
    if (format_.bits == 5) PutWord(at, 4, fifth);
    if (format_.bits == 6) PutWord(at, 4, top[0]);
    if (format_.bits == 6) PutWord(at, 5, top[1]);
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
  void PutWord(Byte* at, uint32_t chunk, uint32_t word) {
    std::memcpy(at + 64 * chunk + 4 * lane_, &word, sizeof word);
  }

  QuantFormat format_;
  Byte* weights_;
  Byte* scales_;
  uint32_t lane_;
};

// Rows of a panel lie side by side in it: a few groups of all rows, then the next ones, stay in the fastest cache.
void PackQuantPanel(const PackSource& source, uint64_t first_row, uint32_t rows, std::byte* panel) {
  constexpr uint64_t kGroupsAtOnce = 8;
  const uint64_t row_bytes = SourceRowBytes(source.type, source.columns);
  const uint64_t groups = source.columns / kGroup;
  QuantGroup values[kGroupsAtOnce];
  for (uint64_t first = 0; first < groups; first += kGroupsAtOnce) {
    const std::span<QuantGroup> some(values, std::min(kGroupsAtOnce, groups - first));
    for (uint32_t lane = 0; lane < rows; ++lane) {
      ReadGroups(source.type, source.bytes.data() + (first_row + lane) * row_bytes, first, some);
      PanelLane out(source.type, source.columns, panel, lane);
      for (uint64_t i = 0; i < some.size(); ++i) out.Write(first + i, some[i]);
    }
  }
}

void PackFloatPanel(const PackSource& source, uint64_t first_row, uint32_t rows, std::byte* panel) {
  const uint32_t size = FloatBytes(source.type);
  for (uint32_t lane = 0; lane < rows; ++lane) {
    const std::byte* row = source.bytes.data() + (first_row + lane) * source.columns * size;
    for (uint64_t k = 0; k < source.columns; ++k) {
      std::memcpy(panel + (k * kPanelRows + lane) * size, row + k * size, size);
    }
  }
}

void PackPanelAsF32(const PackSource& source, uint64_t first_row, uint32_t rows, std::byte* panel) {
  const TensorTypeInfo& info = InfoOf(source.type);
  const uint64_t row_bytes = SourceRowBytes(source.type, source.columns);
  float values[256];
  for (uint32_t lane = 0; lane < rows; ++lane) {
    const std::byte* row = source.bytes.data() + (first_row + lane) * row_bytes;
    for (uint64_t k = 0; k < source.columns;) {
      const uint64_t count = std::min<uint64_t>(source.columns - k, 256);  // 256 is a multiple of every block
      Dequantize(source.type, row + k / info.block_values * info.block_bytes, count, values);
      for (uint64_t i = 0; i < count; ++i, ++k) {
        std::memcpy(panel + (k * kPanelRows + lane) * sizeof(float), values + i, sizeof(float));
      }
    }
  }
}

}  // namespace

PackedMatrix::PackedMatrix(TensorType type, uint32_t rows, uint32_t columns)
    : type_(type), rows_(rows), columns_(columns), panel_bytes_(PanelBytes(type, columns)) {}

Result<PackedMatrix> PackedMatrix::OfPanels(TensorType type, uint32_t rows, uint32_t columns,
                                            std::shared_ptr<const std::byte> panels, uint64_t bytes) {
  PackedMatrix out(type, rows, columns);
  if (rows == 0 || columns == 0 || bytes / out.panels() != out.panel_bytes_ || bytes % out.panel_bytes_ != 0) {
    return Invalid(std::to_string(bytes) + " bytes are no panels of " + InfoOf(type).name + " [" +
                   std::to_string(rows) + ", " + std::to_string(columns) + "]");
  }
  out.data_ = std::move(panels);
  return out;
}

namespace {

// Zeros, or null.
std::shared_ptr<std::byte> AllocatePanels(uint64_t bytes) {
  if (bytes < kMapBytes) {
    void* p = std::aligned_alloc(kAlignment, bytes);
    if (p == nullptr) return nullptr;
    std::memset(p, 0, bytes);
    return {static_cast<std::byte*>(p), [](std::byte* panels) { std::free(panels); }};
  }
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, bytes, MADV_HUGEPAGE);  // a wish: small pages do too
  return {static_cast<std::byte*>(p), [bytes](std::byte* panels) { munmap(panels, bytes); }};
}

}  // namespace

Result<PanelPacker> PanelPacker::Start(const PackSource& source, PackAs as) {
  CACHALOT_RETURN_IF_ERROR(CheckSource(source.type, source.rows, source.columns, source.bytes.size()));
  const TensorType stored = as == PackAs::kF32 ? TensorType::kF32 : source.type;
  PanelPacker packer;
  PackedMatrix& matrix = packer.matrix_ = PackedMatrix(stored, source.rows, source.columns);
  if (matrix.panels() <= SIZE_MAX / 2 / matrix.panel_bytes_) {
    std::shared_ptr<std::byte> panels = AllocatePanels(matrix.bytes());
    packer.panels_ = panels.get();
    matrix.data_ = std::move(panels);
  }
  if (packer.panels_ == nullptr) {
    return Unavailable("no memory for " + std::to_string(matrix.panels()) + " weight panels of " +
                       std::to_string(matrix.panel_bytes_) + " bytes");
  }
  packer.source_ = source;
  packer.pack_ = as == PackAs::kF32 ? PackPanelAsF32 : IsFloat(source.type) ? PackFloatPanel : PackQuantPanel;
  return packer;
}

uint64_t PanelPacker::source_panel_bytes() const { return kPanelRows * SourceRowBytes(source_.type, source_.columns); }

void PanelPacker::PackPanel(uint32_t panel) {
  const uint64_t first = uint64_t{panel} * kPanelRows;
  const auto rows = static_cast<uint32_t>(std::min<uint64_t>(kPanelRows, source_.rows - first));
  pack_(source_, first, rows, panels_ + panel * matrix_.panel_bytes_);
}

namespace {

Result<PackedMatrix> PackAll(const PackSource& source, PackAs as, ThreadPool& pool) {
  CACHALOT_ASSIGN_OR_RETURN(PanelPacker packer, PanelPacker::Start(source, as));
  pool.ParallelFor(packer.panels(), [&](size_t panel) { packer.PackPanel(static_cast<uint32_t>(panel)); });
  return std::move(packer).Finish();
}

}  // namespace

Result<PackedMatrix> PackedMatrix::Pack(TensorType type, uint32_t rows, uint32_t columns,
                                        std::span<const std::byte> bytes, ThreadPool& pool) {
  return PackAll({type, rows, columns, bytes}, PackAs::kItsType, pool);
}

Result<PackedMatrix> PackedMatrix::PackAsF32(TensorType type, uint32_t rows, uint32_t columns,
                                             std::span<const std::byte> bytes, ThreadPool& pool) {
  return PackAll({type, rows, columns, bytes}, PackAs::kF32, pool);
}

bool PackedMatrix::takes_quantised() const { return !IsFloat(type_); }

void PackedMatrix::DequantiseRow(uint32_t row, float* out) const {
  CACHALOT_CHECK(row < rows_);
  const std::byte* panel = data_.get() + row / kPanelRows * panel_bytes_;
  const uint32_t lane = row % kPanelRows;
  if (takes_quantised()) {
    const PanelLane<const std::byte> in(type_, columns_, panel, lane);
    for (uint64_t group = 0; group < columns_ / kGroup; ++group) {
      DequantizeGroup(type_, in.Read(group), out + group * kGroup);
    }
    return;
  }
  const uint32_t size = FloatBytes(type_);
  for (uint64_t k = 0; k < columns_; ++k) Dequantize(type_, panel + (k * kPanelRows + lane) * size, 1, out + k);
}

}  // namespace cachalot::kernels
