#include "sim/formats/line_source.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachalot::sim {
namespace {

constexpr uint64_t kReadBytes = uint64_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Result<LineSource> LineSource::Open(const std::string& path, uint64_t most_line_bytes) {
  CACHALOT_ASSIGN_OR_RETURN(InputStream file, InputStream::Open(path));
  return LineSource(std::move(file), most_line_bytes);
}

Result<bool> LineSource::Next(std::string_view* line) {
  size_t end = left_.find('\n');
  while (end == std::string_view::npos && file_) {
    const size_t searched = left_.size();
    if (searched > most_line_bytes_) break;
    CACHALOT_RETURN_IF_ERROR(ReadMore());
    end = left_.find('\n', searched);
  }
  if (left_.empty()) return false;
  *line = left_.substr(0, end);
  if (line->size() > most_line_bytes_) {
    return Invalid(fmt::format("line {}: longer than {} bytes", number_ + 1, most_line_bytes_));
  }
  left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 1);
  if (line->ends_with('\r')) line->remove_suffix(1);
  if (++number_ == 1 && line->starts_with(kByteOrderMark)) line->remove_prefix(kByteOrderMark.size());
  return true;
}

Status LineSource::ReadMore() {
  std::string more(left_);
  CACHALOT_ASSIGN_OR_RETURN(const bool is_more, file_->Read(std::max<uint64_t>(kReadBytes, more.size()), &more));
  if (!is_more) file_.reset();
  buffer_ = std::move(more);
  left_ = buffer_;
  return OkStatus();
}

}  // namespace cachalot::sim
