// The matmul kernels' entry points.
// Threads:   pure.
// Ownership: none.
// Invariant: as matmul-inl.h.
// Cost:      one switch over the weight format.

namespace {

void Matmul(const PanelView& w, const Activations& x, uint32_t panel_begin, uint32_t panel_end, float* out,
            uint64_t out_stride) {
  if (x.rows == 0) return;
  const Result result{out, out_stride};
  switch (w.type) {
    case TensorType::kF32: return MatmulFloat<TensorType::kF32>(w, x, panel_begin, panel_end, result);
    case TensorType::kF16: return MatmulFloat<TensorType::kF16>(w, x, panel_begin, panel_end, result);
    case TensorType::kBF16: return MatmulFloat<TensorType::kBF16>(w, x, panel_begin, panel_end, result);
    case TensorType::kQ4_0: return MatmulQuant<TensorType::kQ4_0>(w, x, panel_begin, panel_end, result);
    case TensorType::kQ4_1: return MatmulQuant<TensorType::kQ4_1>(w, x, panel_begin, panel_end, result);
    case TensorType::kQ5_0: return MatmulQuant<TensorType::kQ5_0>(w, x, panel_begin, panel_end, result);
    case TensorType::kQ5_1: return MatmulQuant<TensorType::kQ5_1>(w, x, panel_begin, panel_end, result);
    case TensorType::kQ8_0: return MatmulQuant<TensorType::kQ8_0>(w, x, panel_begin, panel_end, result);
    case TensorType::kQ4_K: return MatmulQuant<TensorType::kQ4_K>(w, x, panel_begin, panel_end, result);
    case TensorType::kQ5_K: return MatmulQuant<TensorType::kQ5_K>(w, x, panel_begin, panel_end, result);
    case TensorType::kQ6_K: return MatmulQuant<TensorType::kQ6_K>(w, x, panel_begin, panel_end, result);
  }
}

constexpr MatmulKernels kMatmul{QuantizeRows, Matmul};

}  // namespace
