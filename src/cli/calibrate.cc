#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "cli/calibration.h"
#include "cli/calibration_run.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/loaded_model.h"
#include "cli/terminal.h"
#include "cost/step_cost.h"
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

void PrintJson(const std::string& path, const std::vector<CalibrationPoint>& points, const CalibrationFit& fit) {
  std::string text;
  JsonWriter w(&text);
  w.BeginObject().Key("path").String(path);
  w.Key("relative_error").Double(fit.relative_error);
  w.Key("seconds").Value(cost::CurveAsJson(fit.curve));
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
  FlagSet flags("calibrate",
                "Measures what steps of MODEL cost on this machine, and stores it for serve and run: in the cache "
                "folder, or in the file that --calibration names.");
  flags.Positional("MODEL", &model_options.model, "path or catalogue name", false);
  flags.Add("json", json, "One JSON object instead of tables.");
  flags.AddAll(model_options);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  std::string path = std::exchange(model_options.calibration, "");
  CACHALOT_ASSIGN_OR_RETURN(const auto model, LoadModel(model_options, engine_options));
  cost::CalibrationProfile profile{.key = CalibrationKeyOf(*model)};
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
  profile.curve = fit.curve;
  profile.relative_error = fit.relative_error;
  CACHALOT_RETURN_IF_ERROR(StoreCalibration(path, profile));
  if (json) {
    PrintJson(path, points, fit);
  } else {
    PrintTable(points, fit);
    fmt::print("stored in {}\n", path);
  }
  return OkStatus();
}

}  // namespace cachalot::cli
