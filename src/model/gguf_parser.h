// GgufParser reads the parts of a GGUF file in their order and checks each against the bytes that are really there.
// Threads:   one parser belongs to one thread.
// Ownership: the results view into `bytes`, which must outlive them.
// Invariant: never reads outside `bytes`; what it allocates is bounded by the file's size and by the limits below.
// Cost:      linear in the metadata; tensor bytes are not touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/gguf.h"

namespace cachalot::model {

inline constexpr uint64_t kMaxMetadataEntries = 1 << 16;
inline constexpr uint64_t kMaxTensors = 1 << 17;
inline constexpr uint64_t kMaxNameBytes = 1024;         // of a key or a tensor name
inline constexpr uint64_t kMaxArrayElements = 1 << 24;  // of all arrays together
inline constexpr uint64_t kMinAlignment = 8;            // so that F32 tensors can be read in place
inline constexpr uint64_t kMaxAlignment = 1 << 20;
inline constexpr uint64_t kDefaultAlignment = 32;

// A name from a file as it may stand in a one-line message: quoted, printable ASCII, shortened.
std::string QuoteName(std::string_view name);

// "a string", "an array of float32", ... for messages.
std::string DescribeValue(const GgufValue& value);

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  // Each once, in this order.
  Status ReadHeader();
  Result<std::vector<GgufFile::Entry>> ReadMetadata();
  Result<std::vector<GgufTensor>> ReadTensors(uint64_t alignment);

  uint32_t version() const { return version_; }
  // The alignment that the metadata asks for.
  Result<uint64_t> Alignment(std::span<const GgufFile::Entry> metadata) const;

 private:
  struct TensorInfo {
    GgufTensor tensor;
    uint64_t offset = 0;  // from the start of the tensor data
    uint64_t bytes = 0;
    uint64_t offset_at = 0;  // where the offset stands in the file
  };

  uint64_t left() const { return bytes_.size() - pos_; }
  Status Error(uint64_t at, const std::string& what) const;
  // " (tensor 'x')": what is being read, for messages.
  std::string Subject() const;
  Status CheckMagic() const;

  template <class T>
  Result<T> Read(const char* what);
  Result<std::string_view> ReadString(const char* what, uint64_t limit_bytes);
  Result<std::string_view> ReadName(const char* what);
  Result<GgufValue> ReadValue(uint32_t type);
  template <class T, class Wide>
  Result<GgufValue> ReadScalar();
  Result<GgufValue> ReadBool();
  Result<GgufValue> ReadArray();
  Status ReadElements(uint32_t type, GgufArray* array);
  template <class T>
  Status ReadInts(GgufArray* array);
  template <class T>
  Status ReadFloats(GgufArray* array);
  Result<TensorInfo> ReadTensorInfo();
  Status ReadShape(std::vector<uint64_t>* shape, uint64_t* elements);
  Status SetTensorBytes(TensorInfo* info, uint64_t data_start) const;

  std::span<const std::byte> bytes_;
  std::string name_;
  uint64_t pos_ = 0;
  uint32_t version_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t metadata_count_ = 0;
  uint64_t array_elements_ = 0;
  const char* subject_kind_ = "";
  std::string_view subject_name_;
};

}  // namespace cachalot::model
