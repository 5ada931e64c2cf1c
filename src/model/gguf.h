// GgufFile is a parsed, fully validated GGUF v2/v3 file: metadata and tensor views over a memory map.
// Threads:   immutable after Open; any thread may read.
// Ownership: owns the map; every span and string_view it hands out lives as long as the GgufFile.
// Invariant: every offset, count, type, string and array was checked against the file's real size before use; a
//            tensor's bytes lie inside the file and hold exactly its elements.
// Cost:      Open is linear in the metadata; tensor bytes are not touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/tensor_type.h"

namespace cachalot::model {

// A metadata value. Integers of every width arrive as int64 or uint64, floats as double; strings are views into the
// map and may hold any bytes (GGUF does not promise UTF-8).
struct GgufArray {
  std::vector<int64_t> ints;              // element type integer or bool
  std::vector<float> floats;              // element type float32 or float64
  std::vector<std::string_view> strings;  // element type string
  uint64_t size = 0;                      // elements; exactly one of the vectors holds them
  bool operator==(const GgufArray&) const = default;
};
using GgufValue = std::variant<bool, int64_t, uint64_t, double, std::string_view, GgufArray>;

struct GgufTensor {
  std::string_view name;
  TensorType type;
  std::vector<uint64_t> shape;  // innermost first, as in the file: [columns, rows, ...]
  std::span<const std::byte> bytes;
};

class GgufFile {
 public:
  // One clear line for anything malformed: path, what is wrong, at which offset, what was expected.
  static Result<GgufFile> Open(const std::string& path);
  // The same over bytes already in memory, which must outlive the result (tests, fuzzing).
  static Result<GgufFile> Parse(std::span<const std::byte> bytes, const std::string& name);

  uint32_t version() const { return version_; }
  uint64_t file_bytes() const { return bytes_.size(); }
  // The path or name that errors about this file begin with.
  const std::string& name() const { return name_; }
  // In file order.
  struct Entry {
    std::string_view key;
    GgufValue value;
    std::span<const std::byte> raw;  // type and value as they stand in the file, for fingerprints
  };
  std::span<const Entry> metadata() const { return metadata_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }

  // Null when absent.
  const GgufValue* Find(std::string_view key) const;
  const GgufTensor* FindTensor(std::string_view name) const;

  // Typed look-ups. Absent: `nullopt`/null; present with another type: a kInvalid status naming key and both types.
  Result<std::optional<uint64_t>> FindUInt(std::string_view key) const;
  Result<std::optional<double>> FindNumber(std::string_view key) const;
  Result<std::optional<bool>> FindBool(std::string_view key) const;
  Result<std::optional<std::string_view>> FindString(std::string_view key) const;
  Result<const GgufArray*> FindArray(std::string_view key) const;  // null when absent

  // For one who reads tensor bytes once, from front to back (MappedFile); nothing happens without a map.
  void Prefetch(std::span<const std::byte> part) const;
  void Release(std::span<const std::byte> part) const;

 private:
  GgufFile() = default;
  Status BuildIndex();

  std::optional<MappedFile> file_;
  std::string name_;
  std::span<const std::byte> bytes_;
  uint32_t version_ = 0;
  std::vector<Entry> metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> metadata_by_key_, tensors_by_name_;  // sorted indices for look-up
};

}  // namespace cachalot::model
