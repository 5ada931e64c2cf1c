// WeightPass reads every byte of a model file's tensors once: hashes it for the fingerprint, packs it for the kernels,
// and gives the file's pages back, so that at no time much more than one copy of the weights is in memory.
// Threads:   one caller; a window's work is divided among the pool's threads.
// Ownership: borrows file and pool.
// Invariant: after Fingerprint every tensor was read, whether it was packed or not.
// Cost:      linear in the file's bytes; what is resident of the file stays below a few windows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "kernels/packed_matrix.h"

namespace cachalot {
class ThreadPool;
}
namespace cachalot::model {
class GgufFile;
struct GgufTensor;
}  // namespace cachalot::model

namespace cachalot::exec {

class WeightPass {
 public:
  // Called with the share of the tensors' bytes that was read, 0 to 1.
  using Progress = std::function<void(double)>;

  WeightPass(const model::GgufFile& file, ThreadPool& pool, Progress progress);

  // Hashes the tensor too, unless that was done before.
  Result<kernels::PackedMatrix> Pack(const model::GgufTensor& tensor, kernels::PackAs as);
  // Reads what was not read yet and returns the file's fingerprint.
  Digest Fingerprint();

 private:
  void Read(const model::GgufTensor& tensor, kernels::PanelPacker* packer);

  const model::GgufFile& file_;
  ThreadPool& pool_;
  const Progress progress_;
  std::vector<std::optional<Digest>> contents_;  // one per tensor of the file
  uint64_t total_bytes_ = 0;
  uint64_t read_bytes_ = 0;
};

}  // namespace cachalot::exec
