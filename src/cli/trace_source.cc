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

Status CheckSource(const TraceSource& source) {
  if (source.path.empty() == source.workload.empty()) return Invalid("expected either TRACE or --workload");
  if (!source.workload.empty() && source.requests == 0) return Invalid("--requests is 0: expected at least one");
  return OkStatus();
}

sim::WorkloadOptions WorkloadOptionsOf(const TraceSource& source) {
  sim::WorkloadOptions options{.seed = source.seed, .requests = source.requests};
  if (source.block_tokens > 0) options.block_tokens = source.block_tokens;
  return options;
}

sim::TraceFacts FactsOfWorkload(const TraceSource& source, uint64_t requests) {
  return {.format = *std::ranges::find(sim::WorkloadNames(), std::string_view(source.workload)),
          .block_tokens = WorkloadOptionsOf(source).block_tokens,
          .requests = requests,
          .skipped_lines = 0,
          .first_skipped = {}};
}

Result<sim::ReadTraceOptions> ReadOptionsOf(const TraceSource& source) {
  sim::ReadTraceOptions read = source.read;
  read.block_tokens = source.block_tokens;
  read.seed = source.seed;
  if (!source.tokenizer.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(read.words_of_text, TokenizerWords(source.tokenizer));
  }
  return read;
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
  CACHALOT_RETURN_IF_ERROR(CheckSource(source));
  if (source.workload.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(const sim::ReadTraceOptions read, ReadOptionsOf(source));
    return sim::ReadTraceFile(source.path, read);
  }
  sim::TraceFile file;
  CACHALOT_ASSIGN_OR_RETURN(file.trace, sim::MakeWorkload(source.workload, WorkloadOptionsOf(source)));
  file.facts = FactsOfWorkload(source, file.trace.requests.size());
  return file;
}

Result<sim::TraceFacts> StreamTrace(const TraceSource& source, const sim::RequestSink& sink) {
  CACHALOT_RETURN_IF_ERROR(CheckSource(source));
  if (source.workload.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(const sim::ReadTraceOptions read, ReadOptionsOf(source));
    return sim::StreamTraceFile(source.path, read, sink);
  }
  CACHALOT_RETURN_IF_ERROR(sim::StreamWorkload(source.workload, WorkloadOptionsOf(source), sink));
  return FactsOfWorkload(source, source.requests);
}

std::string DescribeTrace(const TraceSource& source, const sim::TraceFacts& facts) {
  if (!source.workload.empty()) return fmt::format("{}: {} requests", source.workload, facts.requests);
  return fmt::format("{}: {}{}, {} requests", source.path, facts.format,
                     source.read.format.empty() ? " by its first line" : "", FormatCount(facts.requests));
}

std::string DescribeSkipped(const sim::TraceFacts& facts) {
  if (facts.skipped_lines == 0) return "";
  return fmt::format("{} bad line{} skipped, the first: {}", FormatCount(facts.skipped_lines),
                     facts.skipped_lines == 1 ? "" : "s", facts.first_skipped);
}

std::string Describe(const TraceSource& source, const sim::TraceFacts& facts) {
  const std::string skipped = DescribeSkipped(facts);
  return DescribeTrace(source, facts) + (skipped.empty() ? "" : "; " + skipped);
}

}  // namespace cachalot::cli
