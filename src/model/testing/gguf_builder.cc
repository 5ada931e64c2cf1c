#include "model/testing/gguf_builder.h"

#include <type_traits>
#include <utility>

namespace cachalot::model {
namespace {

template <class T>
void Append(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void AppendString(std::string* out, std::string_view text) {
  Append(out, uint64_t{text.size()});
  out->append(text);
}

template <class T>
std::string Bytes(const T& value) {
  std::string out;
  Append(&out, value);
  return out;
}

template <class T>
std::string ArrayBytes(uint32_t element_type, std::span<const T> values) {
  std::string out;
  Append(&out, element_type);
  Append(&out, uint64_t{values.size()});
  for (const T& value : values) {
    if constexpr (std::is_same_v<T, std::string>) {
      AppendString(&out, value);
    } else {
      Append(&out, value);
    }
  }
  return out;
}

void PadTo(std::string* out, size_t alignment) { out->append((alignment - out->size() % alignment) % alignment, '\0'); }

}  // namespace

GgufBuilder& GgufBuilder::SetRaw(std::string_view key, uint32_t type, std::string_view bytes) {
  Item item{std::string(key), Bytes(type) + std::string(bytes), 0, {}, {}};
  for (Item& existing : metadata_) {
    if (existing.name == key) {
      existing = std::move(item);
      return *this;
    }
  }
  metadata_.push_back(std::move(item));
  return *this;
}

GgufBuilder& GgufBuilder::SetString(std::string_view key, std::string_view value) {
  std::string bytes;
  AppendString(&bytes, value);
  return SetRaw(key, 8, bytes);
}

GgufBuilder& GgufBuilder::SetUInt(std::string_view key, uint32_t value) { return SetRaw(key, 4, Bytes(value)); }
GgufBuilder& GgufBuilder::SetUInt64(std::string_view key, uint64_t value) { return SetRaw(key, 10, Bytes(value)); }
GgufBuilder& GgufBuilder::SetInt(std::string_view key, int32_t value) { return SetRaw(key, 5, Bytes(value)); }
GgufBuilder& GgufBuilder::SetFloat(std::string_view key, float value) { return SetRaw(key, 6, Bytes(value)); }
GgufBuilder& GgufBuilder::SetBool(std::string_view key, bool value) { return SetRaw(key, 7, Bytes(value)); }

GgufBuilder& GgufBuilder::SetStrings(std::string_view key, std::span<const std::string> values) {
  return SetRaw(key, 9, ArrayBytes(8, values));
}

GgufBuilder& GgufBuilder::SetInts(std::string_view key, std::span<const int32_t> values) {
  return SetRaw(key, 9, ArrayBytes(5, values));
}

GgufBuilder& GgufBuilder::SetFloats(std::string_view key, std::span<const float> values) {
  return SetRaw(key, 9, ArrayBytes(6, values));
}

GgufBuilder& GgufBuilder::SetBools(std::string_view key, std::span<const bool> values) {
  return SetRaw(key, 9, ArrayBytes(7, values));
}

GgufBuilder& GgufBuilder::Remove(std::string_view name) {
  std::erase_if(metadata_, [&](const Item& item) { return item.name == name; });
  std::erase_if(tensors_, [&](const Item& item) { return item.name == name; });
  return *this;
}

GgufBuilder& GgufBuilder::AddTensor(std::string_view name, TensorType type, std::vector<uint64_t> shape,
                                    std::string_view bytes) {
  return AddTensor(name, static_cast<uint32_t>(type), std::move(shape), bytes);
}

GgufBuilder& GgufBuilder::AddTensor(std::string_view name, uint32_t type, std::vector<uint64_t> shape,
                                    std::string_view bytes) {
  tensors_.push_back({std::string(name), std::string(bytes), type, std::move(shape), {}});
  return *this;
}

GgufBuilder& GgufBuilder::AddF32(std::string_view name, std::vector<uint64_t> shape, std::span<const float> values) {
  return AddTensor(name, TensorType::kF32, std::move(shape),
                   {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

GgufBuilder& GgufBuilder::SetVersion(uint32_t version) {
  version_ = version;
  return *this;
}

GgufBuilder& GgufBuilder::SetAlignment(uint32_t alignment) {
  alignment_ = alignment;
  return SetUInt("general.alignment", alignment);
}

GgufBuilder& GgufBuilder::OverrideOffset(std::string_view tensor, uint64_t offset) {
  for (Item& item : tensors_) {
    if (item.name == tensor) item.offset = offset;
  }
  return *this;
}

std::string GgufBuilder::Build() const {
  std::string out = "GGUF";
  Append(&out, version_);
  Append(&out, uint64_t{tensors_.size()});
  Append(&out, uint64_t{metadata_.size()});
  for (const Item& item : metadata_) {
    AppendString(&out, item.name);
    out += item.bytes;
  }
  std::string data;
  for (const Item& item : tensors_) {
    PadTo(&data, alignment_);
    AppendString(&out, item.name);
    Append(&out, static_cast<uint32_t>(item.shape.size()));
    for (const uint64_t size : item.shape) Append(&out, size);
    Append(&out, item.type);
    Append(&out, item.offset.value_or(data.size()));
    data += item.bytes;
  }
  if (!tensors_.empty()) PadTo(&out, alignment_);
  return out + data;
}

}  // namespace cachalot::model
