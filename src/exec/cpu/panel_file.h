// Panel files keep a model's packed weights on disk, so that the next start maps them instead of packing them again.
// Threads:   pure functions of files; a mapping may be read from any thread.
// Ownership: matrices share the mapping, which ends with the last of them.
// Invariant: ReadPanelFile gives what WritePanelFile was given, or an error: every byte is checked. What a file holds
//            is named by the fingerprint of the model that it was packed from; its path alone proves nothing.
// Cost:      reading takes every byte once, in parallel, at the speed of XXH3; writing is one pass and a sync.
//
// The file: "CHPANELS", the index's length and its XXH3 (64 bits each, little endian), the index, then panels at
// multiples of 4,096 bytes. The index is JSON: {"layout", "fingerprint", "as_f32", "matrices": [{"tensor", "type",
// "rows", "columns", "offset", "bytes", "xxh3"}]}.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "kernels/packed_matrix.h"

namespace cachalot {
class ThreadPool;
}

namespace cachalot::exec {

// What panels are made of.
struct PanelSource {
  Digest fingerprint{};  // of the model
  kernels::PackAs as = kernels::PackAs::kItsType;
};

using PanelsByTensor = std::map<std::string, kernels::PackedMatrix, std::less<>>;

Status WritePanelFile(const std::string& path, const PanelSource& source, const PanelsByTensor& panels);

// kCorrupt, naming what differs, when it is not what was written for `source`.
Result<PanelsByTensor> ReadPanelFile(MappedFile file, const PanelSource& source, ThreadPool& pool);

}  // namespace cachalot::exec
