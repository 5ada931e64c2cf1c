#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/memory_info.h"
#include "cli/calibration.h"
#include "cli/calibration_run.h"
#include "cli/commands.h"
#include "cli/disk_calibration.h"
#include "cli/flags.h"
#include "cli/loaded_model.h"
#include "cli/terminal.h"
#include "cost/step_cost.h"
#include "cost/tier_rates.h"
#include "model/catalogue.h"

namespace cachalot::cli {
namespace {

void PrintTable(const std::vector<CalibrationPoint>& points, const CalibrationFit& fit) {
  fmt::print("| sequences | rows each | depth | logit rows each | measured ms | predicted ms | error |\n");
  fmt::print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (size_t i = 0; i < points.size(); ++i) {
    const CalibrationStep& step = points[i].step;
    fmt::print("| {} | {} | {} | {} | {:.3f} | {:.3f} | {:+.1f} % |\n", step.sequences, step.rows, step.depth,
               step.logit_rows, points[i].seconds * 1e3, fit.predicted[i] * 1e3,
               (fit.predicted[i] / points[i].seconds - 1) * 100);
  }
  fmt::print("\n| term | microseconds |\n| --- | ---: |\n");
  for (size_t i = 0; i < fit.curve.size(); ++i) fmt::print("| {} | {:.6g} |\n", kStepTerms[i], fit.curve[i] * 1e6);
  fmt::print("\nmean error {:.1f} %\n", fit.relative_error * 100);
}

void PrintTiers(const TierRateTable& tiers) {
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    for (size_t way = 0; way < tiers[tier].size(); ++way) {
      const std::optional<TierRate>& rate = tiers[tier][way];
      if (!rate) continue;
      fmt::print("{} {}: {:.0f} MB/s, {:.2f} ms before the first byte\n", kTierNames[tier], kDirectionNames[way],
                 rate->bytes_per_second / 1e6, rate->latency_seconds * 1e3);
    }
  }
}

void PrintJson(const std::string& path, const std::vector<CalibrationPoint>& points, const CalibrationFit& fit,
               const TierRateTable& tiers) {
  std::string text;
  JsonWriter w(&text);
  w.BeginObject().Key("path").String(path);
  w.Key("relative_error").Double(fit.relative_error);
  w.Key("seconds").Value(cost::CurveAsJson(fit.curve));
  w.Key("tiers").Value(cost::TierRatesAsJson(tiers));
  w.Key("steps").BeginArray();
  for (size_t i = 0; i < points.size(); ++i) {
    const CalibrationStep& step = points[i].step;
    w.BeginObject();
    w.Key("sequences").UInt(step.sequences);
    w.Key("rows").UInt(step.rows);
    w.Key("depth").UInt(step.depth);
    w.Key("logit_rows").UInt(step.logit_rows);
    w.Key("measured").Double(points[i].seconds);
    w.Key("predicted").Double(fit.predicted[i]);
    w.EndObject();
  }
  w.EndArray().EndObject();
  fmt::print("{}\n", text);
}

}  // namespace

Status CalibrateCommand(const Arguments& arguments) {
  ModelOptions model_options;
  model_options.model = model::kDefaultModel;
  engine::EngineOptions engine_options;
  bool json = false;
  std::string disk_path;
  FlagSet flags("calibrate",
                "Measures what steps of MODEL cost on this machine, and how fast its KV goes to a disk and comes back, "
                "and stores it for serve and run: in the cache folder, or in the file that --calibration names.");
  flags.Positional("MODEL", &model_options.model, "path or catalogue name", false);
  flags.Add("json", json, "One JSON object instead of tables.");
  flags.Add("disk-path", disk_path, "Folder on the disk that is to be measured too. Empty: none.");
  flags.AddAll(model_options);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  std::string path = std::exchange(model_options.calibration, "");
  CACHALOT_ASSIGN_OR_RETURN(const auto model, LoadModel(model_options, engine_options));
  cost::CalibrationProfile profile{.key = CalibrationKeyOf(*model)};
  const std::string processor = ProcessorName();
  profile.source = cost::SourceLine(fmt::format("cachalot calibrate on {}, {} thread(s), of {}",
                                                processor.empty() ? "a processor without a name" : processor,
                                                profile.key.threads, model->name));
  if (path.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(path, CalibrationPath(profile.key));
  }
  std::vector<CalibrationPoint> points;
  {
    ProgressBar bar("measuring steps");
    CACHALOT_ASSIGN_OR_RETURN(points, MeasureCalibration(*model->executor, model->memory->slots(), model->clock,
                                                         [&](double share) { bar.Show(share); }));
  }
  const CalibrationFit fit = FitCalibration(points);
  CACHALOT_RETURN_IF_ERROR(CheckFit(fit));
  profile.curve = fit.curve;
  profile.relative_error = fit.relative_error;
  if (!disk_path.empty()) {
    const KvLayout& layout = model->weights->layout();
    CACHALOT_ASSIGN_OR_RETURN(profile.tiers,
                              MeasureDisk(disk_path, layout.slot_bytes * layout.groups.size(), model->clock));
  }
  CACHALOT_RETURN_IF_ERROR(StoreCalibration(path, profile));
  if (json) {
    PrintJson(path, points, fit, profile.tiers);
  } else {
    PrintTable(points, fit);
    PrintTiers(profile.tiers);
    fmt::print("stored in {}\n", path);
  }
  return OkStatus();
}

}  // namespace cachalot::cli
