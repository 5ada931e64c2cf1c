#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/loaded_model.h"
#include "cli/terminal.h"
#include "eval/perplexity.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

}  // namespace

Status PerplexityCommand(const Arguments& arguments) {
  ModelOptions model_options;
  engine::EngineOptions engine_options;
  std::string file;
  uint32_t chunk = 512, chunks = 0;
  FlagSet flags("perplexity", "Perplexity of MODEL on the text in FILE, chunked and scored as llama.cpp does.");
  flags.Positional("MODEL", &model_options.model, "path or catalogue name", true);
  flags.Positional("FILE", &file, "UTF-8 text", true);
  flags.Add("chunk", chunk, "Tokens per chunk; the second half of each is scored.");
  flags.Add("chunks", chunks, "Most chunks; 0: all.");
  flags.AddAll(model_options);
  flags.AddAll(engine_options);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  if (chunk < 4) return Invalid(fmt::format("--chunk is {}; chunks of at least 4 tokens are needed", chunk));
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMaxTextBytes));
  if (model_options.context == 0) model_options.context = chunk;
  CACHALOT_ASSIGN_OR_RETURN(const auto model, LoadModel(model_options, engine_options));
  const text::Tokenizer& tokenizer = *model->tokenizer;
  const std::vector<TokenId> tokens = tokenizer.Encode(text, {});
  eval::PerplexityOptions options;
  options.context = chunk;
  options.max_chunks = chunks;
  if (tokenizer.adds_bos()) options.bos = tokenizer.bos();

  ProgressBar bar("scoring");
  const size_t total = chunks == 0 ? tokens.size() / chunk : chunks;
  CACHALOT_ASSIGN_OR_RETURN(
      const eval::Perplexity result,
      eval::MeasurePerplexity(tokens, options, *model->engine, [&](const eval::Perplexity& so_far) {
        bar.Show(static_cast<double>(so_far.chunks) / static_cast<double>(total));
      }));
  fmt::print("perplexity {:.4f} +/- {:.4f} ({} tokens scored in {} chunks of {})\n", result.perplexity,
             result.standard_error, FormatCount(result.scored_tokens), FormatCount(result.chunks), chunk);
  return OkStatus();
}

}  // namespace cachalot::cli
