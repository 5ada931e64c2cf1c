#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/known_shape.h"
#include "cli/option_rules.h"
#include "cli/plan_options.h"
#include "plan/devices.h"
#include "plan/links.h"
#include "plan/models.h"
#include "plan/plan.h"
#include "plan/report.h"

namespace cachalot::cli {
namespace {

struct Output {
  bool json = false;
  std::string html;
  bool list_models = false;
  bool list_devices = false;
  bool list_links = false;
};

void ListModels() {
  for (const plan::CatalogueModel& model : plan::Models()) {
    fmt::print("{:<24} {:<32} {}\n", model.name, model.title, model.source);
  }
}

void ListDevices() {
  for (const plan::Device& device : plan::Devices()) {
    fmt::print("{:<14} {:<40} {:>8} {:>7.0f} GB/s {:>7.1f} TFLOP/s at 16 bits {:>7.1f} at 8   {}\n", device.name,
               device.title, FormatBytes(device.memory_bytes), device.memory_rate / 1e9, device.flops16 / 1e12,
               device.flops8 / 1e12, device.source);
  }
}

void ListLinks() {
  for (const plan::Link& link : plan::Links()) {
    fmt::print("{:<16} {:<32} {:>8.4g} GB/s {:>8.0f} us   {}\n", link.name, link.title, link.bytes_per_second / 1e9,
               link.latency_seconds * 1e6, link.source);
  }
}

// Whether a list was asked for.
bool PrintLists(const Output& output) {
  if (output.list_models) ListModels();
  if (output.list_devices) ListDevices();
  if (output.list_links) ListLinks();
  return output.list_models || output.list_devices || output.list_links;
}

}  // namespace

Status PlanCommand(const Arguments& arguments) {
  PlanOptions options;
  Output output;
  std::string name;
  FlagSet flags("plan", "Says how much memory and time a model's KV takes, what fits on a device, and what limits it.");
  flags.Positional("MODEL", &name, "config.json, folder with one, GGUF file, or a name (--list-models)", false);
  flags.AddAll(options);
  flags.Add("json", output.json, "Print JSON.");
  flags.Add("html", output.html, "Write a report to this file too.");
  flags.Output("html");
  flags.Add("list-models", output.list_models, "Print the known models.");
  flags.Add("list-devices", output.list_devices, "Print the known devices.");
  flags.Add("list-links", output.list_links, "Print the known links.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on || PrintLists(output)) return OkStatus();
  if (name.empty()) return Invalid("expected MODEL, or --list-models");
  CACHALOT_RETURN_IF_ERROR(CheckRules(flags.Given(), PlanRules()));

  CACHALOT_ASSIGN_OR_RETURN(const plan::ModelShape model, LoadShape(name));
  CACHALOT_ASSIGN_OR_RETURN(const plan::PlanRequest request, RequestOf(options, name, model));
  CACHALOT_ASSIGN_OR_RETURN(const plan::Plan plan, plan::MakePlan(request));
  const plan::Report report = plan::BuildReport(plan);
  if (!output.html.empty()) {
    CACHALOT_RETURN_IF_ERROR(WriteFileAtomically(output.html, plan::ReportAsHtml(report)));
  }
  fmt::print("{}", output.json ? plan::ReportAsJson(report) : plan::ReportAsText(report));
  return OkStatus();
}

}  // namespace cachalot::cli
