#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/bench_measurement.h"
#include "cli/bench_plan.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/loaded_model.h"
#include "cli/terminal.h"
#include "model/catalogue.h"

namespace cachalot::cli {
namespace {

// Flags that BenchOptions has a list for, or that follow from the rows.
bool IsForRows(std::string_view name) { return name == "threads" || name == "context" || name == "kv-memory"; }

// The model as `rows`, all of equal threads and step rows, need it: with the KV of the largest and no more.
Result<std::unique_ptr<LoadedModel>> LoadFor(std::span<const BenchRow> rows, ModelOptions options) {
  engine::EngineOptions engine;
  engine.step_rows = engine.prefill_chunk = rows.front().step_rows;
  engine.max_sequences = 1;
  engine.prefix_cache = false;  // every token that is timed is computed
  std::vector<KvNeed> needs;
  for (const BenchRow& row : rows) {
    needs.push_back(KvNeedOf(row));
    options.context = std::max(options.context, needs.back().total_tokens);
    engine.max_sequences = std::max(engine.max_sequences, row.sequences);
  }
  engine.max_queue = engine.max_sequences;
  options.threads = rows.front().threads;
  return LoadModel(options, engine, needs);
}

Status MeasureRows(std::span<BenchRow> rows, const BenchOptions& options, LoadedModel& model) {
  ProgressBar bar("measuring");
  BenchMeasurement measurement(model);
  for (size_t i = 0; i < rows.size(); ++i) {
    bar.Show(static_cast<double>(i) / static_cast<double>(rows.size()));
    BenchRow& row = rows[i];
    row.threads = static_cast<uint32_t>(model.pool->thread_count());
    for (uint64_t run = 0; run < uint64_t{options.warm_up} + options.repetitions; ++run) {
      CACHALOT_ASSIGN_OR_RETURN(const double rate, measurement.Measure(row));
      if (run >= options.warm_up) row.rates.push_back(rate);
    }
  }
  return OkStatus();
}

Result<BenchSetting> MeasureAll(const BenchOptions& options, const ModelOptions& model_options,
                                std::vector<BenchRow>* rows) {
  const SteadyClock clock;
  BenchSetting setting;
  for (size_t begin = 0, end = 0; begin < rows->size(); begin = end) {
    const auto same = [&](const BenchRow& row) {
      return row.threads == (*rows)[begin].threads && row.step_rows == (*rows)[begin].step_rows;
    };
    while (end < rows->size() && same((*rows)[end])) ++end;
    const std::span<BenchRow> part = std::span(*rows).subspan(begin, end - begin);
    const Nanos start = clock.Now();
    CACHALOT_ASSIGN_OR_RETURN(const auto model, LoadFor(part, model_options));
    setting = {model->name, model->kernels->isa, KvTypeName(model->weights->layout().shape.type),
               model->weights->weight_bytes(), ToSeconds(clock.Now() - start)};
    CACHALOT_RETURN_IF_ERROR(MeasureRows(part, options, *model));
  }
  return setting;
}

}  // namespace

Status BenchCommand(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "serve") return BenchServeCommand({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "resume") {
    return BenchResumeCommand({arguments.begin() + 1, arguments.end()});
  }
  ModelOptions model_options;
  model_options.model = model::kDefaultModel;
  BenchOptions options;
  FlagSet flags("bench", "Measures prefill and decode of MODEL at depths and concurrencies.");
  flags.Positional("MODEL", &model_options.model, "path or catalogue name", false);
  flags.AddAll(options);
  model_options.Visit([&](std::string_view name, auto& field, std::string_view help) {
    if (!IsForRows(name)) flags.Add(name, field, help);
  });
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  CACHALOT_ASSIGN_OR_RETURN(const BenchFormat format, ParseBenchFormat(options.format));
  CACHALOT_ASSIGN_OR_RETURN(std::vector<BenchRow> rows, PlanBench(options));
  CACHALOT_ASSIGN_OR_RETURN(const BenchSetting setting, MeasureAll(options, model_options, &rows));
  fmt::print("{}", BenchReport(format, setting, rows));
  return OkStatus();
}

}  // namespace cachalot::cli
