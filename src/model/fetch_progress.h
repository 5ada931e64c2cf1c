// FetchProgress turns the event lines of FetchScript into what the user sees.
// Threads:   one thread.
// Ownership: borrows `entry` and `print`.
// Invariant: prints at most one bar update per percent, or one line per tenth where there is no terminal.
// Cost:      linear in the events.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cachalot::model {

struct CatalogueEntry;

class FetchProgress {
 public:
  FetchProgress(const CatalogueEntry& entry, bool terminal, const std::function<void(std::string_view)>& print);

  // One line as FetchScript prints it; unknown ones are ignored.
  void OnLine(std::string_view line);
  // Ends the bar's line, if one is open.
  void End();

  // The text of the last "error" event; empty when there was none.
  const std::string& error() const { return error_; }

 private:
  void Show(const char* doing, uint64_t done, uint64_t total);

  const CatalogueEntry& entry_;
  const bool terminal_;
  const std::function<void(std::string_view)>& print_;
  uint64_t download_bytes_ = 0;  // of all parts
  uint64_t earlier_bytes_ = 0;   // of the parts before this one
  const char* shown_doing_ = "";
  uint64_t shown_percent_ = 0;
  bool bar_open_ = false;
  std::string error_;
};

}  // namespace cachalot::model
