#include <algorithm>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "base/random.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/loaded_model.h"
#include "cli/terminal.h"
#include "model/catalogue.h"

namespace cachalot::cli {
namespace {

struct BenchOptions {
  std::vector<uint32_t> prefill = {512};
  std::vector<uint32_t> decode = {64};
  std::vector<uint32_t> depth = {0};
  std::vector<uint32_t> concurrency = {1};
  uint32_t repetitions = 3;
  bool json = false;
  template <class F>
  void Visit(F&& f) {
    f("prefill", prefill, "Prompt lengths to measure, separated by commas; 0: none.");
    f("decode", decode, "Output lengths to measure, separated by commas; 0: none.");
    f("depth", depth, "Tokens already in the KV cache when the measurement begins.");
    f("concurrency", concurrency, "Sequences at once.");
    f("repetitions", repetitions, "Measurements of each row, after one that warms up; the median counts.");
    f("json", json, "Print JSON.");
  }
};

// What has been computed since a measurement's requests were submitted.
struct Progress {
  uint64_t prompt_tokens = 0;
  uint64_t output_tokens = 0;
  uint32_t answering = 0;  // requests that have a first token
};

// Runs requests of random tokens and times a part of their way.
class Measurement {
 public:
  explicit Measurement(LoadedModel& model) : model_(model) {}

  // Tokens per second of `concurrency` prompts of `tokens`, behind `depth` tokens each that are not timed.
  Result<double> Prefill(uint32_t tokens, uint32_t depth, uint32_t concurrency) {
    const auto begun = [&](const Progress& p) { return p.prompt_tokens >= uint64_t{depth} * concurrency; };
    const auto done = [&](const Progress& p) { return p.prompt_tokens == uint64_t{depth + tokens} * concurrency; };
    Submit(depth + tokens, 1, concurrency);
    CACHALOT_RETURN_IF_ERROR(StepUntil(begun));
    return Rate(done, &Progress::prompt_tokens);
  }

  // Tokens per second of `concurrency` sequences that decode `tokens` each, at `depth`.
  Result<double> Decode(uint32_t tokens, uint32_t depth, uint32_t concurrency) {
    const uint32_t prompt = std::max(depth, 1u);
    // Early sequences decode while late ones are still in their prompts.
    const uint32_t stagger = (prompt / model_.limits.rows + 2) * concurrency;
    Submit(prompt, tokens + stagger, concurrency);
    CACHALOT_RETURN_IF_ERROR(StepUntil([&](const Progress& p) { return p.answering == concurrency; }));
    const uint64_t goal = progress_.output_tokens + uint64_t{tokens} * concurrency;
    return Rate([&](const Progress& p) { return p.output_tokens >= goal; }, &Progress::output_tokens);
  }

 private:
  // Makes the requests; the next step takes them.
  void Submit(uint32_t prompt_tokens, uint32_t output_tokens, uint32_t concurrency) {
    progress_ = {};
    first_id_ = next_id_;
    for (uint32_t i = 0; i < concurrency; ++i) {
      engine::GenerateRequest request;
      request.id = RequestId(next_id_++);
      for (uint32_t t = 0; t < prompt_tokens; ++t) {
        request.prompt.push_back(static_cast<TokenId>(random_.Below(model_.executor->vocabulary())));
      }
      request.max_tokens = output_tokens;
      request.sampling.temperature = 0;
      pending_.arrivals.push_back(std::move(request));
    }
    answered_.assign(concurrency, false);
  }

  template <class Predicate>
  Status StepUntil(Predicate reached) {
    while (!reached(progress_)) {
      const engine::StepOutput output = model_.engine->Step(std::exchange(pending_, {}));
      if (!output.rejections.empty()) return Invalid(output.rejections.front().message);
      for (const engine::FinishEvent& finish : output.finishes) {
        if (!finish.error.ok()) return finish.error;
      }
      progress_.prompt_tokens += output.stats.prompt_tokens_computed - prompt_tokens_before_;
      prompt_tokens_before_ = output.stats.prompt_tokens_computed;
      progress_.output_tokens += output.tokens.size();
      for (const engine::TokenEvent& event : output.tokens) answered_[event.id.value - first_id_] = true;
      progress_.answering = static_cast<uint32_t>(std::ranges::count(answered_, true));
    }
    return OkStatus();
  }

  // Times the steps until `done`, then ends all requests.
  template <class Predicate>
  Result<double> Rate(Predicate done, uint64_t Progress::*counted) {
    const uint64_t before = progress_.*counted;
    const Nanos begin = model_.clock.Now();
    CACHALOT_RETURN_IF_ERROR(StepUntil(done));
    const double seconds = ToSeconds(model_.clock.Now() - begin);
    for (uint64_t id = first_id_; id < next_id_; ++id) pending_.cancels.push_back(RequestId(id));
    (void)model_.engine->Step(std::exchange(pending_, {}));
    return static_cast<double>(progress_.*counted - before) / seconds;
  }

  LoadedModel& model_;
  SplitMix64 random_{1};
  engine::StepInput pending_;
  Progress progress_;
  std::vector<bool> answered_;
  uint64_t prompt_tokens_before_ = 0;
  uint64_t first_id_ = 1, next_id_ = 1;
};

Result<std::vector<BenchRow>> MeasureAll(const BenchOptions& options, LoadedModel& model) {
  std::vector<BenchRow> rows;
  for (uint32_t concurrency : options.concurrency) {
    for (uint32_t depth : options.depth) {
      for (uint32_t tokens : options.prefill) rows.push_back({"prefill", tokens, depth, concurrency, {}});
      for (uint32_t tokens : options.decode) rows.push_back({"decode", tokens, depth, concurrency, {}});
    }
  }
  std::erase_if(rows, [](const BenchRow& row) { return row.tokens == 0; });
  Measurement measurement(model);
  ProgressBar bar("measuring");
  for (size_t i = 0; i < rows.size(); ++i) {
    BenchRow& row = rows[i];
    for (uint32_t repetition = 0; repetition <= options.repetitions; ++repetition) {
      bar.Show(static_cast<double>(i) / static_cast<double>(rows.size()));
      CACHALOT_ASSIGN_OR_RETURN(const double rate, row.test == "prefill"
                                                       ? measurement.Prefill(row.tokens, row.depth, row.concurrency)
                                                       : measurement.Decode(row.tokens, row.depth, row.concurrency));
      if (repetition > 0) row.rates.push_back(rate);  // the first one warms up
    }
  }
  return rows;
}

}  // namespace

Status BenchCommand(const Arguments& arguments) {
  ModelOptions model_options;
  model_options.model = model::kDefaultModel;
  engine::EngineOptions engine_options;
  BenchOptions options;
  FlagSet flags("bench", "Measures prefill and decode of MODEL at depths and concurrencies.");
  flags.Positional("MODEL", &model_options.model, "path or catalogue name", false);
  flags.AddAll(options);
  flags.AddAll(model_options);
  flags.AddAll(engine_options);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();
  if (options.repetitions == 0) return Invalid("--repetitions must be at least 1");

  CACHALOT_ASSIGN_OR_RETURN(const auto model, LoadModel(model_options, engine_options));
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<BenchRow> rows, MeasureAll(options, *model));
  const BenchSetting setting{model->name, model->kernels->isa, model->pool->thread_count(),
                             KvTypeName(model->weights->layout().shape.type)};
  fmt::print("{}", options.json ? BenchJson(setting, rows) : BenchTable(setting, rows));
  return OkStatus();
}

}  // namespace cachalot::cli
