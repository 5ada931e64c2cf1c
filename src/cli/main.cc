#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/fp_env.h"
#include "cli/commands.h"

namespace {

using cachalot::Code;
using cachalot::Status;
using cachalot::cli::Arguments;

struct Command {
  std::string_view name;
  Status (*run)(const Arguments&);
  std::string_view help;
};

constexpr Command kCommands[] = {
    {"serve", cachalot::cli::ServeCommand, "serve a model over the OpenAI API"},
    {"run", cachalot::cli::RunCommand, "chat in the terminal, or answer once with -p"},
    {"bench", cachalot::cli::BenchCommand, "measure prefill, decode, depth and concurrency"},
    {"calibrate", cachalot::cli::CalibrateCommand, "measure what steps cost, for serve and run to begin with"},
    {"plan", cachalot::cli::PlanCommand, "size a model's KV on a device, and say what limits it"},
    {"replay", cachalot::cli::ReplayCommand, "replay a request trace through an eviction policy"},
    {"advise", cachalot::cli::AdviseCommand, "which wall traffic hits first, and what to do about it"},
    {"perplexity", cachalot::cli::PerplexityCommand, "perplexity of a model on a text file"},
    {"tokenize", cachalot::cli::TokenizeCommand, "token ids of a text"},
    {"inspect", cachalot::cli::InspectCommand, "what is in a model file or a disk tier"},
    {"fetch", cachalot::cli::FetchCommand, "obtain a catalogue model and print its path"},
};

void PrintUsage(std::FILE* to) {
  fmt::print(to, "usage: cachalot COMMAND [FLAGS]      (cachalot COMMAND --help lists the flags)\n\n");
  for (const Command& command : kCommands) fmt::print(to, "  {:<11} {}\n", command.name, command.help);
}

// What was printed has reached where it goes.
Status FlushOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return cachalot::OkStatus();
  return cachalot::Unavailable(
      fmt::format("cannot write to standard output: {}", std::generic_category().message(errno)));
}

Status Run(const Command& command, const Arguments& arguments) {
  try {
    CACHALOT_RETURN_IF_ERROR(command.run(arguments));
    return FlushOutput();
  } catch (const std::system_error& error) {  // of fmt::print, or of std::thread
    return cachalot::Unavailable(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  cachalot::SetDefaultFpEnv();
  const std::string_view name = argc < 2 ? "" : argv[1];
  if (name == "--help" || name == "-h" || name == "help") {
    PrintUsage(stdout);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    const Status status = Run(command, Arguments(argv + 2, argv + argc));
    if (status.ok()) return 0;
    fmt::print(stderr, "cachalot {}: {}\n", name, status.message());
    return status.code() == Code::kInvalid ? 2 : 1;
  }
  if (!name.empty()) fmt::print(stderr, "cachalot: unknown command \"{}\"\n", name);
  PrintUsage(stderr);
  return 2;
}
