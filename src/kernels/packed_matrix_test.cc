#include "kernels/packed_matrix.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "kernels/dequantize.h"
#include "kernels/testing/random_blocks.h"

namespace cachalot::kernels {
namespace {

using testing::kAllTypes;
using testing::RandomBlocks;

struct Shape {
  uint32_t rows, columns;
};

std::vector<Shape> ShapesFor(TensorType type) {
  const uint32_t block = InfoOf(type).block_values;
  std::vector<Shape> shapes;
  for (const uint32_t rows : {1u, 15u, 16u, 17u, 1003u}) {
    for (const uint32_t blocks : {1u, 3u}) shapes.push_back({rows, blocks * block});
  }
  if (block == 1) shapes.push_back({20, 401});
  return shapes;
}

std::vector<float> Dequantized(TensorType type, const std::vector<std::byte>& bytes, uint64_t count) {
  std::vector<float> out(count);
  Dequantize(type, bytes.data(), count, out.data());
  return out;
}

void ExpectSameRows(const PackedMatrix& matrix, const std::vector<float>& want) {
  std::vector<float> row(matrix.columns());
  for (uint32_t r = 0; r < matrix.rows(); ++r) {
    matrix.DequantiseRow(r, row.data());
    ASSERT_EQ(std::memcmp(row.data(), want.data() + uint64_t{r} * matrix.columns(), row.size() * sizeof(float)), 0)
        << "row " << r << " of " << matrix.rows() << " x " << matrix.columns();
  }
}

TEST(PackedMatrix, RowsDequantiseAsTheSourceDoes) {
  ThreadPool pool(2);
  for (const TensorType type : kAllTypes) {
    SCOPED_TRACE(InfoOf(type).name);
    for (const Shape& shape : ShapesFor(type)) {
      const uint64_t count = uint64_t{shape.rows} * shape.columns;
      const auto bytes = RandomBlocks(type, count, count);
      const std::vector<float> want = Dequantized(type, bytes, count);
      auto matrix = PackedMatrix::Pack(type, shape.rows, shape.columns, bytes, pool);
      ASSERT_TRUE(matrix.ok()) << matrix.status().message();
      ASSERT_EQ(matrix->type(), type);
      ExpectSameRows(*matrix, want);
      auto as_f32 = PackedMatrix::PackAsF32(type, shape.rows, shape.columns, bytes, pool);
      ASSERT_TRUE(as_f32.ok()) << as_f32.status().message();
      ASSERT_EQ(as_f32->type(), TensorType::kF32);
      ExpectSameRows(*as_f32, want);
    }
  }
}

TEST(PackedMatrix, LargeMatricesTakeTheMappedPathAndKeepTheirRows) {
  ThreadPool pool(2);
  const uint32_t rows = 4100, columns = 2048;
  const auto bytes = RandomBlocks(TensorType::kQ4_0, uint64_t{rows} * columns, 5);
  auto matrix = PackedMatrix::Pack(TensorType::kQ4_0, rows, columns, bytes, pool);
  ASSERT_TRUE(matrix.ok());
  ASSERT_GT(matrix->bytes(), 4u << 20);
  ExpectSameRows(*matrix, Dequantized(TensorType::kQ4_0, bytes, uint64_t{rows} * columns));
}

TEST(PackedMatrix, SpendsAtMostAnEighthOfABitPerWeightMoreThanTheFile) {
  ThreadPool pool(1);
  const uint32_t rows = 64, columns = 2048;
  for (const TensorType type : kAllTypes) {
    const TensorTypeInfo& info = InfoOf(type);
    const double file_bits = 8.0 * info.block_bytes / info.block_values;
    auto matrix = PackedMatrix::Pack(type, rows, columns, RandomBlocks(type, uint64_t{rows} * columns, 1), pool);
    ASSERT_TRUE(matrix.ok());
    EXPECT_LE(8.0 * static_cast<double>(matrix->bytes()) / (double{rows} * columns), file_bits + 0.13) << info.name;
  }
}

TEST(PackedMatrix, PanelsAreAlignedAndPaddingIsZero) {
  ThreadPool pool(1);
  auto matrix = PackedMatrix::Pack(TensorType::kF16, 17, 3, RandomBlocks(TensorType::kF16, 51, 1), pool);
  ASSERT_TRUE(matrix.ok());
  const PanelView view = matrix->view();
  EXPECT_EQ(matrix->panels(), 2u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 64, 0u);
  EXPECT_EQ(view.panel_bytes % 64, 0u);
  for (uint32_t k = 0; k < 3; ++k) {
    for (uint32_t lane = 1; lane < 16; ++lane) {
      for (uint32_t i = 0; i < 2; ++i) {
        EXPECT_EQ(view.data[view.panel_bytes + (k * 16 + lane) * 2 + i], std::byte{0});
      }
    }
  }
}

// Panels are kept in files (exec/cpu/panel_file.h): whoever changes their bytes bumps kPanelLayoutId.
TEST(PackedMatrix, TheBytesOfPanelsAreThoseOfTheLayoutId) {
  ThreadPool pool(1);
  Sha256 hash;
  for (const TensorType type : kAllTypes) {
    auto matrix = PackedMatrix::Pack(type, 35, 512, RandomBlocks(type, 35 * 512, 7), pool);
    ASSERT_TRUE(matrix.ok());
    hash.Update(matrix->contents());
  }
  EXPECT_EQ(std::string(kPanelLayoutId) + " " + HexOf(hash.Finish()).substr(0, 16),
            "cachalot.panels.1 44b07cf73fc3d709");
}

TEST(PackedMatrix, PanelsThatWerePackedBeforeAreTakenAsTheyAre) {
  ThreadPool pool(1);
  const auto bytes = RandomBlocks(TensorType::kQ5_K, 17 * 512, 3);
  auto packed = PackedMatrix::Pack(TensorType::kQ5_K, 17, 512, bytes, pool);
  ASSERT_TRUE(packed.ok());
  const std::shared_ptr<const std::byte> panels(std::shared_ptr<const std::byte>(), packed->contents().data());
  auto taken = PackedMatrix::OfPanels(TensorType::kQ5_K, 17, 512, panels, packed->bytes());
  ASSERT_TRUE(taken.ok());
  ExpectSameRows(*taken, Dequantized(TensorType::kQ5_K, bytes, 17 * 512));
  for (const uint64_t wrong : {packed->bytes() - 64, packed->bytes() + 64, packed->bytes() / 2, uint64_t{0}}) {
    EXPECT_EQ(PackedMatrix::OfPanels(TensorType::kQ5_K, 17, 512, panels, wrong).status().code(), Code::kInvalid);
  }
  EXPECT_FALSE(PackedMatrix::OfPanels(TensorType::kQ5_K, 0, 512, panels, 0).ok());
  EXPECT_FALSE(PackedMatrix::OfPanels(TensorType::kQ5_K, 17, 100, panels, packed->bytes()).ok());
}

void ExpectInvalid(TensorType type, uint32_t rows, uint32_t columns, size_t bytes, const std::string& part) {
  ThreadPool pool(1);
  const std::vector<std::byte> source(bytes);
  const Status status = PackedMatrix::Pack(type, rows, columns, source, pool).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(PackedMatrix, WrongByteCountsAndShapesAreInvalid) {
  ExpectInvalid(TensorType::kQ4_0, 2, 32, 35, "expected 2 rows of 18 bytes, got 35 bytes");
  ExpectInvalid(TensorType::kQ4_0, 2, 32, 37, "got 37 bytes");
  ExpectInvalid(TensorType::kQ4_0, 2, 32, 54, "got 54 bytes");
  ExpectInvalid(TensorType::kQ4_K, 1, 128, 72, "multiple of 256");
  ExpectInvalid(TensorType::kF32, 0, 4, 0, "at least 1");
  ExpectInvalid(TensorType::kF32, 4, 0, 0, "at least 1");
  ExpectInvalid(TensorType::kF32, 0xffffffff, 0xffffffff, 4, "got 4 bytes");
}

TEST(PackedMatrix, TooLittleMemoryIsUnavailable) {
  // Address space that nobody may touch stands for a source of 64 TiB: the result is refused before it is read.
  const uint64_t bytes = uint64_t{1} << 46;
  void* source = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(source, MAP_FAILED);
  ThreadPool pool(1);
  const std::span<const std::byte> span(static_cast<const std::byte*>(source), bytes);
  EXPECT_EQ(PackedMatrix::Pack(TensorType::kF32, 1u << 22, 1u << 22, span, pool).status().code(), Code::kUnavailable);
  EXPECT_EQ(PackedMatrix::PackAsF32(TensorType::kF16, 1u << 23, 1u << 22, span, pool).status().code(),
            Code::kUnavailable);
  munmap(source, bytes);
}

}  // namespace
}  // namespace cachalot::kernels
