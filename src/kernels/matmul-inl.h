// What the matmul kernels share: tiles of results. They are written once over the vector traits (simd-inl.h, which also
// says how these files are included) and the byte traits below.
// Threads:   pure.
// Ownership: none.
// Invariant: an accumulator is one lane from its first column to its last, wherever tiles and slabs are cut.
// Cost:      loads and stores of tiles only.
//
// Each matmul_<isa>.cc defines:
//   Bytes: 64 bytes   LoadBytes StoreBytes (aligned) LowNibbles HighNibbles Or
//   TopBits<position, mask>(b): ((b >> position) & mask) << 4 in each byte
//   LoadU8 LoadI8: 16 bytes to Vec   StoreInt8: an Int within [-128, 127] to 16 bytes
//   HalfSums(values): the sums of 16 and 16 values as QuantisedRows keeps them
//   Dots<S, R, P, first, last>(w, group, x, stride, start, dots): dots[r][p] = start[r * kSlabGroups] + the integer dot
//     of steps 2*first to 2*last + 1 of the group of each weight row of panel p with row r of x, exact. A weight counts
//     as its unsigned value minus kDotBias<S>; where that is its true value, start is not read.
//   Tiles that fit the registers: up to kQuantSmallRows or kFloatSmallRows rows the weights go straight through
//     registers (SmallPanels(rows) panels at a time for floats); more rows are cut into blocks of QuantRowsOf(format)
//     by kQuantPanels panels, or of kFloatRows by kFloatPanels. kSlabGroups: groups unpacked at once.

namespace {

// Where a tile of R rows by P panels of the result goes. It is also where its accumulators rest between column slabs.
struct TileOut {
  float* data;
  uint64_t stride;
  uint32_t lanes;  // of the last panel
  bool resume;     // continue the chains that are there
};

inline uint32_t LeastOf(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Lanes of panel `panel` that are rows of the matrix.
inline uint32_t LanesOf(const PanelView& w, uint32_t panel) { return LeastOf(kPanelRows, w.rows - panel * kPanelRows); }

// Where the whole result goes. Tiles are made of it field by field: one that is changed, then copied, would be read in
// vectors before its scalar stores are done, and the processor waits for all stores before them.
struct Result {
  float* data;
  uint64_t stride;

  Result FromRow(uint64_t row) const { return {data + row * stride, stride}; }
  // Panels [panel, panel + panels) of rows from `row` on.
  TileOut Tile(const PanelView& w, uint64_t row, uint32_t panel, uint32_t panels, bool resume) const {
    return {data + row * stride + uint64_t{panel} * kPanelRows, stride, LanesOf(w, panel + panels - 1), resume};
  }
};

template <int R, int P>
inline void LoadTile(const TileOut& out, Vec (&acc)[R][P]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const float* at = out.data + r * out.stride + p * kPanelRows;
      if (!out.resume) {
        acc[r][p] = Zero();
      } else if (p < P - 1 || out.lanes == kPanelRows) {
        acc[r][p] = Load(at);
      } else {
        acc[r][p] = LoadPartial(at, out.lanes);
      }
    }
  }
}

template <int R, int P>
inline void StoreTile(const TileOut& out, const Vec (&acc)[R][P]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      float* at = out.data + r * out.stride + p * kPanelRows;
      if (p < P - 1 || out.lanes == kPanelRows) {
        Store(at, acc[r][p]);
      } else {
        StorePartial(at, out.lanes, acc[r][p]);
      }
    }
  }
}

// The first of the rows of block `index` when `rows` are cut into `blocks` that differ by one at most.
inline uint32_t BlockStart(uint32_t rows, uint32_t blocks, uint32_t index) {
  return static_cast<uint32_t>(uint64_t{rows} * index / blocks);
}

// The fewest rows that a block has when more than `above` rows are cut into blocks of at most `most`.
constexpr uint32_t LeastBlock(uint32_t above, uint32_t most) {
  uint32_t least = most > 1 ? most - 1 : 1;  // from most * most rows on
  for (uint32_t rows = above + 1; rows < most * most; ++rows) {
    const uint32_t block = rows / ((rows + most - 1) / most);
    if (block < least) least = block;
  }
  return least;
}

}  // namespace
