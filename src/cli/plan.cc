#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cost/calibration_profile.h"
#include "model/catalogue.h"
#include "model/fetch.h"
#include "model/gguf.h"
#include "model/hf_config.h"
#include "plan/devices.h"
#include "plan/links.h"
#include "plan/models.h"
#include "plan/plan.h"
#include "plan/report.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kDefaultContext = 8192;
constexpr uint64_t kMaxSamplesBytes = 64 << 20;

struct PlanOptions {
  std::string device = "h100";
  uint32_t tensor = 0;
  uint32_t context_shards = 1;
  uint64_t users = 0;
  uint64_t context = 0;
  std::string kv_format = "f16";
  std::string weights;
  uint32_t block_tokens = 16;
  uint32_t step_rows = 512;
  ByteSize device_memory;
  ByteSize activations;
  ByteSize host_memory;
  ByteSize disk_size;
  double memory_share = 0.9;
  double compute_share = 0.5;
  double link_share = 0.8;
  std::string calibration;
  uint64_t mean = 0, p50 = 0, p99 = 0, peak = 0;
  std::string concurrency;
  double device_price = 0;
  double storage_price = 0;
  double keep_hours = 1;
  template <class F>
  void Visit(F&& f) {
    f("device", device, "Device, by name (--list-devices).");
    f("tensor", tensor, "Devices that share the heads and matrices of one model; 0: the fewest that hold --users.");
    f("context-shards", context_shards, "Devices that share the positions of each sequence.");
    f("users", users, "Sequences at once; 0: as many as fit.");
    f("context", context, "Tokens of each sequence; 0: the model's context, at most 8192.");
    f("kv-format", kv_format, "Format of KV: f16, fp8, int8, int4, ...");
    f("weights", weights, "Format of weights: bf16, fp8, q4_k, ...; as published where not given.");
    f("block-tokens", block_tokens, "Tokens per KV block.");
    f("step-rows", step_rows, "Most rows of one sequence in a step.");
    f("device-memory", device_memory, "Memory of a device, instead of its sheet's.");
    f("activations", activations, "Activations of a device; estimated where not given.");
    f("host-memory", host_memory, "Host memory for KV.");
    f("disk-size", disk_size, "Disk for KV.");
    f("memory-share", memory_share, "Of a device's memory that is used.");
    f("compute-share", compute_share, "Of the stated arithmetic that computing a prompt reaches.");
    f("link-share", link_share, "Of the stated rate of links and memory that is reached.");
    f("calibration", calibration, "File of `cachalot calibrate`: how fast this machine computes.");
    f("concurrency-mean", mean, "Sequences at once on average.");
    f("concurrency-p50", p50, "Sequences at once that half of the time is not above.");
    f("concurrency-p99", p99, "Sequences at once that 99 % of the time is not above.");
    f("concurrency-peak", peak, "Most sequences at once.");
    f("concurrency", concurrency, "File of samples instead: one number of sequences per line.");
    f("price-device-hour", device_price, "Dollars for an hour of one device.");
    f("price-storage", storage_price, "Dollars for a GiB of kept KV and month.");
    f("keep-hours", keep_hours, "Hours that KV is kept before it is used again.");
  }
};

struct Output {
  bool json = false;
  std::string html;
  bool list_models = false;
  bool list_devices = false;
  bool list_links = false;
};

Result<plan::ModelShape> ShapeOfConfig(const std::string& text, const std::string& name, const std::string& source) {
  CACHALOT_ASSIGN_OR_RETURN(const model::HfConfig config, model::ParseHfConfig(text, source));
  return plan::ShapeOf(config, name, source);
}

Result<plan::ModelShape> ShapeOfGguf(const std::string& path) {
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile file, model::GgufFile::Open(path));
  return plan::ShapeOf(file);
}

// A folder with a config.json, a GGUF file, a config.json, a name of the planner's catalogue, or one that `fetch`
// knows.
Result<plan::ModelShape> LoadShape(const std::string& name) {
  std::error_code missing;
  std::filesystem::path path = name;
  if (std::filesystem::is_directory(path, missing)) path /= "config.json";
  if (std::filesystem::exists(path, missing)) {
    if (path.extension() == ".gguf") return ShapeOfGguf(path);
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, model::kMaxHfConfigBytes));
    const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
    return ShapeOfConfig(text, folder.filename(), path);
  }
  if (const plan::CatalogueModel* known = plan::FindModel(name)) {
    return ShapeOfConfig(std::string(known->config), std::string(known->title), std::string(known->source));
  }
  if (model::FindCatalogueEntry(name) != nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(const std::string file, model::ResolveModel(name, model::DefaultFetchOptions()));
    return ShapeOfGguf(file);
  }
  return Invalid(
      fmt::format("model \"{}\" is no file, folder or known name; expected a config.json, a GGUF file, {} "
                  "(GGUF), or one of {}",
                  name, model::CatalogueNames(), plan::ModelNames()));
}

Result<std::optional<plan::ConcurrencyProfile>> ReadConcurrency(const PlanOptions& options) {
  if (!options.concurrency.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.concurrency, kMaxSamplesBytes));
    CACHALOT_ASSIGN_OR_RETURN(auto profile, plan::ReadConcurrency(text, options.concurrency));
    return std::optional(std::move(profile));
  }
  if (options.mean + options.p50 + options.p99 + options.peak == 0) return std::optional<plan::ConcurrencyProfile>();
  plan::ConcurrencyProfile profile;
  profile.mean = options.mean;
  profile.p50 = options.p50;
  profile.p99 = options.p99;
  profile.peak = options.peak;
  CACHALOT_RETURN_IF_ERROR(plan::CheckConcurrency(profile));
  return std::optional(std::move(profile));
}

Result<plan::Machine> MachineOf(const PlanOptions& options) {
  const plan::Device* device = plan::FindDevice(options.device);
  if (device == nullptr) {
    return Invalid(
        fmt::format("--device \"{}\" is not known, expected one of {}", options.device, plan::DeviceNames()));
  }
  plan::Machine machine;
  machine.device = *device;
  if (options.device_memory.bytes != 0) machine.device.memory_bytes = options.device_memory.bytes;
  machine.shards = {std::max(options.tensor, 1u), options.context_shards};
  machine.memory_share = options.memory_share;
  machine.compute_share = options.compute_share;
  machine.link_share = options.link_share;
  if (!options.calibration.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.calibration, cost::kMaxProfileBytes));
    Result<cost::CalibrationProfile> profile = cost::ParseProfile(text);
    if (!profile.ok()) return profile.status().Annotate(options.calibration);
    machine.measured = profile->curve;
  }
  return machine;
}

Result<plan::PlanRequest> RequestOf(const PlanOptions& options, const plan::ModelShape& model) {
  plan::PlanRequest request;
  request.model = model;
  CACHALOT_ASSIGN_OR_RETURN(request.machine, MachineOf(options));
  request.choose_shards = options.tensor == 0;
  request.context_tokens = options.context;
  if (options.context == 0) {
    request.context_tokens =
        model.context_tokens == 0 ? kDefaultContext : std::min(model.context_tokens, kDefaultContext);
  }
  request.users = options.users;
  request.weight_format = plan::PublishedFormat(model);
  if (!options.weights.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(request.weight_format, plan::FindWeightFormat(options.weights));
  }
  CACHALOT_ASSIGN_OR_RETURN(request.kv.format, plan::FindKvFormat(options.kv_format));
  request.kv.block_tokens = options.block_tokens;
  request.kv.step_tokens = options.step_rows;
  request.kv.reference_tokens = request.context_tokens;
  request.activation_bytes = options.activations.bytes;
  request.host_bytes = options.host_memory.bytes;
  request.disk_bytes = options.disk_size.bytes;
  CACHALOT_ASSIGN_OR_RETURN(request.concurrency, ReadConcurrency(options));
  request.prices = {options.device_price, options.storage_price, options.keep_hours};
  return request;
}

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
  flags.Add("list-models", output.list_models, "Print the known models.");
  flags.Add("list-devices", output.list_devices, "Print the known devices.");
  flags.Add("list-links", output.list_links, "Print the known links.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on || PrintLists(output)) return OkStatus();
  if (name.empty()) return Invalid("expected MODEL, or --list-models");

  CACHALOT_ASSIGN_OR_RETURN(const plan::ModelShape model, LoadShape(name));
  CACHALOT_ASSIGN_OR_RETURN(const plan::PlanRequest request, RequestOf(options, model));
  CACHALOT_ASSIGN_OR_RETURN(const plan::Plan plan, plan::MakePlan(request));
  const plan::Report report = plan::BuildReport(plan);
  if (!output.html.empty()) {
    CACHALOT_RETURN_IF_ERROR(WriteFileAtomically(output.html, plan::ReportAsHtml(report)));
  }
  fmt::print("{}", output.json ? plan::ReportAsJson(report) : plan::ReportAsText(report));
  return OkStatus();
}

}  // namespace cachalot::cli
