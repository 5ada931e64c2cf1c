// Fingerprints name a model file by all that it holds, whatever the file is called.
// Threads:   pure functions; different pieces of one ContentHash may be hashed by different threads.
// Ownership: a ContentHash borrows the bytes that it hashes.
// Invariant: one changed byte anywhere, of weights or metadata, changes the model's fingerprint.
// Cost:      every byte is read once, at the speed of SHA-256.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"

namespace cachalot::model {

class GgufFile;

// The hash of a tensor's bytes: SHA-256 over the digests of its pieces of kPieceBytes, the last of which may be
// shorter. Pieces can be hashed side by side, and while their bytes are at hand for something else.
class ContentHash {
 public:
  static constexpr uint64_t kPieceBytes = 1 << 20;

  explicit ContentHash(std::span<const std::byte> bytes);

  size_t pieces() const { return digests_.size(); }
  void HashPiece(size_t piece);
  // Requires that every piece was hashed.
  Digest Finish() const;

 private:
  std::span<const std::byte> bytes_;
  std::vector<Digest> digests_;
};

// The model fingerprint (docs/architecture.md, identity): SHA-256 over all metadata and, per tensor in name order, its
// name, type, shape and content hash. `contents` holds the tensors' ContentHashes in the order of file.tensors().
Digest ModelFingerprint(const GgufFile& file, std::span<const Digest> contents);
// The same, hashing all tensors first.
Digest ModelFingerprint(const GgufFile& file);

// Tokenizer fingerprint: SHA-256 over the metadata entries whose keys begin with "tokenizer.".
Digest TokenizerFingerprint(const GgufFile& file);

}  // namespace cachalot::model
