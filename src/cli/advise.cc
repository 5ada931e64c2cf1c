// `cachalot advise`: which wall traffic hits first on a machine, or on a running server, and what to do about it.
#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/advise_options.h"
#include "cli/advise_present.h"
#include "cli/advise_run.h"
#include "cli/advise_server.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/trace_source.h"
#include "plan/advice_report.h"
#include "plan/agreement_report.h"
#include "sim/reorder.h"

namespace cachalot::cli {
namespace {

struct AdviseSettings {
  TraceSource source;
  AdviseOptions options;
  engine::EngineOptions engine;
  GivenOptions given;

  bool has_trace() const { return !source.path.empty() || !source.workload.empty(); }
};

// False when --help was asked for and printed.
Result<bool> ReadSettings(const Arguments& arguments, AdviseSettings* settings) {
  FlagSet flags("advise",
                "Says which wall the traffic of a trace hits first on a machine, or that of a running server, and what "
                "to do about it.");
  flags.Positional("TRACE", &settings->source.path, kTraceHelp, false);
  flags.AddAll(settings->source);
  flags.AddAll(settings->options);
  flags.AddAll(settings->engine);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  settings->given = flags.Given();
  return go_on;
}

// Without a trace a server's metrics alone are judged, of which nothing else can be set.
Status CheckTogether(const GivenOptions& given) {
  std::vector<OptionRule> rules = TraceRules();
  const auto add = [&](const std::vector<OptionRule>& more) { rules.insert(rules.end(), more.begin(), more.end()); };
  add({{"seconds", {"url"}, {"TRACE", "workload"}}, {"api-key", {"url"}, {}}, {"admin-key", {"url"}, {}}});
  for (const std::string_view device : {"device", "device-memory", "memory-share", "compute-share", "link-share"}) {
    rules.push_back({std::string(device), {}, {"profile", "step-curve", "url"}});
  }
  for (const std::vector<OptionRule>& with_trace : {RulesOfAll<AdviseOptions>({"TRACE", "workload"}, {}),
                                                    RulesOfAll<engine::EngineOptions>({"TRACE", "workload"}, {}),
                                                    RulesOfAll<TraceSource>({"TRACE", "workload"}, {})}) {
    for (const OptionRule& rule : with_trace) {
      constexpr std::string_view kOfServer[] = {"url", "api-key", "admin-key", "seconds", "json"};
      if (std::ranges::find(kOfServer, rule.name) == std::end(kOfServer)) rules.push_back(rule);
    }
  }
  return CheckRules(given, rules);
}

// With what the server says where the user says nothing.
Status AddServersSettings(const ServerReading& server, const Arguments& arguments, AdviseSettings* settings) {
  CACHALOT_ASSIGN_OR_RETURN(Arguments words, server.Flags(settings->options));
  words.insert(words.end(), arguments.begin(), arguments.end());
  *settings = {};
  return ReadSettings(words, settings).status().Annotate("with the settings of " + server.address());
}

sim::Trace Beginning(sim::Trace trace, uint32_t requests) {
  if (requests > 0 && trace.requests.size() > requests) trace.requests.resize(requests);
  return trace;
}

Result<plan::Report> AdviceFor(const AdviseSettings& settings, const sim::TraceFile& file, plan::Present present) {
  plan::AdvisedTraffic traffic{.source = DescribeTrace(settings.source, file.facts),
                               .skipped = DescribeSkipped(file.facts),
                               .ttft_target = settings.engine.ttft_target};
  traffic.profile = sim::ProfileTraffic(file.trace, sim::FindOverlap(file.trace));
  present.traffic = FactsOf(traffic.profile);

  const sim::Trace simulated = Beginning(file.trace, settings.options.simulate);
  traffic.simulated_requests = simulated.requests.size();
  sim::Trace reordered;
  if (present.traffic.reorder) reordered = sim::Reordered(simulated, sim::FindOverlap(simulated));
  const AdviseRun run(simulated, std::move(reordered),
                      {.engine = settings.engine, .rate = settings.options.rate, .threads = settings.options.threads});
  CACHALOT_ASSIGN_OR_RETURN(const plan::Diagnosis diagnosis, plan::Diagnose(present, std::ref(run)));
  return plan::BuildAdviceReport(traffic, present, diagnosis);
}

// How far the simulation can be believed, before what it advises.
Status AddAgreement(const ServerReading& server, const AdviseSettings& settings, const sim::Trace& record,
                    const plan::Setting& present, plan::Report* report) {
  CACHALOT_ASSIGN_OR_RETURN(const sim::Agreement agreement,
                            server.Compare(record, present, {.engine = settings.engine}));
  report->answers.push_back(plan::AgreementSentence(agreement));
  report->tables.insert(report->tables.begin(), plan::AgreementTable(agreement));
  return OkStatus();
}

void Print(const plan::Report& report, const AdviseOptions& options) {
  fmt::print("{}", options.json ? plan::ReportAsJson(report) : plan::ReportAsText(report));
}

}  // namespace

Status AdviseCommand(const Arguments& arguments) {
  AdviseSettings settings;
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, ReadSettings(arguments, &settings));
  if (!go_on) return OkStatus();
  if (!settings.options.url.empty() || settings.has_trace()) {
    CACHALOT_RETURN_IF_ERROR(CheckTogether(settings.given));
  }
  std::optional<ServerReading> server;
  if (!settings.options.url.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(server, ServerReading::Read(settings.options));
    if (!settings.has_trace()) {
      CACHALOT_ASSIGN_OR_RETURN(const plan::Report report, server->Watch(settings.options.seconds));
      Print(report, settings.options);
      return OkStatus();
    }
    CACHALOT_RETURN_IF_ERROR(AddServersSettings(*server, arguments, &settings));
  }
  CACHALOT_ASSIGN_OR_RETURN(const plan::Present present, PresentOf(settings.options, settings.engine));
  if (server) CACHALOT_RETURN_IF_ERROR(server->CheckPool(present.setting));
  CACHALOT_ASSIGN_OR_RETURN(const sim::TraceFile file, LoadTrace(settings.source));
  CACHALOT_ASSIGN_OR_RETURN(plan::Report report, AdviceFor(settings, file, present));
  if (server) {
    if (file.facts.format == sim::kRecordFormat) {
      CACHALOT_RETURN_IF_ERROR(AddAgreement(*server, settings, file.trace, present.setting, &report));
    }
    if (std::string unknown = server->Unknown(); !unknown.empty()) report.answers.push_back(std::move(unknown));
  }
  Print(report, settings.options);
  return OkStatus();
}

}  // namespace cachalot::cli
