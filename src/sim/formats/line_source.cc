#include "sim/formats/line_source.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"

namespace cachalot::sim {
namespace {

constexpr uint64_t kReadBytes = uint64_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Result<LineSource> LineSource::Open(const std::string& path) {
  Result<std::unique_ptr<File>> file = DiskFileSystem()->Open(path, OpenMode::kRead);
  if (!file.ok() && file.status().code() == Code::kInvalid) {
    CACHALOT_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxPipeBytes));
    return LineSource(std::make_unique<const std::string>(std::move(text)));
  }
  if (!file.ok()) return file.status();
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t bytes, (*file)->Size());
  return LineSource(std::move(*file), bytes);
}

Result<bool> LineSource::Next(std::string_view* line) {
  size_t end = left_.find('\n');
  while (end == std::string_view::npos && unread_bytes_ > 0) {
    const size_t searched = left_.size();
    if (searched > kMaxLineBytes) {
      return Invalid(fmt::format("line {}: longer than {} bytes", number_ + 1, kMaxLineBytes));
    }
    CACHALOT_RETURN_IF_ERROR(ReadMore());
    end = left_.find('\n', searched);
  }
  if (left_.empty()) return false;
  *line = left_.substr(0, end);
  left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 1);
  if (line->ends_with('\r')) line->remove_suffix(1);
  if (++number_ == 1 && line->starts_with(kByteOrderMark)) line->remove_prefix(kByteOrderMark.size());
  return true;
}

Status LineSource::ReadMore() {
  std::string more(left_);
  const size_t kept = more.size();
  const uint64_t bytes = std::min(unread_bytes_, std::max<uint64_t>(kReadBytes, kept));
  more.resize(kept + bytes);
  CACHALOT_RETURN_IF_ERROR(file_->ReadAt(offset_, std::as_writable_bytes(std::span(more)).subspan(kept)));
  buffer_ = std::move(more);
  left_ = buffer_;
  offset_ += bytes;
  unread_bytes_ -= bytes;
  return OkStatus();
}

}  // namespace cachalot::sim
