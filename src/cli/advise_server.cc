#include "cli/advise_server.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/units.h"
#include "cli/flags.h"
#include "cli/step_curve_flag.h"
#include "cli/terminal.h"
#include "plan/live_report.h"
#include "sim/trace_serving.h"

namespace cachalot::cli {
namespace {

constexpr double kMostSeconds = 86'400;
constexpr Nanos kQueueSampled = std::chrono::seconds(1);

constexpr auto kGoOn = [] { return true; };  // an interrupt ends the program; outlives all who ask it

// What the server's settings say under that group and name; null: they do not.
const Json* SettingIn(const Json& kv, std::string_view group, std::string_view name) {
  const Json* settings = kv.Find("settings");
  const Json* members = settings == nullptr ? nullptr : settings->Find(group);
  return members == nullptr ? nullptr : members->Find(name);
}

// What /v1/kv tells besides: the engine's settings under their own names, others under those that `advise` has for
// them.
Status AddSettings(const Json& kv, Arguments* flags) {
  const auto add = [&](std::string_view group, std::string_view name, const std::string& flag) -> Status {
    const Json* value = SettingIn(kv, group, name);
    if (value == nullptr || value->is_null()) return OkStatus();
    CACHALOT_ASSIGN_OR_RETURN(std::string argument, FlagOf(flag, *value));
    flags->push_back(std::move(argument));
    return OkStatus();
  };
  CACHALOT_RETURN_IF_ERROR(add("model", "kv-type", "kv-format"));
  CACHALOT_RETURN_IF_ERROR(add("model", "block-tokens", "kv-block-tokens"));
  const Json* disk = SettingIn(kv, "tiers", "disk-path");
  if (disk != nullptr && *disk != Json("")) CACHALOT_RETURN_IF_ERROR(add("tiers", "disk-size", "disk-size"));
  const Json* settings = kv.Find("settings");
  const Json* engine = settings == nullptr ? nullptr : settings->Find("engine");
  if (engine == nullptr || engine->AsObject() == nullptr) return OkStatus();
  for (const auto& [name, value] : *engine->AsObject()) CACHALOT_RETURN_IF_ERROR(add("engine", name, name));
  return OkStatus();
}

uint64_t Whole(double value) { return static_cast<uint64_t>(std::llround(std::max(value, 0.0))); }

}  // namespace

ServerReading::ServerReading(std::unique_ptr<SteadyClock> clock, std::unique_ptr<load::LiveServer> server,
                             Scrape scrape, load::ServerIdentity identity, Nanos at)
    : clock_(std::move(clock)),
      server_(std::move(server)),
      scrape_(std::move(scrape)),
      identity_(std::move(identity)),
      at_(at) {}

Result<ServerReading> ServerReading::Read(const AdviseOptions& options) {
  const auto given = [](const std::string& flag, const char* variable) {
    return flag.empty() ? GetEnv(variable, "") : flag;
  };
  auto clock = std::make_unique<SteadyClock>();
  CACHALOT_ASSIGN_OR_RETURN(auto server,
                            load::LiveServer::Open(options.url,
                                                   {.api = given(options.api_key, "CACHALOT_API_KEY"),
                                                    .admin = given(options.admin_key, "CACHALOT_ADMIN_KEY")},
                                                   *clock, kGoOn));
  CACHALOT_ASSIGN_OR_RETURN(Scrape scrape, server->ReadMetrics());
  const Nanos at = clock->Now();
  CACHALOT_ASSIGN_OR_RETURN(load::ServerIdentity identity, server->ReadIdentity());
  return ServerReading(std::move(clock), std::move(server), std::move(scrape), std::move(identity), at);
}

Result<Arguments> ServerReading::Flags(const AdviseOptions& options) const {
  Arguments flags;
  if (!identity_.model.empty()) {
    flags.push_back("--model=" + identity_.model);
    flags.push_back(fmt::format("--context={}", identity_.context_tokens));
  } else if (options.model.empty() || options.context == 0) {
    return Invalid(fmt::format(
        "{} tells its model to those with a key only: expected --api-key, or --model and --context", address()));
  }
  const double slots = scrape_.Level(Gauge::kKvSlots), bytes = scrape_.Level(Gauge::kKvBytes);
  flags.push_back(fmt::format("--kv-memory={}", Whole(bytes)));
  const double host = scrape_.Sum(Gauge::kHostBytes) - scrape_.Level(Gauge::kHostBytes, "overhead");
  flags.push_back(fmt::format("--host-memory={}", Whole(host)));
  if (!identity_.kv.is_null()) {
    CACHALOT_RETURN_IF_ERROR(AddSettings(identity_.kv, &flags).Annotate(address() + ", its settings"));
  }
  StepCurve curve{};
  for (size_t i = 0; i < curve.size(); ++i) curve[i] = scrape_.Level(Gauge::kStepCost, kStepTerms[i]);
  const bool learnt = std::ranges::any_of(curve, [](double term) { return term > 0; });
  if (options.profile.empty() && options.step_curve.empty()) {
    if (!learnt || slots == 0) {
      return Invalid(fmt::format(
          "{} has not run the model yet, so it does not know what a step costs: expected --profile", address()));
    }
    flags.push_back("--step-curve=" + FormatStepCurve(curve));
  }
  return flags;
}

Status ServerReading::CheckPool(const plan::Setting& present) const {
  const uint64_t slots = Whole(scrape_.Level(Gauge::kKvSlots));
  if (present.slots == slots) return OkStatus();
  const uint64_t bytes = slots == 0 ? 0 : Whole(scrape_.Level(Gauge::kKvBytes)) / slots;
  return Invalid(fmt::format(
      "{} has {} blocks of {}, but by these flags it would have {} of {}: --model, --context, --kv-format, "
      "--kv-block-tokens or --kv-memory is not the server's (--admin-key shows them)",
      address(), FormatCount(slots), FormatBytes(bytes), FormatCount(present.slots), FormatBytes(present.slot_bytes)));
}

std::string ServerReading::Unknown() const {
  if (identity_.kv.Find("settings") != nullptr) return "";
  return "The server shows its settings to those with its --admin-key only: taken are those of serve's defaults, "
         "and no disk, but for flags given here.";
}

Result<plan::Report> ServerReading::Watch(double seconds) {
  if (!(seconds >= 0.1 && seconds <= kMostSeconds)) {
    return Invalid(fmt::format("--seconds is {}, expected 0.1 to {}", seconds, kMostSeconds));
  }
  const Nanos until = at_ + Nanos(std::llround(seconds * 1e9));
  ProgressBar bar("watching");
  constexpr int kParts = 100;
  for (int part = 1; part <= kParts; ++part) {
    const Nanos now = clock_->Now();
    if (now < until) server_->Wait((until - now) / (kParts - part + 1));
    bar.Show(static_cast<double>(part) / kParts);
  }
  CACHALOT_ASSIGN_OR_RETURN(Scrape second, server_->ReadMetrics());
  const double passed = ToSeconds(clock_->Now() - at_);
  Result<plan::LiveWindow> window = plan::LiveWindow::Of(scrape_, std::move(second), passed);
  if (!window.ok()) return window.status().Annotate(address());
  return plan::BuildLiveReport({address(), identity_.model}, *window, plan::JudgeLive(*window));
}

Result<sim::Agreement> ServerReading::Compare(const sim::Trace& record, const plan::Setting& present,
                                              const AdviseRun::Options& options) const {
  sim::TraceServingOptions serving = ServingOf(present, options);
  serving.rate = 1;
  serving.tenants = true;
  serving.sample_every = kQueueSampled;
  CACHALOT_ASSIGN_OR_RETURN(const sim::TraceServingReport report, sim::ServeTrace(record, serving));
  return sim::CompareWithServer(scrape_, report);
}

}  // namespace cachalot::cli
