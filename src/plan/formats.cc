#include "plan/formats.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "plan/model_shape.h"

namespace cachalot::plan {
namespace {

constexpr Format kKvFormats[] = {
    {"f32", 1, 4, "four bytes a value"},
    {"f16", 1, 2, "two bytes a value"},
    {"bf16", 1, 2, "two bytes a value"},
    {"fp8", 1, 1, "one byte a value, no scales"},
    {"int8", 32, 34, "groups of 32 with an f16 scale"},
    {"int4-flat", 2, 1, "half a byte a value, no scales: the bound that nobody reaches"},
    {"int4", 32, 18, "groups of 32 with an f16 scale"},
    {"int4-asymmetric", 32, 20, "groups of 32 with an f16 scale and minimum"},
    {"int2-asymmetric", 32, 12, "groups of 32 with an f16 scale and minimum"},
    {"rotated-4", 64, 34, "rotated, codebook of 16, an f16 norm per 64"},
    {"rotated-3", 64, 26, "rotated, codebook of 8, an f16 norm per 64"},
};

constexpr Format kWeightFormats[] = {
    {"f32", 1, 4, "four bytes a weight"},
    {"bf16", 1, 2, "two bytes a weight; f16 the same"},
    {"fp8", 1, 1, "one byte a weight", Packs::kLayers},
    {"q8_0", 32, 34, "groups of 32 with an f16 scale", Packs::kLayers},
    {"q6_k", 256, 210, "GGUF, 256 weights in 210 bytes", Packs::kLayers},
    {"q5_k", 256, 176, "GGUF, 256 weights in 176 bytes", Packs::kLayers},
    {"q4_k", 256, 144, "GGUF, 256 weights in 144 bytes", Packs::kLayers},
    {"int4-g128", 256, 133, "AWQ, GPTQ: groups of 128 with an f16 scale and a 4-bit zero", Packs::kLayers},
    {"nvfp4", 16, 9, "groups of 16 with an fp8 scale", Packs::kLayers},
    {"mxfp4", 32, 17, "groups of 32 with an 8-bit exponent; experts only, as in gpt-oss", Packs::kExperts},
};

constexpr Format kSixteenBits = {"bf16", 1, 2, "two bytes a weight; f16 the same"};

Result<Format> Find(std::span<const Format> formats, std::string_view name, std::string_view what) {
  const auto found = std::ranges::find(formats, name, &Format::name);
  if (found != formats.end()) return *found;
  std::string names;
  for (const Format& format : formats) names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  return Invalid(fmt::format("{}: \"{}\" is not known, expected one of {}", what, name, names));
}

}  // namespace

std::span<const Format> KvFormats() { return kKvFormats; }
std::span<const Format> WeightFormats() { return kWeightFormats; }

Result<Format> FindKvFormat(std::string_view name) { return Find(kKvFormats, name, "KV format"); }
Result<Format> FindWeightFormat(std::string_view name) { return Find(kWeightFormats, name, "weight format"); }

Format PublishedFormat(const ModelShape& shape) {
  if (shape.file_bytes && shape.weights.stored() > 0) {
    constexpr uint32_t kGroup = 1 << 20;
    const double each = static_cast<double>(*shape.file_bytes) / static_cast<double>(shape.weights.stored());
    return {"file", kGroup, static_cast<uint32_t>(each * kGroup), "the file's own mixture"};
  }
  const bool grouped = shape.quantization == "gptq" || shape.quantization == "awq";
  const auto found = std::ranges::find(kWeightFormats, grouped ? "int4-g128" : shape.quantization, &Format::name);
  return found == std::end(kWeightFormats) ? kSixteenBits : *found;
}

uint64_t BytesIn(const Format& format, uint64_t values) {
  const unsigned __int128 bytes = static_cast<unsigned __int128>(values) * format.group_bytes;
  return static_cast<uint64_t>((bytes + format.group_values - 1) / format.group_values);
}

uint64_t WeightBytes(const Format& format, const WeightCounts& weights) {
  uint64_t packed = weights.stored();
  if (format.packs != Packs::kEverything) packed = weights.experts;
  if (format.packs == Packs::kLayers) packed += weights.attention + weights.feed_forward;
  return BytesIn(format, packed) + BytesIn(kSixteenBits, weights.stored() - packed);
}

}  // namespace cachalot::plan
