#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/terminal.h"
#include "load/driver.h"

namespace cachalot::cli {

Status BenchServeCommand(const Arguments& arguments) {
  load::LoadOptions options;
  bool json = false;
  FlagSet flags("bench serve", "Measures any server of the OpenAI API under load.");
  flags.AddAll(options);
  flags.Add("json", json, "Print JSON.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  CatchInterrupts();
  const SteadyClock clock;
  ProgressBar bar("measuring");
  CACHALOT_ASSIGN_OR_RETURN(const load::LoadReport report, load::RunLoad(options, clock, [&](double share) {
                              bar.Show(share);
                              return !Interrupted();
                            }));
  fmt::print("{}", json ? report.Json() : report.Table());
  if (report.ok() > 0) return OkStatus();
  return Unavailable(fmt::format("none of {} requests was answered", report.sent()));
}

}  // namespace cachalot::cli
