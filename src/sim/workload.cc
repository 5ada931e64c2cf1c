#include "sim/workload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/workload_maker.h"

namespace cachalot::sim {
namespace {

constexpr uint32_t kMaxRequests = 10'000'000;
constexpr uint32_t kMaxBlockTokens = 1 << 20;

// One talk that begins then: each turn the chance of another grows.
void Talk(WorkloadMaker& make, Text text, double seconds, const Asker& asker) {
  for (int turn = 0;; ++turn) {
    make.Append(text, make.Tokens(turn == 0 ? 900 : 250, 1.2));
    const uint64_t output = make.Tokens(250, 0.8);
    make.Request(seconds, text, output, asker);
    if (make.Uniform() > std::min(0.85, 0.4 + 0.1 * turn)) return;
    seconds += make.Skewed(110, 0.9);
  }
}

std::vector<Text> SharedTexts(WorkloadMaker& make, int count, double median, double spread) {
  std::vector<Text> texts;
  for (int i = 0; i < count; ++i) texts.push_back(make.Shared(make.Tokens(median, spread)));
  return texts;
}

void Chat(WorkloadMaker& make) {
  const std::vector<Text> systems = SharedTexts(make, 4, 800, 0.7);
  for (double now = 0; make.GoesOn(now); now += make.Wait(0.5)) {
    const uint64_t system = make.Below(systems.size());
    Talk(make, systems[system], now, {.session = make.NewSession(), .tenant = system + 1});
  }
}

void System(WorkloadMaker& make) {
  const std::vector<Text> systems = SharedTexts(make, 12, 3000, 0.5);
  for (double now = 0; make.GoesOn(now); now += make.Wait(0.3)) {
    const size_t system = make.Popular(systems.size());
    Text text = systems[system];
    make.Append(text, make.Tokens(120, 0.9));
    make.Request(now, text, make.Tokens(150, 0.8), {.session = 0, .tenant = system + 1});
  }
}

void Agent(WorkloadMaker& make) {
  const std::vector<Text> tools = SharedTexts(make, 3, 5000, 0.4);
  for (double now = 0; make.GoesOn(now); now += make.Wait(6)) {
    const uint64_t kind = make.Below(tools.size());
    const Asker asker{.session = make.NewSession(), .tenant = kind + 1};
    Text text = tools[kind];
    make.Append(text, make.Tokens(600, 0.8));
    double seconds = now;
    const uint64_t steps = 3 + make.Below(25);
    for (uint64_t step = 0; step < steps; ++step) {
      const uint64_t output = make.Tokens(120, 0.7);
      make.Request(seconds, text, output, asker);
      make.Append(text, make.Tokens(500, 1.2));
      const bool asks_a_person = make.Uniform() < 0.08;
      seconds += 0.01 * static_cast<double>(output) + (asks_a_person ? make.Skewed(115, 1.0) : make.Skewed(1.5, 0.6));
    }
  }
}

void Rag(WorkloadMaker& make) {
  const Text system = make.Shared(500);
  std::vector<Text> documents(2000);
  for (Text& document : documents) {
    document = system;
    make.Append(document, make.Tokens(4000, 0.7) / 512 * 512 + 512);
  }
  for (double now = 0; make.GoesOn(now); now += make.Wait(0.4)) {
    Text text = documents[make.Popular(documents.size())];
    make.Append(text, make.Tokens(80, 0.8));
    make.Request(now, text, make.Tokens(200, 0.7), {});
  }
}

void Passages(WorkloadMaker& make, bool shuffled) {
  constexpr size_t kEach = 6, kTopics = 600, kPerTopic = 10;
  const Text system = make.Shared(500);
  std::vector<Text> passages(kTopics * kPerTopic);
  for (Text& passage : passages) make.Append(passage, make.Tokens(350, 0.3));
  for (double now = 0; make.GoesOn(now); now += make.Wait(0.4)) {
    const size_t topic = make.Popular(kTopics);
    std::vector<size_t> ranked(kPerTopic);  // by how well they fit
    for (size_t i = 0; i < kPerTopic; ++i) ranked[i] = topic * kPerTopic + i;
    for (size_t i = 0; i < kEach; ++i) std::swap(ranked[i], ranked[i + make.Below(kPerTopic - i)]);
    ranked.resize(kEach);
    if (!shuffled) std::ranges::sort(ranked);
    Text text = system;
    for (const size_t passage : ranked) text.Add(passages[passage]);
    make.Append(text, make.Tokens(80, 0.8));
    make.Request(now, text, make.Tokens(200, 0.7), {});
  }
}

void RagOrdered(WorkloadMaker& make) { Passages(make, false); }
void RagShuffled(WorkloadMaker& make) { Passages(make, true); }

void Document(WorkloadMaker& make) {
  const Text system = make.Shared(500);
  for (double now = 0; make.GoesOn(now); now += make.Wait(8)) {
    Text text = system;
    make.Append(text, make.Tokens(24'000, 0.7));
    const Asker asker{.session = make.NewSession(), .tenant = 0};
    double seconds = now;
    do {
      make.Append(text, make.Tokens(40, 0.8));
      const uint64_t output = make.Tokens(250, 0.7);
      make.Request(seconds, text, output, asker);
      seconds += 0.02 * static_cast<double>(output) + make.Skewed(60, 1.2);
    } while (make.Uniform() < 0.75);
  }
}

void Code(WorkloadMaker& make) {
  const Text instructions = make.Shared(200);
  for (double now = 0; make.GoesOn(now); now += make.Wait(20)) {
    const Asker asker{.session = make.NewSession(), .tenant = 0};
    Text file = instructions;
    make.Append(file, make.Tokens(2000, 0.9));
    double seconds = now;
    const uint64_t completions = 5 + make.Below(60);
    for (uint64_t i = 0; i < completions; ++i) {
      Text asked = file;
      make.Request(seconds, asked, make.Tokens(30, 0.8), asker);
      if (make.Uniform() < 0.3) file = asked;  // taken over
      const bool moves = make.Uniform() < 0.1;
      if (moves) file.CutTo(instructions.tokens + make.Below(file.tokens - instructions.tokens + 1));
      make.Append(file, make.Tokens(12, 0.8));
      seconds += make.Uniform() < 0.05 ? make.Skewed(115, 1.0) : make.Skewed(2.5, 0.8);
    }
  }
}

void Scan(WorkloadMaker& make) {
  const Text system = make.Shared(1000);
  double burst = 120;
  for (double now = 0; make.GoesOn(now); now += make.Wait(1)) {
    Talk(make, system, now, {.session = make.NewSession(), .tenant = 1});
    if (now < burst) continue;
    for (int i = 0; i < 60; ++i) {
      Text text;
      make.Append(text, make.Tokens(16000, 0.5));
      make.Request(now + 0.2 * i, text, 20, {.session = 0, .tenant = 2});
    }
    burst = now + make.Wait(300);
  }
}

using Workload = void (*)(WorkloadMaker&);
constexpr std::string_view kNames[] = {"chat",         "system",   "agent", "rag", "rag-ordered",
                                       "rag-shuffled", "document", "code",  "scan"};
constexpr Workload kWorkloads[] = {Chat, System, Agent, Rag, RagOrdered, RagShuffled, Document, Code, Scan};
static_assert(std::size(kNames) == std::size(kWorkloads));

Result<Workload> FindWorkload(std::string_view name, const WorkloadOptions& options) {
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) {
    return Invalid(fmt::format("unknown workload \"{}\": expected one of {}", name, fmt::join(kNames, ", ")));
  }
  if (options.requests > kMaxRequests) {
    return Invalid(fmt::format("{} requests: expected at most {}", options.requests, kMaxRequests));
  }
  if (options.block_tokens == 0 || options.block_tokens > kMaxBlockTokens) {
    return Invalid(fmt::format("blocks of {} tokens: expected 1 to {}", options.block_tokens, kMaxBlockTokens));
  }
  return kWorkloads[found - kNames];
}

}  // namespace

std::span<const std::string_view> WorkloadNames() { return kNames; }

Result<Trace> MakeWorkload(std::string_view name, const WorkloadOptions& options) {
  CACHALOT_ASSIGN_OR_RETURN(const Workload workload, FindWorkload(name, options));
  Trace trace;
  const RequestSink keep = [&](TraceRequest request, uint32_t) {
    trace.requests.push_back(std::move(request));
    return OkStatus();
  };
  WorkloadMaker make(options, Kept::kText, trace, keep);
  workload(make);
  CACHALOT_RETURN_IF_ERROR(std::move(make).Finish());
  return trace;
}

Status StreamWorkload(std::string_view name, const WorkloadOptions& options, const RequestSink& sink) {
  CACHALOT_ASSIGN_OR_RETURN(const Workload workload, FindWorkload(name, options));
  Trace nothing;
  WorkloadMaker make(options, Kept::kNothing, nothing, sink);
  workload(make);
  return std::move(make).Finish();
}

}  // namespace cachalot::sim
