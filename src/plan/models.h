// The planner's catalogue: known models as the part of their config.json that memory and time depend on.
// Threads:   constant data.
// Ownership: static.
// Invariant: names are unique; every config parses (model/hf_config.h) into what transformers makes of it.
// Cost:      none.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cachalot::plan {

struct CatalogueModel {
  std::string_view name;
  std::string_view title;
  std::string_view source;
  std::string_view config;  // JSON
};

std::span<const CatalogueModel> Models();
// Null when there is none of that name.
const CatalogueModel* FindModel(std::string_view name);
// "llama-2-7b, ...", for messages.
std::string ModelNames();

}  // namespace cachalot::plan
