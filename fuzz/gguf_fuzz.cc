// Feeds arbitrary bytes to everything that reads a model file before it is run.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"
#include "model/fingerprint.h"
#include "model/gguf.h"
#include "model/model_spec.h"
#include "model/weights.h"

namespace cachalot::model {
namespace {

void CheckTensors(const GgufFile& file, std::span<const std::byte> bytes) {
  for (const GgufTensor& tensor : file.tensors()) {
    CACHALOT_CHECK(tensor.bytes.data() >= bytes.data());
    CACHALOT_CHECK(tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size());
    CACHALOT_CHECK(file.FindTensor(tensor.name) == &tensor);
  }
  for (const GgufFile::Entry& entry : file.metadata()) CACHALOT_CHECK(file.Find(entry.key) == &entry.value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A map is page-aligned; the fuzzer's buffer is not aligned at all.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size > 0) std::memcpy(copy.get(), data, size);
  const std::span<const std::byte> bytes(copy.get(), size);
  const Result<GgufFile> file = GgufFile::Parse(bytes, "fuzz");
  if (!file.ok()) {
    CACHALOT_CHECK(file.status().message().find('\n') == std::string::npos);
    return 0;
  }
  CheckTensors(*file, bytes);
  (void)ModelFingerprint(*file);
  (void)TokenizerFingerprint(*file);
  const Result<ModelSpec> spec = ReadModelSpec(*file);
  if (spec.ok()) (void)BindWeights(*file, *spec);
  return 0;
}

}  // namespace cachalot::model
