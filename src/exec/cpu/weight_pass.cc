#include "exec/cpu/weight_pass.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/thread_pool.h"
#include "model/fingerprint.h"
#include "model/gguf.h"

namespace cachalot::exec {
namespace {

// What is read between two joins of the threads: a whole number of pieces, so that none is cut.
constexpr uint64_t kWindowBytes = 16 * model::ContentHash::kPieceBytes;

constexpr uint64_t CeilDiv(uint64_t value, uint64_t divisor) { return (value + divisor - 1) / divisor; }

}  // namespace

WeightPass::WeightPass(const model::GgufFile& file, ThreadPool& pool, Progress progress)
    : file_(file), pool_(pool), progress_(std::move(progress)), contents_(file.tensors().size()) {
  for (const model::GgufTensor& tensor : file.tensors()) total_bytes_ += tensor.bytes.size();
}

Result<kernels::PackedMatrix> WeightPass::Pack(const model::GgufTensor& tensor, kernels::PackAs as) {
  const auto rows = static_cast<uint32_t>(tensor.shape[1]);
  const auto columns = static_cast<uint32_t>(tensor.shape[0]);
  Result<kernels::PanelPacker> packer = kernels::PanelPacker::Start({tensor.type, rows, columns, tensor.bytes}, as);
  if (!packer.ok()) return packer.status().Annotate(fmt::format("tensor {}", tensor.name));
  Read(tensor, &*packer);
  return std::move(packer).value().Finish();
}

Digest WeightPass::Fingerprint() {
  std::vector<Digest> contents;
  for (size_t i = 0; i < contents_.size(); ++i) {
    if (!contents_[i]) Read(file_.tensors()[i], nullptr);
    contents.push_back(*contents_[i]);
  }
  return model::ModelFingerprint(file_, contents);
}

// Windows from front to back; those of one panel that reaches into the next are read again there, still resident.
void WeightPass::Read(const model::GgufTensor& tensor, kernels::PanelPacker* packer) {
  const auto index = static_cast<size_t>(&tensor - file_.tensors().data());
  CACHALOT_CHECK(index < contents_.size());
  const bool hashed = contents_[index].has_value();
  const std::span<const std::byte> bytes = tensor.bytes;
  const uint64_t panel_bytes = packer == nullptr ? 0 : packer->source_panel_bytes();
  model::ContentHash hash(bytes);
  file_.Prefetch(bytes.first(std::min(kWindowBytes, bytes.size())));
  for (uint64_t begin = 0; begin < bytes.size(); begin += kWindowBytes) {
    const uint64_t end = std::min(begin + kWindowBytes, bytes.size());
    file_.Prefetch(bytes.subspan(end, std::min(kWindowBytes, bytes.size() - end)));
    const uint64_t first_piece = begin / model::ContentHash::kPieceBytes;
    const uint64_t pieces = hashed ? 0 : CeilDiv(end - begin, model::ContentHash::kPieceBytes);
    const uint64_t first_panel = packer == nullptr ? 0 : CeilDiv(begin, panel_bytes);
    const uint64_t panels = packer == nullptr ? 0 : CeilDiv(end, panel_bytes) - first_panel;
    pool_.ParallelFor(pieces + panels, [&](size_t task) {
      if (task < pieces) return hash.HashPiece(first_piece + task);
      packer->PackPanel(static_cast<uint32_t>(first_panel + task - pieces));
    });
    file_.Release(bytes.subspan(begin, end - begin));
    if (hashed) continue;
    read_bytes_ += end - begin;
    if (progress_) progress_(static_cast<double>(read_bytes_) / static_cast<double>(total_bytes_));
  }
  if (!hashed) contents_[index] = hash.Finish();
}

}  // namespace cachalot::exec
