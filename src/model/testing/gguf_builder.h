// GgufBuilder writes small GGUF files for tests, well-formed unless a test asks for something else.
// Threads:   one builder belongs to one thread.
// Ownership: owns what it was given; Build returns an independent copy.
// Invariant: keys and tensors appear in the order in which they were added; tensor data is aligned.
// Cost:      linear in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_type.h"

namespace cachalot::model {

class GgufBuilder {
 public:
  GgufBuilder& SetString(std::string_view key, std::string_view value);
  GgufBuilder& SetUInt(std::string_view key, uint32_t value);
  GgufBuilder& SetUInt64(std::string_view key, uint64_t value);
  GgufBuilder& SetInt(std::string_view key, int32_t value);
  GgufBuilder& SetFloat(std::string_view key, float value);
  GgufBuilder& SetBool(std::string_view key, bool value);
  GgufBuilder& SetStrings(std::string_view key, std::span<const std::string> values);
  GgufBuilder& SetInts(std::string_view key, std::span<const int32_t> values);
  GgufBuilder& SetFloats(std::string_view key, std::span<const float> values);
  GgufBuilder& SetBools(std::string_view key, std::span<const bool> values);
  // Any value: its GGUF type number and the bytes that follow it.
  GgufBuilder& SetRaw(std::string_view key, uint32_t type, std::string_view bytes);
  // Drops a key or a tensor that was added before, if it was.
  GgufBuilder& Remove(std::string_view name);

  // `bytes` are the tensor's data as stored in the file. A uint32_t `type` may be one that does not exist.
  GgufBuilder& AddTensor(std::string_view name, TensorType type, std::vector<uint64_t> shape, std::string_view bytes);
  GgufBuilder& AddTensor(std::string_view name, uint32_t type, std::vector<uint64_t> shape, std::string_view bytes);
  GgufBuilder& AddF32(std::string_view name, std::vector<uint64_t> shape, std::span<const float> values);

  GgufBuilder& SetVersion(uint32_t version);
  // Also writes general.alignment.
  GgufBuilder& SetAlignment(uint32_t alignment);
  // The offset written for the tensor of that name, instead of the right one.
  GgufBuilder& OverrideOffset(std::string_view tensor, uint64_t offset);

  std::string Build() const;

 private:
  struct Item {
    std::string name;
    std::string bytes;  // metadata: type and value; tensor: data
    uint32_t type = 0;
    std::vector<uint64_t> shape;
    std::optional<uint64_t> offset;
  };

  uint32_t version_ = 3;
  uint32_t alignment_ = 32;
  std::vector<Item> metadata_;
  std::vector<Item> tensors_;
};

}  // namespace cachalot::model
