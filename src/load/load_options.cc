#include "load/load_options.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "load/workload.h"

namespace cachalot::load {
namespace {

constexpr uint32_t kMostClients = 100'000;
constexpr uint32_t kMostTokens = 4'000'000;
constexpr double kMostSeconds = 1e7;
constexpr double kHighestRate = 1e6;

class Complaints {
 public:
  template <class T>
  void Range(std::string_view flag, T value, T least, T most) {
    if (!(value >= least && value <= most))
      That(fmt::format("--{} must be {} to {}, not {}", flag, least, most, value));
  }
  void That(std::string text) { texts_.push_back(std::move(text)); }
  void If(bool wrong, std::string_view text) {
    if (wrong) That(std::string(text));
  }
  Status AsStatus() const { return texts_.empty() ? OkStatus() : Invalid(fmt::format("{}", fmt::join(texts_, "; "))); }

 private:
  std::vector<std::string> texts_;
};

}  // namespace

Status Validate(const LoadOptions& o) {
  Complaints complaints;
  complaints.If(o.url.empty(), "--url is missing: the server to measure, e.g. http://127.0.0.1:8080");
  complaints.If(o.endpoint != "chat" && o.endpoint != "completions", "--endpoint must be chat or completions");
  complaints.If(o.clients > 0 && o.rate > 0, "--clients (closed loop) and --rate (open loop) exclude each other");
  complaints.If(!o.trace.empty() && (o.prefixes > 0 || o.turns > 1),
                "--trace brings its own prompts: --prefixes and --turns do not apply");
  complaints.If(o.max_tokens == 0 && o.trace.empty(), "--max-tokens must be at least 1");
  for (char c : o.api_key) {
    if (c > ' ' && c < 0x7f) continue;
    complaints.That("--api-key holds a character that a header field cannot");
    break;
  }
  complaints.Range("clients", o.clients, 0u, kMostClients);
  complaints.Range("max-in-flight", o.max_in_flight, 1u, kMostClients);
  complaints.Range("rate", o.rate, 0.0, kHighestRate);
  complaints.Range("duration", o.duration, 0.0, kMostSeconds);
  complaints.Range("timeout", o.timeout, 0.001, kMostSeconds);
  complaints.Range("prompt-tokens", o.prompt_tokens, 1u, kMostTokens);
  complaints.Range("prefixes", o.prefixes, 0u, kMostTokens);
  complaints.Range("prefix-tokens", o.prefix_tokens, 1u, kMostTokens);
  complaints.Range("max-tokens", o.max_tokens, 0u, kMostTokens);
  complaints.Range("turns", o.turns, 1u, 10'000u);
  complaints.Range("think-time", o.think_time, 0.0, kMostSeconds);
  complaints.Range("tokens-per-word", o.tokens_per_word, 0.0, 1000.0);
  complaints.Range("trace-speed", o.trace_speed, 1e-6, 1e6);
  complaints.Range("trace-block-tokens", o.trace_block_tokens, 1u, kTraceBlockTokens);
  complaints.Range("goodput-ttft", o.goodput_ttft, 0.0, 1e9);
  complaints.Range("goodput-itl", o.goodput_itl, 0.0, 1e9);
  complaints.Range("goodput-e2e", o.goodput_e2e, 0.0, 1e9);
  return complaints.AsStatus();
}

}  // namespace cachalot::load
