#include "tier/archive_file.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "tier/byte_fields.h"
#include "tier/session_record.h"

namespace cachalot::tier {
namespace {

constexpr std::array<uint8_t, 8> kMagic = {0xCA, 'C', 'H', 'S', 'A', 'V', 'E', 0x0A};
constexpr uint32_t kVersion = 3;
constexpr uint64_t kLengthBytes = sizeof(uint64_t);
constexpr uint64_t kMostBodyBytes = uint64_t{1} << 30;  // before memory is taken for it

Digest MacOf(const MacKey& key, const Digest& last, std::span<const std::byte> body) {
  HmacSha256 mac(key);
  mac.Update(std::as_bytes(std::span(last)));
  mac.Update(body);
  return mac.Finish();
}

std::vector<std::byte> Encoded(const ArchiveHeader& header) {
  constexpr size_t kFixedBytes = 80;
  std::vector<std::byte> out;
  out.reserve(kFixedBytes + SessionRecordBytes(header.session));
  FieldWriter writer(out);
  writer.Bytes(kMagic);
  writer.U32(kVersion);
  writer.U64(header.slot_bytes);
  writer.U32(header.block_tokens);
  writer.U32(header.kv_tokens);
  writer.U32(header.parts);
  writer.U64(header.saved);
  writer.U64(header.kv_seconds);
  AppendSessionRecord({.sequence = 1, .session = header.session}, /*seed=*/0, out);
  return out;
}

Result<ArchiveHeader> DecodeHeader(std::span<const std::byte> body) {
  FieldReader reader(body);
  ArchiveHeader header;
  const bool ours = reader.Bytes<kMagic.size()>() == kMagic;
  const uint32_t version = reader.U32();
  if (ours && reader.ok() && version != kVersion) {
    return Corrupt(fmt::format("format version {} of a saved session, expected {}", version, kVersion));
  }
  header.slot_bytes = reader.U64();
  header.block_tokens = reader.U32();
  header.kv_tokens = reader.U32();
  header.parts = reader.U32();
  header.saved = reader.U64();
  header.kv_seconds = reader.U64();
  const std::span<const std::byte> head_bytes = reader.Take(kSessionRecordHeadBytes);
  const auto head = reader.ok() ? DecodeSessionRecordHead(head_bytes, 0) : std::nullopt;
  const auto change = head ? DecodeSessionRecord(*head, reader.Take(reader.left()), 0) : std::nullopt;
  if (!ours || !change) return Corrupt("no header of a saved session");
  if (header.kv_tokens > change->session.tokens.size()) {
    return Corrupt("a saved session has KV of more tokens than it has");
  }
  header.session = change->session;
  return header;
}

Result<ArchivedKv> DecodePart(std::span<const std::byte> body, const ArchiveHeader& header) {
  FieldReader reader(body);
  ArchivedKv part;
  const uint32_t blocks = reader.U32();
  if (blocks == 0 || blocks > kArchivedKvBlocks) return Corrupt("a saved session has a part without blocks");
  part.groups.resize(blocks);
  uint64_t slots = 0;
  for (uint32_t& groups : part.groups) slots += static_cast<uint64_t>(std::popcount(groups = reader.U32()));
  if (!reader.ok() || reader.left() != slots * header.slot_bytes) return Corrupt("a part of a saved session is cut");
  const std::span<const std::byte> bytes = reader.Take(reader.left());
  part.bytes.assign(bytes.begin(), bytes.end());
  return part;
}

}  // namespace

Status CheckArchiveName(const std::string& name) {
  constexpr size_t kMostBytes = 128;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  if (!name.empty() && name.size() <= kMostBytes && name.front() != '.' && std::ranges::all_of(name, allowed)) {
    return OkStatus();
  }
  return Invalid(
      fmt::format("a file's name of {} bytes; expected 1 to {} letters, digits, '.', '_' and '-', no leading '.'",
                  name.size(), kMostBytes));
}

// '@' is in no name.
std::string ArchiveFileName(const std::string& owner, const std::string& name) {
  return owner.empty() ? name : name + "@" + HexOf(Sha256Of(std::as_bytes(std::span(owner))));
}

ArchiveWriter::~ArchiveWriter() {
  if (file_ != nullptr) (void)files_.Remove(temporary_);
}

Status ArchiveWriter::Begin(const std::string& name, const ArchiveHeader& header) {
  const std::string file_name = ArchiveFileName(header.session.key.owner, name);
  path_ = folder_ + "/" + file_name;
  temporary_ = folder_ + "/." + file_name + ".tmp";
  CACHALOT_RETURN_IF_ERROR(files_.Remove(temporary_));
  CACHALOT_ASSIGN_OR_RETURN(file_, files_.Open(temporary_, OpenMode::kCreate));
  return Write(Encoded(header));
}

Status ArchiveWriter::Append(const ArchivedKv& part) {
  std::vector<std::byte> body;
  body.reserve(part.bytes.size() + sizeof(uint32_t) * (part.groups.size() + 1));
  FieldWriter writer(body);
  writer.U32(static_cast<uint32_t>(part.groups.size()));
  for (const uint32_t groups : part.groups) writer.U32(groups);
  body.insert(body.end(), part.bytes.begin(), part.bytes.end());
  return Write(body);
}

Status ArchiveWriter::Write(std::span<const std::byte> body) {
  CACHALOT_ASSIGN_OR_RETURN(const DiskRoom room, files_.Room(folder_));
  const uint64_t bytes = kLengthBytes + body.size() + sizeof(Digest);
  if (room.free_bytes < bytes || room.free_bytes - bytes < min_free_bytes_) {
    return Overloaded(fmt::format("the disk is full: {} are free where sessions are saved, {} of them for others",
                                  FormatBytes(room.free_bytes), FormatBytes(min_free_bytes_)));
  }
  last_ = MacOf(key_, last_, body);
  std::vector<std::byte> length;
  FieldWriter(length).U64(body.size());
  const std::array<std::span<const std::byte>, 3> pieces = {length, body, std::as_bytes(std::span(last_))};
  for (const std::span<const std::byte> piece : pieces) {
    CACHALOT_RETURN_IF_ERROR(file_->WriteAt(offset_, piece));
    offset_ += piece.size();
  }
  return OkStatus();
}

Status ArchiveWriter::Finish() {
  CACHALOT_RETURN_IF_ERROR(file_->Sync());
  CACHALOT_RETURN_IF_ERROR(files_.Rename(temporary_, path_));
  file_.reset();
  return files_.SyncFolder(folder_);
}

ArchiveReader::ArchiveReader(std::unique_ptr<File> file, uint64_t file_bytes, const MacKey& key)
    : file_(std::move(file)), file_bytes_(file_bytes), key_(key) {}

Result<ArchiveReader> ArchiveReader::Open(FileSystem& files, const std::string& folder, const std::string& owner,
                                          const std::string& name, const MacKey& key) {
  const auto missing = [&] { return Invalid(fmt::format("there is no saved session '{}' that can be read", name)); };
  Result<std::unique_ptr<File>> file = files.Open(folder + "/" + ArchiveFileName(owner, name), OpenMode::kRead);
  if (!file.ok()) return missing();
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t bytes, (*file)->Size());
  ArchiveReader reader(std::move(*file), bytes, key);
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::byte> body, reader.Read());
  CACHALOT_ASSIGN_OR_RETURN(reader.header_, DecodeHeader(body));
  if (reader.header_.session.key.owner != owner) return missing();  // whoever gave it that name
  return reader;
}

// The next body, if it is signed.
Result<std::vector<std::byte>> ArchiveReader::Read() {
  const auto cut = [] { return Corrupt("the saved session is cut off"); };
  if (file_bytes_ - offset_ < kLengthBytes + sizeof(Digest)) return cut();
  std::vector<std::byte> length(kLengthBytes);
  CACHALOT_RETURN_IF_ERROR(file_->ReadAt(offset_, length));
  const uint64_t bytes = FieldReader(length).U64();
  if (bytes > kMostBodyBytes || bytes > file_bytes_ - offset_ - kLengthBytes - sizeof(Digest)) return cut();
  std::vector<std::byte> body(bytes);
  Digest mac;
  CACHALOT_RETURN_IF_ERROR(file_->ReadAt(offset_ + kLengthBytes, body));
  CACHALOT_RETURN_IF_ERROR(file_->ReadAt(offset_ + kLengthBytes + bytes, std::as_writable_bytes(std::span(mac))));
  const Digest expected = MacOf(key_, last_, body);
  if (!SameDigest(mac, expected))
    return Corrupt("the saved session was not written by this server, or was changed since");
  last_ = mac;
  offset_ += kLengthBytes + bytes + sizeof(Digest);
  return body;
}

Result<ArchivedKv> ArchiveReader::Next() {
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::byte> body, Read());
  return DecodePart(body, header_);
}

Status ArchiveReader::CheckAll() {
  const Digest first = last_;
  const uint64_t begin = offset_;
  for (uint32_t part = 0; part < header_.parts; ++part) CACHALOT_RETURN_IF_ERROR(Next().status());
  if (offset_ != file_bytes_) return Corrupt("something follows the saved session");
  last_ = first;
  offset_ = begin;
  return OkStatus();
}

}  // namespace cachalot::tier
