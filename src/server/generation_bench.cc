#include <memory>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#include "server/generation.h"
#include "server/testing/fake_tokenizer.h"

namespace cachalot::server {
namespace {

class NullExchange final : public Exchange {
 public:
  void Respond(HttpResponse response) override { benchmark::DoNotOptimize(response); }
  void BeginStream(HttpResponse head) override { benchmark::DoNotOptimize(head); }
  void Write(std::string_view bytes) override { benchmark::DoNotOptimize(bytes); }
  void EndStream() override {}
  void OnGone(std::function<void()>) override {}
};

// What the I/O thread does for one token of a stream, besides the system call that sends it.
void StreamedToken(benchmark::State& state) {
  const FakeTokenizer tokenizer;
  const ServedModel model{.names = {"bench"}, .fingerprint = "fp_0123456789ab", .tokenizer = &tokenizer};
  const SteadyClock clock;
  Metrics metrics;
  PreparedRequest prepared;
  prepared.api.stream = true;
  prepared.api.sampling.logprobs = static_cast<int32_t>(state.range(0));
  prepared.prompts.push_back({.tokens = {1}, .max_tokens = 1});
  if (state.range(1) != 0) prepared.stops = text::StopSet::Create(std::vector<std::string>{"###", "</end>"}).value();
  Generation generation({model, clock, metrics}, std::move(prepared),
                        {.id = "chatcmpl-0123456789abcdef0123456789abcdef", .model = "bench"},
                        std::make_shared<NullExchange>(), clock.Now());
  engine::TokenEvent event{.token = {.token = 'a', .logprob = -0.5f}};
  for (int32_t i = 0; i < state.range(0); ++i) event.token.top.push_back({static_cast<TokenId>('a' + i), -1.25f});
  for (auto _ : state) {
    generation.OnToken(0, event);
    generation.Flush();
  }
}
BENCHMARK(StreamedToken)->ArgNames({"logprobs", "stops"})->Args({-1, 0})->Args({-1, 1})->Args({0, 0})->Args({5, 0});

}  // namespace
}  // namespace cachalot::server
