// Formats in which KV and weights are stored: how many bytes a group of values takes, scales and offsets included.
// Threads:   constant data and pure functions.
// Ownership: static.
// Invariant: names are unique within a list.
// Cost:      none.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace cachalot::plan {

struct ModelShape;
struct WeightCounts;

// Which weights a format packs; the others stay in 16 bits.
enum class Packs : uint8_t { kEverything, kLayers, kExperts };

struct Format {
  std::string_view name;
  uint32_t group_values = 1;
  uint32_t group_bytes = 1;
  std::string_view note;
  Packs packs = Packs::kEverything;

  double bits() const { return 8.0 * group_bytes / group_values; }
};

std::span<const Format> KvFormats();
std::span<const Format> WeightFormats();
// kInvalid, with the names that there are.
Result<Format> FindKvFormat(std::string_view name);
Result<Format> FindWeightFormat(std::string_view name);
// Of weights as they are published: their file's own mixture, the format that a config's quant_method names, or bf16.
Format PublishedFormat(const ModelShape& shape);

// Rounded up to a byte.
uint64_t BytesIn(const Format& format, uint64_t values);
uint64_t WeightBytes(const Format& format, const WeightCounts& weights);

}  // namespace cachalot::plan
