#include "model/gguf.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "model/gguf_parser.h"

namespace cachalot::model {
namespace {

std::string_view NameOf(const GgufFile::Entry& entry) { return entry.key; }
std::string_view NameOf(const GgufTensor& tensor) { return tensor.name; }

template <class T>
std::vector<uint32_t> SortedByName(const std::vector<T>& items) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](uint32_t i) { return NameOf(items[i]); });
  return order;
}

template <class T>
const T* FindByName(const std::vector<T>& items, const std::vector<uint32_t>& order, std::string_view name) {
  const auto it = std::ranges::lower_bound(order, name, {}, [&](uint32_t i) { return NameOf(items[i]); });
  return it != order.end() && NameOf(items[*it]) == name ? &items[*it] : nullptr;
}

// The first name that stands twice; null when all differ.
template <class T>
const T* FindDuplicate(const std::vector<T>& items, const std::vector<uint32_t>& order) {
  for (size_t i = 1; i < order.size(); ++i) {
    if (NameOf(items[order[i - 1]]) == NameOf(items[order[i]])) return &items[order[i]];
  }
  return nullptr;
}

Status WrongType(const GgufFile& file, std::string_view key, const GgufValue& value, const char* expected) {
  return Invalid(fmt::format("{}: metadata key {} is {}, expected {}", file.name(), QuoteName(key),
                             DescribeValue(value), expected));
}

}  // namespace

Result<GgufFile> GgufFile::Open(const std::string& path) {
  CACHALOT_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  CACHALOT_ASSIGN_OR_RETURN(GgufFile file, Parse(map.bytes(), path));
  file.file_ = std::move(map);
  return file;
}

void GgufFile::Prefetch(std::span<const std::byte> part) const {
  if (file_) file_->Prefetch(part);
}

void GgufFile::Release(std::span<const std::byte> part) const {
  if (file_) file_->Release(part);
}

Result<GgufFile> GgufFile::Parse(std::span<const std::byte> bytes, const std::string& name) {
  GgufFile file;
  file.name_ = name;
  file.bytes_ = bytes;
  GgufParser parser(bytes, name);
  CACHALOT_RETURN_IF_ERROR(parser.ReadHeader());
  file.version_ = parser.version();
  CACHALOT_ASSIGN_OR_RETURN(file.metadata_, parser.ReadMetadata());
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t alignment, parser.Alignment(file.metadata_));
  CACHALOT_ASSIGN_OR_RETURN(file.tensors_, parser.ReadTensors(alignment));
  CACHALOT_RETURN_IF_ERROR(file.BuildIndex());
  return file;
}

Status GgufFile::BuildIndex() {
  metadata_by_key_ = SortedByName(metadata_);
  tensors_by_name_ = SortedByName(tensors_);
  const Entry* entry = FindDuplicate(metadata_, metadata_by_key_);
  if (entry != nullptr) {
    return Invalid(fmt::format("{}: byte {}: metadata key {} stands twice, expected once", name_,
                               entry->raw.data() - bytes_.data(), QuoteName(entry->key)));
  }
  const GgufTensor* tensor = FindDuplicate(tensors_, tensors_by_name_);
  if (tensor != nullptr) {
    return Invalid(fmt::format("{}: byte {}: tensor {} stands twice, expected once", name_,
                               reinterpret_cast<const std::byte*>(tensor->name.data()) - bytes_.data(),
                               QuoteName(tensor->name)));
  }
  return OkStatus();
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  const Entry* entry = FindByName(metadata_, metadata_by_key_, key);
  return entry == nullptr ? nullptr : &entry->value;
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  return FindByName(tensors_, tensors_by_name_, name);
}

Result<std::optional<uint64_t>> GgufFile::FindUInt(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<uint64_t>();
  if (const uint64_t* number = std::get_if<uint64_t>(value)) return std::optional<uint64_t>(*number);
  const int64_t* number = std::get_if<int64_t>(value);
  if (number != nullptr && *number >= 0) return std::optional<uint64_t>(static_cast<uint64_t>(*number));
  return WrongType(*this, key, *value, "an unsigned integer");
}

Result<std::optional<double>> GgufFile::FindNumber(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<double>();
  if (const double* number = std::get_if<double>(value)) return std::optional<double>(*number);
  if (const uint64_t* number = std::get_if<uint64_t>(value)) return std::optional<double>(static_cast<double>(*number));
  if (const int64_t* number = std::get_if<int64_t>(value)) return std::optional<double>(static_cast<double>(*number));
  return WrongType(*this, key, *value, "a number");
}

Result<std::optional<bool>> GgufFile::FindBool(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<bool>();
  if (const bool* flag = std::get_if<bool>(value)) return std::optional<bool>(*flag);
  return WrongType(*this, key, *value, "a boolean");
}

Result<std::optional<std::string_view>> GgufFile::FindString(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<std::string_view>();
  if (const std::string_view* text = std::get_if<std::string_view>(value))
    return std::optional<std::string_view>(*text);
  return WrongType(*this, key, *value, "a string");
}

Result<const GgufArray*> GgufFile::FindArray(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return static_cast<const GgufArray*>(nullptr);
  if (const GgufArray* array = std::get_if<GgufArray>(value)) return array;
  return WrongType(*this, key, *value, "an array");
}

}  // namespace cachalot::model
