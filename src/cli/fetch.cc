#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/flags.h"
#include "model/catalogue.h"
#include "model/fetch.h"

namespace cachalot::cli {

Status FetchCommand(const Arguments& arguments) {
  std::string name(model::kDefaultModel);
  FlagSet flags("fetch", "Obtains a catalogue model into the cache folder and prints its path.");
  flags.Positional("MODEL", &name, fmt::format("one of: {}", model::CatalogueNames()), false);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();
  CACHALOT_ASSIGN_OR_RETURN(const std::string path, model::ResolveModel(name, model::DefaultFetchOptions()));
  fmt::print("{}\n", path);
  return OkStatus();
}

}  // namespace cachalot::cli
