#include "exec/cpu/panel_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/tensor_type.h"
#include "base/thread_pool.h"

namespace cachalot::exec {
namespace {

constexpr std::string_view kMagic = "CHPANELS";
constexpr uint64_t kHeadBytes = 24;
constexpr uint64_t kAlignment = 4096;

constexpr uint64_t Aligned(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string ChecksumOf(std::span<const std::byte> bytes) { return fmt::format("{:016x}", Hash64(bytes)); }

// The index, with offsets that count from the end of the index.
std::string IndexOf(const PanelSource& source, const PanelsByTensor& panels) {
  std::string text;
  JsonWriter w(&text);
  w.BeginObject().Key("layout").String(kernels::kPanelLayoutId);
  w.Key("fingerprint").String(HexOf(source.fingerprint));
  w.Key("as_f32").Bool(source.as == kernels::PackAs::kF32);
  w.Key("matrices").BeginArray();
  uint64_t offset = 0;
  for (const auto& [tensor, matrix] : panels) {
    w.BeginObject().Key("tensor").String(tensor).Key("type").UInt(static_cast<uint32_t>(matrix.type()));
    w.Key("rows").UInt(matrix.rows()).Key("columns").UInt(matrix.columns());
    w.Key("offset").UInt(offset).Key("bytes").UInt(matrix.bytes()).Key("xxh3").String(ChecksumOf(matrix.contents()));
    w.EndObject();
    offset = Aligned(offset + matrix.bytes());
  }
  w.EndArray().EndObject();
  return text;
}

void AppendInt(uint64_t value, std::string* out) { out->append(reinterpret_cast<const char*>(&value), sizeof value); }

Status AppendPadding(AtomicFile& file, uint64_t size) {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  return file.Append(std::span(kZeros).first(Aligned(size) - size));
}

// One matrix as the index describes it.
struct Entry {
  std::string tensor;
  std::span<const std::byte> bytes;
  std::string checksum;
  TensorType type{};
  uint32_t rows = 0, columns = 0;
};

std::optional<uint64_t> UIntOf(const Json& object, std::string_view key) {
  const Json* member = object.Find(key);
  const int64_t* value = member == nullptr ? nullptr : member->AsInt();
  if (value == nullptr || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<std::string> StringOf(const Json& object, std::string_view key) {
  const Json* member = object.Find(key);
  const std::string* value = member == nullptr ? nullptr : member->AsString();
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<Entry> EntryOf(const Json& json, std::span<const std::byte> panels) {
  const auto tensor = StringOf(json, "tensor"), checksum = StringOf(json, "xxh3");
  const auto type = UIntOf(json, "type"), rows = UIntOf(json, "rows"), columns = UIntOf(json, "columns");
  const auto offset = UIntOf(json, "offset"), bytes = UIntOf(json, "bytes");
  if (!tensor || !checksum || !type || !rows || !columns || !offset || !bytes) return std::nullopt;
  if (*type > UINT32_MAX || *rows > UINT32_MAX || *columns > UINT32_MAX) return std::nullopt;
  if (!FindTensorType(static_cast<uint32_t>(*type))) return std::nullopt;
  if (*offset > panels.size() || *bytes > panels.size() - *offset || *offset % kAlignment != 0) return std::nullopt;
  return Entry{*tensor,
               panels.subspan(*offset, *bytes),
               *checksum,
               static_cast<TensorType>(*type),
               static_cast<uint32_t>(*rows),
               static_cast<uint32_t>(*columns)};
}

// The index of a file, and where its panels begin.
struct Index {
  Json json;
  std::span<const std::byte> panels;
};

Result<Index> ReadIndex(std::span<const std::byte> file) {
  if (file.size() < kHeadBytes || TextOf(file.first(kMagic.size())) != kMagic) return Corrupt("no panel file");
  uint64_t size, checksum;
  std::memcpy(&size, file.data() + 8, sizeof size);
  std::memcpy(&checksum, file.data() + 16, sizeof checksum);
  if (size > file.size() - kHeadBytes) return Corrupt("the index is cut short");
  const std::string_view text = TextOf(file.subspan(kHeadBytes, size));
  if (Hash64(text) != checksum) return Corrupt("the index is not what was written");
  Result<Json> json = ParseJson(text);
  if (!json.ok()) return Corrupt(json.status().message());
  const uint64_t begin = std::min<uint64_t>(Aligned(kHeadBytes + size), file.size());
  return Index{std::move(json).value(), file.subspan(begin)};
}

Status CheckSource(const Json& index, const PanelSource& source) {
  if (StringOf(index, "layout") != kernels::kPanelLayoutId) return Corrupt("panels of another layout");
  if (StringOf(index, "fingerprint") != HexOf(source.fingerprint)) return Corrupt("panels of another model");
  const Json* as_f32 = index.Find("as_f32");
  if (as_f32 == nullptr || *as_f32 != Json(source.as == kernels::PackAs::kF32))
    return Corrupt("panels of another form");
  return OkStatus();
}

Result<std::vector<Entry>> ReadEntries(const Index& index) {
  const Json* list = index.json.Find("matrices");
  if (list == nullptr || list->AsArray() == nullptr) return Corrupt("the index lists no matrices");
  std::vector<Entry> entries;
  for (const Json& json : *list->AsArray()) {
    std::optional<Entry> entry = EntryOf(json, index.panels);
    if (!entry) return Corrupt(fmt::format("matrix {} of the index is none, or is cut short", entries.size()));
    entries.push_back(*std::move(entry));
  }
  return entries;
}

// The first entry whose bytes are not those that were written.
std::optional<size_t> FirstDamaged(const std::vector<Entry>& entries, ThreadPool& pool) {
  std::atomic<size_t> first{entries.size()};
  pool.ParallelFor(entries.size(), [&](size_t i) {
    if (ChecksumOf(entries[i].bytes) == entries[i].checksum) return;
    size_t seen = first;
    while (i < seen && !first.compare_exchange_weak(seen, i)) {
    }
  });
  return first == entries.size() ? std::nullopt : std::optional<size_t>(first);
}

}  // namespace

Result<PanelsByTensor> ReadPanelFile(MappedFile file, const PanelSource& source, ThreadPool& pool) {
  const auto shared = std::make_shared<const MappedFile>(std::move(file));
  CACHALOT_ASSIGN_OR_RETURN(const Index index, ReadIndex(shared->bytes()));
  CACHALOT_RETURN_IF_ERROR(CheckSource(index.json, source));
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadEntries(index));
  if (const auto damaged = FirstDamaged(entries, pool)) {
    return Corrupt(fmt::format("the panels of {} are not what was written", entries[*damaged].tensor));
  }
  PanelsByTensor panels;
  for (const Entry& entry : entries) {
    const std::shared_ptr<const std::byte> data(shared, entry.bytes.data());
    Result<kernels::PackedMatrix> matrix =
        kernels::PackedMatrix::OfPanels(entry.type, entry.rows, entry.columns, data, entry.bytes.size());
    if (!matrix.ok()) return Corrupt(fmt::format("{}: {}", entry.tensor, matrix.status().message()));
    panels.emplace(entry.tensor, std::move(matrix).value());
  }
  return panels;
}

Status WritePanelFile(const std::string& path, const PanelSource& source, const PanelsByTensor& panels) {
  const std::string index = IndexOf(source, panels);
  std::string head(kMagic);
  AppendInt(index.size(), &head);
  AppendInt(Hash64(index), &head);
  head += index;
  CACHALOT_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  CACHALOT_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(head))));
  CACHALOT_RETURN_IF_ERROR(AppendPadding(file, head.size()));
  for (const auto& [tensor, matrix] : panels) {
    CACHALOT_RETURN_IF_ERROR(file.Append(matrix.contents()));
    CACHALOT_RETURN_IF_ERROR(AppendPadding(file, matrix.bytes()));
  }
  return file.Commit();
}

}  // namespace cachalot::exec
