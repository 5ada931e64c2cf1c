#include "model/fetch_progress.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/units.h"
#include "model/catalogue.h"

namespace cachalot::model {
namespace {

constexpr uint64_t kBarCells = 30;

uint64_t NumberOf(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

FetchProgress::FetchProgress(const CatalogueEntry& entry, bool terminal,
                             const std::function<void(std::string_view)>& print)
    : entry_(entry), terminal_(terminal), print_(print) {
  for (const CataloguePart& part : entry.parts) download_bytes_ += part.download_bytes;
}

void FetchProgress::OnLine(std::string_view line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view kind = line.substr(0, space);
  const std::string_view text = line.substr(std::min(space + 1, line.size()));
  if (kind == "part") {
    earlier_bytes_ = 0;
    const uint64_t index = std::min<uint64_t>(NumberOf(text), entry_.parts.size());
    for (uint64_t i = 0; i < index; ++i) earlier_bytes_ += entry_.parts[i].download_bytes;
  } else if (kind == "bytes") {
    Show("downloading", earlier_bytes_ + NumberOf(text), download_bytes_);
  } else if (kind == "unpack") {
    Show("unpacking", NumberOf(text), entry_.file_bytes);
  } else if (kind == "note") {
    End();
    print_(fmt::format("{}: {}\n", entry_.name, text));
  } else if (kind == "error") {
    error_ = text;
  }
}

void FetchProgress::Show(const char* doing, uint64_t done, uint64_t total) {
  const uint64_t percent = total == 0 ? 100 : std::min<uint64_t>(done, total) * 100 / total;
  const bool same = std::string_view(doing) == shown_doing_;
  if (same && percent < shown_percent_ + (terminal_ ? 1 : 10)) return;
  if (!same) End();
  shown_doing_ = doing;
  shown_percent_ = terminal_ ? percent : percent / 10 * 10;
  const std::string amount = fmt::format("{:3}%  {} of {}", percent, FormatBytes(done), FormatBytes(total));
  if (!terminal_) {
    print_(fmt::format("{}: {} {}\n", entry_.name, doing, amount));
    return;
  }
  const uint64_t full = percent * kBarCells / 100;
  print_(fmt::format("\r{}: {:<11} [{:#<{}}{:.<{}}] {}", entry_.name, doing, "", full, "", kBarCells - full, amount));
  bar_open_ = true;
}

void FetchProgress::End() {
  if (bar_open_) print_("\n");
  bar_open_ = false;
}

}  // namespace cachalot::model
