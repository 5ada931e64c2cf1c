#include "base/tensor_type.h"

#include "base/check.h"

namespace cachalot {
namespace {

constexpr TensorTypeInfo kTypes[] = {
    {TensorType::kF32, "F32", 1, 4},       {TensorType::kF16, "F16", 1, 2},       {TensorType::kBF16, "BF16", 1, 2},
    {TensorType::kQ4_0, "Q4_0", 32, 18},   {TensorType::kQ4_1, "Q4_1", 32, 20},   {TensorType::kQ5_0, "Q5_0", 32, 22},
    {TensorType::kQ5_1, "Q5_1", 32, 24},   {TensorType::kQ8_0, "Q8_0", 32, 34},   {TensorType::kQ4_K, "Q4_K", 256, 144},
    {TensorType::kQ5_K, "Q5_K", 256, 176}, {TensorType::kQ6_K, "Q6_K", 256, 210},
};

}  // namespace

std::optional<TensorTypeInfo> FindTensorType(uint32_t ggml_type) {
  for (const TensorTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == ggml_type) return info;
  }
  return std::nullopt;
}

const TensorTypeInfo& InfoOf(TensorType type) {
  for (const TensorTypeInfo& info : kTypes) {
    if (info.type == type) return info;
  }
  CheckFailed(__FILE__, __LINE__, "unknown tensor type");
}

std::string SupportedTensorTypes() {
  std::string out;
  for (const TensorTypeInfo& info : kTypes) {
    if (!out.empty()) out += ", ";
    out += info.name;
  }
  return out;
}

}  // namespace cachalot
