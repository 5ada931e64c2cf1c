#include "model/fingerprint.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "base/check.h"
#include "model/gguf.h"

namespace cachalot::model {
namespace {

// Digests the entries whose keys begin with `prefix`, in key order, each with its type and value as in the file.
void UpdateMetadata(const GgufFile& file, std::string_view prefix, Sha256* hash) {
  std::vector<const GgufFile::Entry*> entries;
  for (const GgufFile::Entry& entry : file.metadata()) {
    if (entry.key.starts_with(prefix)) entries.push_back(&entry);
  }
  std::ranges::sort(entries, {}, &GgufFile::Entry::key);
  hash->UpdateInt(entries.size());
  for (const GgufFile::Entry* entry : entries) {
    hash->UpdateField(entry->key);
    hash->UpdateField(entry->raw);
  }
}

}  // namespace

ContentHash::ContentHash(std::span<const std::byte> bytes)
    : bytes_(bytes), digests_((bytes.size() + kPieceBytes - 1) / kPieceBytes) {}

void ContentHash::HashPiece(size_t piece) {
  const uint64_t begin = piece * kPieceBytes;
  digests_[piece] = Sha256Of(bytes_.subspan(begin, std::min<uint64_t>(kPieceBytes, bytes_.size() - begin)));
}

Digest ContentHash::Finish() const { return Sha256Of(std::as_bytes(std::span(digests_))); }

Digest ModelFingerprint(const GgufFile& file, std::span<const Digest> contents) {
  CACHALOT_CHECK(contents.size() == file.tensors().size());
  Sha256 hash;
  hash.UpdateField("cachalot.model.2");
  UpdateMetadata(file, "", &hash);
  std::vector<size_t> order(contents.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) { return file.tensors()[i].name; });
  hash.UpdateInt(order.size());
  for (const size_t i : order) {
    const GgufTensor& tensor = file.tensors()[i];
    hash.UpdateField(tensor.name);
    hash.UpdateInt(static_cast<uint32_t>(tensor.type));
    hash.UpdateInt(tensor.shape.size());
    for (const uint64_t size : tensor.shape) hash.UpdateInt(size);
    hash.Update(std::as_bytes(std::span(contents[i])));
  }
  return hash.Finish();
}

Digest ModelFingerprint(const GgufFile& file) {
  std::vector<Digest> contents;
  for (const GgufTensor& tensor : file.tensors()) {
    ContentHash hash(tensor.bytes);
    for (size_t piece = 0; piece < hash.pieces(); ++piece) hash.HashPiece(piece);
    contents.push_back(hash.Finish());
  }
  return ModelFingerprint(file, contents);
}

Digest TokenizerFingerprint(const GgufFile& file) {
  Sha256 hash;
  hash.UpdateField("cachalot.tokenizer.1");
  UpdateMetadata(file, "tokenizer.", &hash);
  return hash.Finish();
}

}  // namespace cachalot::model
