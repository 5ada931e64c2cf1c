#include "kernels/testing/plain_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/half-inl.h"
#include "kernels/maths.h"

namespace cachalot::kernels {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

float Floor(float max) { return max == kMinusInfinity ? 0.0f : max; }

float Tree(std::array<float, 16> p) {
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) p[i] += p[i + half];
  }
  return p[0];
}

struct Softmax {
  float max = kMinusInfinity;
  float sum = 0;
  std::vector<float> out;
};

struct Inputs {
  const PlainQuery& query;
  const std::vector<float>& k;
  const std::vector<float>& v;

  size_t Row(uint64_t t) const { return (t * query.shape.kv_heads + query.kv_head) * query.shape.head_dim; }
  float K(uint64_t t, uint32_t d) const { return RoundTrip(query.type, k[Row(t) + d]); }
  float V(uint64_t t, uint32_t d) const { return RoundTrip(query.type, v[Row(t) + d]); }
  uint64_t FirstVisible() const {
    const uint64_t seen = query.position + 1;
    return query.shape.window != 0 && seen > query.shape.window ? seen - query.shape.window : 0;
  }
};

void AddTile(const Inputs& in, uint64_t begin, uint64_t end, Softmax& state) {
  const uint32_t dim = in.query.shape.head_dim;
  std::array<float, 16> s;
  float max = state.max;
  for (uint64_t t = begin; t < end; ++t) {
    float score = 0;
    for (uint32_t d = 0; d < dim; ++d) score = std::fma(in.query.q[d], in.K(t, d), score);
    s[t % 16] = score;
    max = std::max(max, score);
  }
  const float decay = Exp(state.max - Floor(max));
  std::array<float, 16> p{};
  for (uint64_t t = begin; t < end; ++t) p[t % 16] = Exp(s[t % 16] - Floor(max));
  state.sum = std::fma(state.sum, decay, Tree(p));
  for (uint32_t d = 0; d < dim; ++d) {
    state.out[d] *= decay;
    for (uint64_t t = begin; t < end; ++t) state.out[d] = std::fma(p[t % 16], in.V(t, d), state.out[d]);
  }
  state.max = max;
}

}  // namespace

float RoundTrip(KvType type, float x) {
  switch (type) {
    case KvType::kF16: return FloatOfF16(F16OfFloat(x));
    case KvType::kBF16: return FloatOfBf16(Bf16OfFloat(x));
    default: return x;
  }
}

std::vector<float> PlainAttention(const PlainQuery& query, const std::vector<float>& k, const std::vector<float>& v) {
  const Inputs in{query, k, v};
  const uint64_t end = query.position + 1;
  Softmax total;
  total.out.assign(query.shape.head_dim, 0.0f);
  for (uint64_t t = in.FirstVisible(); t < end;) {
    Softmax split;
    split.out.assign(query.shape.head_dim, 0.0f);
    const uint64_t split_end = std::min(end, t / 256 * 256 + 256);
    while (t < split_end) {
      const uint64_t tile_end = std::min(split_end, t / 16 * 16 + 16);
      AddTile(in, t, tile_end, split);
      t = tile_end;
    }
    const float max = std::max(total.max, split.max);
    const float a = Exp(total.max - Floor(max)), b = Exp(split.max - Floor(max));
    total.sum = std::fma(total.sum, a, split.sum * b);
    for (uint32_t d = 0; d < query.shape.head_dim; ++d) total.out[d] = std::fma(total.out[d], a, split.out[d] * b);
    total.max = max;
  }
  for (float& x : total.out) {
    x /= total.sum;
    if (x != x) x = FloatOfBits(0x7fc00000u);
  }
  return total.out;
}

std::vector<double> ExactAttention(const PlainQuery& query, const std::vector<float>& k, const std::vector<float>& v) {
  const Inputs in{query, k, v};
  const uint32_t dim = query.shape.head_dim;
  std::vector<double> scores;
  for (uint64_t t = in.FirstVisible(); t <= query.position; ++t) {
    double score = 0;
    for (uint32_t d = 0; d < dim; ++d) score += static_cast<double>(query.q[d]) * in.K(t, d);
    scores.push_back(score);
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> out(dim, 0.0);
  for (uint64_t i = 0; i < scores.size(); ++i) {
    const double p = std::exp(scores[i] - max);
    sum += p;
    for (uint32_t d = 0; d < dim; ++d) out[d] += p * in.V(in.FirstVisible() + i, d);
  }
  for (double& x : out) x /= sum;
  return out;
}

}  // namespace cachalot::kernels
