// LoadOptions says what load to make: against which server, which requests, when, and how long.
// Threads:   plain values.
// Ownership: owns its strings.
// Invariant: what Validate accepts can be run.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace cachalot::load {

struct LoadOptions {
  std::string url;
  std::string endpoint = "chat";
  std::string model;
  std::string api_key;
  uint64_t seed = 1;

  uint32_t clients = 0;
  double rate = 0;
  uint64_t requests = 0;
  double duration = 0;
  double timeout = 300;
  uint32_t max_in_flight = 4096;

  uint32_t prompt_tokens = 256;
  uint32_t max_tokens = 64;
  bool ignore_eos = false;
  uint32_t prefixes = 0;
  uint32_t prefix_tokens = 1024;
  uint32_t turns = 1;
  double think_time = 0;
  double tokens_per_word = 0;

  std::string trace;
  double trace_speed = 1;
  uint32_t trace_block_tokens = 512;
  uint32_t max_prompt_tokens = 0;

  double goodput_ttft = 0;
  double goodput_itl = 0;
  double goodput_e2e = 0;

  template <class F>
  void Visit(F&& f) {
    f("url", url, "The server: http://HOST:PORT, with /v1 as the path unless one is given.");
    f("endpoint", endpoint, "chat or completions.");
    f("model", model, "Name of the model; empty: the first that the server lists.");
    f("api-key", api_key, "Sent as a bearer token; empty: none.");
    f("seed", seed,
      "Prompts and times are functions of it: a second run with the same seed may find its prompts cached.");
    f("clients", clients,
      "Closed loop: each of these sends its next request when its last is answered. 0: 8, or open loop "
      "with --rate or --trace.");
    f("rate", rate, "Open loop: conversations per second that begin, as a Poisson process. 0: off.");
    f("requests", requests, "Requests to send. 0: 100, or no limit with --duration or --trace.");
    f("duration", duration, "Seconds in which requests are sent; those under way then finish. 0: no limit.");
    f("timeout", timeout, "Seconds that a request may take, from connecting to its last byte.");
    f("max-in-flight", max_in_flight, "Requests at once; further ones wait, and their wait counts.");
    f("prompt-tokens", prompt_tokens, "Tokens of a prompt; those of each turn's message with --prefixes or --turns.");
    f("max-tokens", max_tokens, "Tokens of an answer, at most; with --trace, 0 for as many as the trace says.");
    f("ignore-eos", ignore_eos, "Ask for answers of full length (an extension that most servers know).");
    f("prefixes", prefixes, "Every conversation begins with one of so many shared prefixes. 0: none.");
    f("prefix-tokens", prefix_tokens, "Tokens of a shared prefix.");
    f("turns", turns, "Turns of a conversation; each sends what was said before, with the server's own answers.");
    f("think-time", think_time, "Mean seconds between an answer and the next turn, exponentially distributed.");
    f("tokens-per-word", tokens_per_word, "0: measured with two short requests before the run.");
    f("trace", trace,
      "File of requests in Mooncake's schema, one JSON object a line; replayed at its times unless "
      "--clients or --rate is given.");
    f("trace-speed", trace_speed, "How much faster than its times a trace is replayed.");
    f("trace-block-tokens", trace_block_tokens,
      "Tokens made of each hash id; below 512, prompts shrink in proportion.");
    f("max-prompt-tokens", max_prompt_tokens, "Longer prompts of a trace are cut at their end. 0: none is.");
    f("goodput-ttft", goodput_ttft, "An answer is good if its first token came within so many ms. 0: any.");
    f("goodput-itl", goodput_itl, "... if its mean inter-token latency is at most so many ms. 0: any.");
    f("goodput-e2e", goodput_e2e, "... if it was complete within so many ms. 0: any.");
  }
};

// All that is wrong, in one message.
Status Validate(const LoadOptions& options);

}  // namespace cachalot::load
