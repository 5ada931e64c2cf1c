// PackedMatrix holds one weight matrix, W [rows, columns], in the panel layout that the matmul kernels read.
// Threads:   immutable once packed; any thread may read.
// Ownership: owns its bytes (64-byte aligned), alone or with others; the source bytes may go away after Pack.
// Invariant: the layout is the same for every instruction set, and the weights it represents are exactly those of
//            the source format. Rows are padded to a multiple of kPanelRows with zero weights.
// Cost:      about the source's bytes per weight; Pack is linear, parallel over panels.
//
// Arithmetic (docs/architecture.md, numbers). Quantised formats: x is quantised per row and group of 32; per group
// isum = sum q_w*q_x exactly in int32 (Q6_K: two 16-element sums times their integer scales), then
// acc = fma(float(isum), d_w*d_x, acc); formats with a minimum add acc = fma(float(xsum), m_w*d_x, acc) after it, xsum
// the exact integer sum of q_x over the group; groups ascend. d_w and m_w are f32 products as GGUF dequantisation
// forms them. Float formats: acc = fma(w, x, acc), k ascending, x in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/status.h"
#include "base/tensor_type.h"
#include "kernels/panel_view.h"

namespace cachalot {
class ThreadPool;
}

namespace cachalot::kernels {

// Names the layout of panels (panel_view.h): same id, same bytes. Bumped with every change of them.
inline constexpr const char* kPanelLayoutId = "cachalot.panels.1";

class PackedMatrix {
 public:
  PackedMatrix() = default;  // empty
  // kInvalid when `bytes` does not hold exactly rows*columns elements of `type`, kUnavailable without memory for it.
  static Result<PackedMatrix> Pack(TensorType type, uint32_t rows, uint32_t columns, std::span<const std::byte> bytes,
                                   ThreadPool& pool);
  // The same weights dequantised to F32: the form of --reference.
  static Result<PackedMatrix> PackAsF32(TensorType type, uint32_t rows, uint32_t columns,
                                        std::span<const std::byte> bytes, ThreadPool& pool);

  // Of panels that were packed before, which `panels` keeps alive: bytes() of them, 64-byte aligned. kInvalid when
  // there are not exactly as many as this shape has.
  static Result<PackedMatrix> OfPanels(TensorType type, uint32_t rows, uint32_t columns,
                                       std::shared_ptr<const std::byte> panels, uint64_t bytes);

  TensorType type() const { return type_; }
  uint32_t rows() const { return rows_; }
  uint32_t columns() const { return columns_; }
  uint32_t panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }
  // Whether x must be quantised for this matrix.
  bool takes_quantised() const;
  uint64_t bytes() const { return panel_bytes_ * panels(); }
  // What KernelTable::matmul takes; valid while this matrix lives and does not move.
  PanelView view() const { return {data_.get(), panel_bytes_, rows_, columns_, type_}; }
  std::span<const std::byte> contents() const { return {data_.get(), bytes()}; }

  // out[columns] = row r, dequantised exactly as GGUF does.
  void DequantiseRow(uint32_t row, float* out) const;

 private:
  friend class PanelPacker;
  PackedMatrix(TensorType type, uint32_t rows, uint32_t columns);

  TensorType type_ = TensorType::kF32;
  uint32_t rows_ = 0;
  uint32_t columns_ = 0;
  uint64_t panel_bytes_ = 0;
  std::shared_ptr<const std::byte> data_;
};

enum class PackAs : uint8_t { kItsType, kF32 };

// What a matrix is packed from: all its bytes.
struct PackSource {
  TensorType type;
  uint32_t rows;
  uint32_t columns;
  std::span<const std::byte> bytes;
};

// Packs a matrix panel by panel, so that one pass over the source can do other work on the same bytes. Different panels
// may be packed by different threads, each once.
class PanelPacker {
 public:
  // Errors as PackedMatrix::Pack.
  static Result<PanelPacker> Start(const PackSource& source, PackAs as);

  uint32_t panels() const { return matrix_.panels(); }
  // Panel p is made of the source's bytes from p * source_panel_bytes() on.
  uint64_t source_panel_bytes() const;
  void PackPanel(uint32_t panel);
  // Requires that every panel was packed.
  PackedMatrix Finish() && { return std::move(matrix_); }

 private:
  using Pack = void (*)(const PackSource& source, uint64_t first_row, uint32_t rows, std::byte* panel);
  PackSource source_{};
  Pack pack_ = nullptr;
  std::byte* panels_ = nullptr;  // of matrix_
  PackedMatrix matrix_;
};

}  // namespace cachalot::kernels
