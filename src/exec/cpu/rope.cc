#include "exec/cpu/rope.h"

#include "kernels/maths.h"

namespace cachalot::exec {

RopeAngles::RopeAngles(const model::RopeSpec& spec) : frequencies_(spec.dims / 2) {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(spec.dims);
    const double factor = spec.factors.empty() ? 1.0 : static_cast<double>(spec.factors[i]);
    frequencies_[i] = kernels::Pow64(spec.theta, exponent) * spec.position_scale / factor;
  }
}

void RopeAngles::At(uint64_t position, float* cos, float* sin) const {
  const double p = static_cast<double>(position);
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const kernels::SinCos angle = kernels::SinCos64(p * frequencies_[i]);
    cos[i] = static_cast<float>(angle.cos);
    sin[i] = static_cast<float>(angle.sin);
  }
}

}  // namespace cachalot::exec
