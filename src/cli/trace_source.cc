#include "cli/trace_source.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/random.h"
#include "base/units.h"
#include "model/fetch.h"
#include "model/gguf.h"
#include "text/tokenizer.h"

namespace cachalot::cli {
namespace {

Result<sim::WordsOfText> TokenizerWords(const std::string& name) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string path, model::ResolveModel(name, model::DefaultFetchOptions()));
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile gguf, model::GgufFile::Open(path));
  CACHALOT_ASSIGN_OR_RETURN(std::shared_ptr<const text::Tokenizer> tokenizer, text::Tokenizer::Create(gguf));
  return sim::WordsOfText([tokenizer](std::string_view text) {
    std::vector<uint32_t> words;
    for (const TokenId token : tokenizer->Encode(text, {.add_bos = false, .parse_special = true})) {
      words.push_back(static_cast<uint32_t>(SplitMix64(token)() >> 32));
    }
    return words;
  });
}

}  // namespace

std::vector<OptionRule> TraceRules() {
  std::vector<OptionRule> rules = {
      {"TRACE", {}, {"workload"}},
      {"requests", {"workload"}, {}},
      {"seed", {"workload", "reuse"}, {}},
      {"tokenizer", {}, {"workload"}},
  };
  for (OptionRule& rule : RulesOfAll<sim::ReadTraceOptions>({}, {"workload"})) rules.push_back(std::move(rule));
  return rules;
}

bool ChangesTrace(std::string_view name) {
  bool found = false;
  TraceSource source;
  source.Visit([&](std::string_view setting, auto&, std::string_view) { found = found || setting == name; });
  return found;
}

Result<sim::TraceFile> LoadTrace(const TraceSource& source) {
  if (source.path.empty() == source.workload.empty()) return Invalid("expected either TRACE or --workload");
  if (!source.workload.empty()) {
    if (source.requests == 0) return Invalid("--requests is 0: expected at least one");
    sim::WorkloadOptions options{.seed = source.seed, .requests = source.requests};
    if (source.block_tokens > 0) options.block_tokens = source.block_tokens;
    CACHALOT_ASSIGN_OR_RETURN(sim::Trace trace, sim::MakeWorkload(source.workload, options));
    const auto name = std::ranges::find(sim::WorkloadNames(), std::string_view(source.workload));
    return sim::TraceFile{.trace = std::move(trace), .format = *name};
  }
  sim::ReadTraceOptions read = source.read;
  read.block_tokens = source.block_tokens;
  read.seed = source.seed;
  if (!source.tokenizer.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(read.words_of_text, TokenizerWords(source.tokenizer));
  }
  return sim::ReadTraceFile(source.path, read);
}

std::string DescribeTrace(const TraceSource& source, const sim::TraceFile& file) {
  if (!source.workload.empty()) return fmt::format("{}: {} requests", source.workload, file.trace.requests.size());
  return fmt::format("{}: {}{}, {} requests", source.path, file.format,
                     source.read.format.empty() ? " by its first line" : "", FormatCount(file.trace.requests.size()));
}

std::string DescribeSkipped(const sim::TraceFile& file) {
  if (file.skipped_lines == 0) return "";
  return fmt::format("{} bad line{} skipped, the first: {}", FormatCount(file.skipped_lines),
                     file.skipped_lines == 1 ? "" : "s", file.first_skipped);
}

std::string Describe(const TraceSource& source, const sim::TraceFile& file) {
  const std::string skipped = DescribeSkipped(file);
  return DescribeTrace(source, file) + (skipped.empty() ? "" : "; " + skipped);
}

}  // namespace cachalot::cli
