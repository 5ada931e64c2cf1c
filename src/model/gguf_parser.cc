#include "model/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace cachalot::model {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read in place");

// The numbers that GGUF gives to value types.
enum ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

constexpr uint32_t kVersions[] = {2, 3};
constexpr uint64_t kHeaderBytes = 4 + 4 + 8 + 8;
constexpr uint64_t kMinEntryBytes = 8 + 4 + 1;               // empty key, type, one-byte value
constexpr uint64_t kMinTensorInfoBytes = 8 + 4 + 8 + 4 + 8;  // empty name, one dimension

// Bytes that one array element takes at least; 0 for a type that cannot be an element.
uint64_t MinElementBytes(uint32_t type) {
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool: return 1;
    case kUint16:
    case kInt16: return 2;
    case kUint32:
    case kInt32:
    case kFloat32: return 4;
    case kUint64:
    case kInt64:
    case kFloat64:
    case kString: return 8;
    default: return 0;
  }
}

// Names of the ggml tensor types that are not supported, so that a message can say more than a number.
const char* UnsupportedTypeName(uint32_t ggml_type) {
  struct Named {
    uint32_t type;
    const char* name;
  };
  static constexpr Named kNamed[] = {
      {4, "Q4_2"},     {5, "Q4_3"},        {9, "Q8_1"},        {10, "Q2_K"},       {11, "Q3_K"},     {15, "Q8_K"},
      {16, "IQ2_XXS"}, {17, "IQ2_XS"},     {18, "IQ3_XXS"},    {19, "IQ1_S"},      {20, "IQ4_NL"},   {21, "IQ3_S"},
      {22, "IQ2_S"},   {23, "IQ4_XS"},     {24, "I8"},         {25, "I16"},        {26, "I32"},      {27, "I64"},
      {28, "F64"},     {29, "IQ1_M"},      {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},   {33, "Q4_0_8_8"}, {34, "TQ1_0"},
      {35, "TQ2_0"},   {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {39, "MXFP4"},    {40, "NVFP4"},
      {41, "Q1_0"},
  };
  for (const Named& named : kNamed) {
    if (named.type == ggml_type) return named.name;
  }
  return "unknown";
}

std::string HexBytes(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) out += fmt::format("{}{:02x}", out.empty() ? "" : " ", std::to_integer<unsigned>(b));
  return out;
}

std::string ShapeText(std::span<const uint64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace

std::string QuoteName(std::string_view name) {
  constexpr size_t kShown = 80;
  std::string out = "'";
  for (const char c : name.substr(0, kShown)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += name.size() > kShown ? "...'" : "'";
  return out;
}

std::string DescribeValue(const GgufValue& value) {
  struct Describe {
    std::string operator()(bool) const { return "a boolean"; }
    std::string operator()(int64_t v) const { return fmt::format("the integer {}", v); }
    std::string operator()(uint64_t v) const { return fmt::format("the integer {}", v); }
    std::string operator()(double v) const { return fmt::format("the number {}", v); }
    std::string operator()(std::string_view) const { return "a string"; }
    std::string operator()(const GgufArray& array) const {
      const char* of = !array.strings.empty() ? "strings" : !array.floats.empty() ? "numbers" : "integers";
      return array.size == 0 ? "an empty array" : fmt::format("an array of {} {}", array.size, of);
    }
  };
  return std::visit(Describe{}, value);
}

std::string GgufParser::Subject() const {
  if (*subject_kind_ == 0) return "";
  return fmt::format(" ({} {})", subject_kind_, QuoteName(subject_name_));
}

Status GgufParser::Error(uint64_t at, const std::string& what) const {
  return Invalid(fmt::format("{}: byte {}: {}{}", name_, at, what, Subject()));
}

template <class T>
Result<T> GgufParser::Read(const char* what) {
  if (left() < sizeof(T)) {
    return Error(pos_, fmt::format("the file ends inside the {}: {} bytes expected, {} left", what, sizeof(T), left()));
  }
  T value;
  std::memcpy(&value, bytes_.data() + pos_, sizeof(T));
  pos_ += sizeof(T);
  return value;
}

Result<std::string_view> GgufParser::ReadString(const char* what, uint64_t limit_bytes) {
  const uint64_t at = pos_;
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t length, Read<uint64_t>(what));
  if (length > left()) {
    return Error(at, fmt::format("the {} claims {} bytes, but the file has {} left", what, length, left()));
  }
  if (length > limit_bytes) {
    return Error(at, fmt::format("the {} has {} bytes, at most {} are expected", what, length, limit_bytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + pos_), length);
  pos_ += length;
  return text;
}

Result<std::string_view> GgufParser::ReadName(const char* what) {
  const uint64_t at = pos_;
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view name, ReadString(what, kMaxNameBytes));
  if (name.empty()) return Error(at, fmt::format("the {} is empty", what));
  return name;
}

Status GgufParser::CheckMagic() const {
  if (bytes_.empty())
    return Error(0, fmt::format("the file is empty, expected a GGUF header of {} bytes", kHeaderBytes));
  const std::string_view begin(reinterpret_cast<const char*>(bytes_.data()), std::min<size_t>(bytes_.size(), 8));
  if (begin.starts_with("GGUF")) return OkStatus();
  const char* hint = "";
  if (begin.starts_with("PK\x03\x04")) hint = ": this is a zip archive (a wheel or a PyTorch checkpoint)";
  if (begin.starts_with("version ")) hint = ": this looks like a Git LFS pointer, not the file that it stands for";
  if (begin.starts_with("lmgg") || begin.starts_with("fmgg") || begin.starts_with("tjgg")) {
    hint = ": this is an older ggml format, convert it to GGUF";
  }
  return Error(0, fmt::format("not a GGUF file: begins with {}, expected 47 47 55 46 (\"GGUF\"){}",
                              HexBytes(bytes_.first(std::min<size_t>(bytes_.size(), 4))), hint));
}

Status GgufParser::ReadHeader() {
  CACHALOT_RETURN_IF_ERROR(CheckMagic());
  pos_ = 4;
  CACHALOT_ASSIGN_OR_RETURN(version_, Read<uint32_t>("GGUF version"));
  if (std::ranges::count(kVersions, version_) == 0) {
    if (std::ranges::count(kVersions, __builtin_bswap32(version_)) != 0) {
      return Error(4, fmt::format("big-endian GGUF (version {}) is not supported, expected a little-endian file",
                                  __builtin_bswap32(version_)));
    }
    return Error(4,
                 fmt::format("GGUF version {} is not supported, expected {}", version_, fmt::join(kVersions, " or ")));
  }
  CACHALOT_ASSIGN_OR_RETURN(tensor_count_, Read<uint64_t>("tensor count"));
  CACHALOT_ASSIGN_OR_RETURN(metadata_count_, Read<uint64_t>("metadata count"));
  struct Count {
    const char* what;
    uint64_t at, count, limit, min_bytes;
  };
  for (const Count& c : {Count{"tensor", 8, tensor_count_, kMaxTensors, kMinTensorInfoBytes},
                         Count{"metadata", 16, metadata_count_, kMaxMetadataEntries, kMinEntryBytes}}) {
    if (c.count > left() / c.min_bytes) {
      return Error(c.at, fmt::format("the {} count {} needs at least {} bytes each, but the file has {} left", c.what,
                                     c.count, c.min_bytes, left()));
    }
    if (c.count > c.limit) {
      return Error(c.at, fmt::format("the {} count is {}, at most {} are expected", c.what, c.count, c.limit));
    }
  }
  return OkStatus();
}

Result<std::vector<GgufFile::Entry>> GgufParser::ReadMetadata() {
  std::vector<GgufFile::Entry> entries;
  entries.reserve(metadata_count_);
  for (uint64_t i = 0; i < metadata_count_; ++i) {
    subject_kind_ = "";
    CACHALOT_ASSIGN_OR_RETURN(const std::string_view key, ReadName("metadata key"));
    subject_kind_ = "key";
    subject_name_ = key;
    const uint64_t start = pos_;
    CACHALOT_ASSIGN_OR_RETURN(const uint32_t type, Read<uint32_t>("value type"));
    CACHALOT_ASSIGN_OR_RETURN(GgufValue value, ReadValue(type));
    entries.push_back({key, std::move(value), bytes_.subspan(start, pos_ - start)});
  }
  subject_kind_ = "";
  return entries;
}

Result<GgufValue> GgufParser::ReadValue(uint32_t type) {
  switch (type) {
    case kUint8: return ReadScalar<uint8_t, uint64_t>();
    case kInt8: return ReadScalar<int8_t, int64_t>();
    case kUint16: return ReadScalar<uint16_t, uint64_t>();
    case kInt16: return ReadScalar<int16_t, int64_t>();
    case kUint32: return ReadScalar<uint32_t, uint64_t>();
    case kInt32: return ReadScalar<int32_t, int64_t>();
    case kFloat32: return ReadScalar<float, double>();
    case kBool: return ReadBool();
    case kString: {
      CACHALOT_ASSIGN_OR_RETURN(const std::string_view text, ReadString("string value", left()));
      return GgufValue(text);
    }
    case kArray: return ReadArray();
    case kUint64: return ReadScalar<uint64_t, uint64_t>();
    case kInt64: return ReadScalar<int64_t, int64_t>();
    case kFloat64: return ReadScalar<double, double>();
    default: return Error(pos_ - 4, fmt::format("the value type is {}, expected 0 to {}", type, uint32_t{kFloat64}));
  }
}

template <class T, class Wide>
Result<GgufValue> GgufParser::ReadScalar() {
  CACHALOT_ASSIGN_OR_RETURN(const T value, Read<T>("value"));
  return GgufValue(static_cast<Wide>(value));
}

Result<GgufValue> GgufParser::ReadBool() {
  CACHALOT_ASSIGN_OR_RETURN(const uint8_t value, Read<uint8_t>("value"));
  if (value > 1) return Error(pos_ - 1, fmt::format("the boolean is {}, expected 0 or 1", value));
  return GgufValue(value == 1);
}

Result<GgufValue> GgufParser::ReadArray() {
  const uint64_t at = pos_;
  CACHALOT_ASSIGN_OR_RETURN(const uint32_t type, Read<uint32_t>("array element type"));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t count, Read<uint64_t>("array length"));
  if (type == kArray) return Error(at, "arrays of arrays are not supported");
  const uint64_t min_bytes = MinElementBytes(type);
  if (min_bytes == 0) {
    return Error(at, fmt::format("the array element type is {}, expected 0 to {}", type, uint32_t{kFloat64}));
  }
  if (count > left() / min_bytes) {
    return Error(at + 4, fmt::format("the array claims {} elements of at least {} bytes, but the file has {} left",
                                     count, min_bytes, left()));
  }
  array_elements_ += count;
  if (array_elements_ > kMaxArrayElements) {
    return Error(at + 4, fmt::format("the arrays hold more than {} elements together", kMaxArrayElements));
  }
  GgufArray array;
  array.size = count;
  CACHALOT_RETURN_IF_ERROR(ReadElements(type, &array));
  return GgufValue(std::move(array));
}

Status GgufParser::ReadElements(uint32_t type, GgufArray* array) {
  switch (type) {
    case kUint8: return ReadInts<uint8_t>(array);
    case kInt8: return ReadInts<int8_t>(array);
    case kUint16: return ReadInts<uint16_t>(array);
    case kInt16: return ReadInts<int16_t>(array);
    case kUint32: return ReadInts<uint32_t>(array);
    case kInt32: return ReadInts<int32_t>(array);
    case kUint64: return ReadInts<uint64_t>(array);
    case kInt64: return ReadInts<int64_t>(array);
    case kFloat32: return ReadFloats<float>(array);
    case kFloat64: return ReadFloats<double>(array);
    case kBool: {
      const uint64_t start = pos_;
      CACHALOT_RETURN_IF_ERROR(ReadInts<uint8_t>(array));
      for (uint64_t i = 0; i < array->size; ++i) {
        if (array->ints[i] > 1)
          return Error(start + i, fmt::format("the boolean is {}, expected 0 or 1", array->ints[i]));
      }
      return OkStatus();
    }
    default:
      array->strings.reserve(array->size);
      for (uint64_t i = 0; i < array->size; ++i) {
        CACHALOT_ASSIGN_OR_RETURN(const std::string_view text, ReadString("string of the array", left()));
        array->strings.push_back(text);
      }
      return OkStatus();
  }
}

template <class T>
Status GgufParser::ReadInts(GgufArray* array) {
  array->ints.reserve(array->size);
  for (uint64_t i = 0; i < array->size; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const T value, Read<T>("array element"));
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return Error(pos_ - sizeof(T), fmt::format("the array element {} is larger than 2^63 - 1", value));
      }
    }
    array->ints.push_back(static_cast<int64_t>(value));
  }
  return OkStatus();
}

template <class T>
Status GgufParser::ReadFloats(GgufArray* array) {
  array->floats.reserve(array->size);
  for (uint64_t i = 0; i < array->size; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const T value, Read<T>("array element"));
    array->floats.push_back(static_cast<float>(value));
  }
  return OkStatus();
}

Result<uint64_t> GgufParser::Alignment(std::span<const GgufFile::Entry> metadata) const {
  for (const GgufFile::Entry& entry : metadata) {
    if (entry.key != "general.alignment") continue;
    const uint64_t at = static_cast<uint64_t>(entry.raw.data() - bytes_.data());
    const uint64_t* value = std::get_if<uint64_t>(&entry.value);
    if (value == nullptr || !std::has_single_bit(*value) || *value < kMinAlignment || *value > kMaxAlignment) {
      return Error(at, fmt::format("general.alignment is {}, expected a power of two from {} to {}",
                                   DescribeValue(entry.value), kMinAlignment, kMaxAlignment));
    }
    return *value;
  }
  return kDefaultAlignment;
}

Status GgufParser::ReadShape(std::vector<uint64_t>* shape, uint64_t* elements) {
  constexpr uint32_t kMaxDimensions = 4;
  const uint64_t at = pos_;
  CACHALOT_ASSIGN_OR_RETURN(const uint32_t dimensions, Read<uint32_t>("number of dimensions"));
  if (dimensions < 1 || dimensions > kMaxDimensions) {
    return Error(at, fmt::format("the tensor has {} dimensions, expected 1 to {}", dimensions, kMaxDimensions));
  }
  *elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const uint64_t size, Read<uint64_t>("dimension"));
    shape->push_back(size);
    if (size == 0) return Error(pos_ - 8, fmt::format("dimension {} of the tensor is 0", i));
    if (__builtin_mul_overflow(*elements, size, elements) || *elements > (uint64_t{1} << 56)) {
      return Error(at, fmt::format("the shape {} has more than 2^56 elements", ShapeText(*shape)));
    }
  }
  return OkStatus();
}

Result<GgufParser::TensorInfo> GgufParser::ReadTensorInfo() {
  TensorInfo info;
  subject_kind_ = "";
  CACHALOT_ASSIGN_OR_RETURN(info.tensor.name, ReadName("tensor name"));
  subject_kind_ = "tensor";
  subject_name_ = info.tensor.name;
  uint64_t elements = 0;
  CACHALOT_RETURN_IF_ERROR(ReadShape(&info.tensor.shape, &elements));
  CACHALOT_ASSIGN_OR_RETURN(const uint32_t number, Read<uint32_t>("tensor type"));
  const std::optional<TensorTypeInfo> type = FindTensorType(number);
  if (!type) {
    return Error(pos_ - 4, fmt::format("tensor type {} ({}) is not supported, expected one of {}", number,
                                       UnsupportedTypeName(number), SupportedTensorTypes()));
  }
  info.tensor.type = type->type;
  if (info.tensor.shape[0] % type->block_values != 0) {
    return Error(pos_ - 4, fmt::format("rows of {} elements do not divide into blocks of {} ({})", info.tensor.shape[0],
                                       type->block_values, type->name));
  }
  info.bytes = elements / type->block_values * type->block_bytes;
  info.offset_at = pos_;
  CACHALOT_ASSIGN_OR_RETURN(info.offset, Read<uint64_t>("tensor offset"));
  return info;
}

Status GgufParser::SetTensorBytes(TensorInfo* info, uint64_t data_start) const {
  const uint64_t data_bytes = bytes_.size() - std::min<uint64_t>(data_start, bytes_.size());
  if (info->offset > data_bytes || info->bytes > data_bytes - info->offset) {
    return Error(
        info->offset_at,
        fmt::format("tensor {} of shape {} needs {} bytes at offset {} of the tensor data, but the file has {} "
                    "there: is it truncated?",
                    QuoteName(info->tensor.name), ShapeText(info->tensor.shape), info->bytes, info->offset,
                    data_bytes));
  }
  info->tensor.bytes = bytes_.subspan(data_start + info->offset, info->bytes);
  return OkStatus();
}

Result<std::vector<GgufTensor>> GgufParser::ReadTensors(uint64_t alignment) {
  std::vector<TensorInfo> infos;
  infos.reserve(tensor_count_);
  for (uint64_t i = 0; i < tensor_count_; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(TensorInfo info, ReadTensorInfo());
    if (info.offset % alignment != 0) {
      return Error(info.offset_at,
                   fmt::format("the offset {} is not a multiple of the alignment {}", info.offset, alignment));
    }
    infos.push_back(std::move(info));
  }
  subject_kind_ = "";
  const uint64_t data_start = (pos_ + alignment - 1) / alignment * alignment;
  std::vector<GgufTensor> tensors;
  tensors.reserve(infos.size());
  for (TensorInfo& info : infos) {
    CACHALOT_RETURN_IF_ERROR(SetTensorBytes(&info, data_start));
    tensors.push_back(std::move(info.tensor));
  }
  return tensors;
}

}  // namespace cachalot::model
