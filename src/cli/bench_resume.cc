#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/subprocess.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/terminal.h"
#include "load/resume_driver.h"

namespace cachalot::cli {
namespace {

Status RunShell(const std::string& command) {
  if (command.empty()) return OkStatus();
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", command};
  CACHALOT_ASSIGN_OR_RETURN(const SubprocessResult result, RunSubprocess(options));
  if (result.ok()) return OkStatus();
  return Unavailable(fmt::format("`{}` ended with {}: {}", command, result.exit_status, result.err));
}

// Somebody does it by hand.
Status AskForRestart() {
  if (isatty(STDIN_FILENO) == 0) return Invalid("restarted needs --restart-command, or somebody at a terminal");
  fmt::print(stderr, "\nEnd the server and start it again, then press Enter. ");
  int c = 0;
  while ((c = std::getchar()) != EOF && c != '\n') {
  }
  return c == EOF ? Unavailable("nobody restarted the server") : OkStatus();
}

}  // namespace

Status BenchResumeCommand(const Arguments& arguments) {
  load::ResumeOptions options;
  bool json = false;
  FlagSet flags("bench resume", "Measures how soon a server goes on with conversations that have lain idle.");
  flags.AddAll(options);
  flags.Add("json", json, "Print JSON.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();
  constexpr uint64_t kSeeds = uint64_t{1} << 32;
  if (options.seed == 0) options.seed = 1 + SystemEntropy() % kSeeds;

  CatchInterrupts();
  const SteadyClock clock;
  ProgressBar bar("measuring");
  const auto show = [&](double share) {
    bar.Show(share);
    return !Interrupted();
  };
  const auto restart = [&] {
    return options.restart_command.empty() ? AskForRestart() : RunShell(options.restart_command);
  };
  const auto before_return = [&] { return RunShell(options.idle_command); };
  CACHALOT_ASSIGN_OR_RETURN(const load::ResumeReport report,
                            load::RunResume(options, clock, {show, restart, before_return}));
  fmt::print("{}", json ? report.Json() : report.Table());
  return OkStatus();
}

}  // namespace cachalot::cli
