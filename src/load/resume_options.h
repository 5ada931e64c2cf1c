// ResumeOptions says how conversations are let lie and come back, to measure how soon they are answered then.
// Threads:   plain values.
// Ownership: owns its strings.
// Invariant: what Validate accepts can be run.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "load/load_options.h"

namespace cachalot::load {

// What happens to a conversation between two turns.
enum class Rest : uint8_t {
  kCold = 0,       // it was never there: its whole text is new to the server
  kHot = 1,        // nothing
  kSuspended = 2,  // the server is told to let go of it
  kPushed = 3,     // other conversations need the room
  kRestarted = 4,  // the server ends, and begins anew
};

struct ResumeOptions {
  std::string url;
  std::string endpoint = "completions";
  std::string model;
  std::string api_key;
  std::string way = "auto";
  std::string rests = "hot,suspended,restarted";
  uint64_t seed = 0;
  uint32_t conversations = 5;
  uint32_t prompt_tokens = 2048;
  uint32_t turn_tokens = 32;
  uint32_t max_tokens = 8;
  uint64_t push_tokens = 0;
  double idle = 0;
  std::string idle_command;
  std::string restart_command;
  double timeout = 300;
  double tokens_per_word = 0;

  template <class F>
  void Visit(F&& f) {
    f("url", url, "The server: http://HOST:PORT, with /v1 as the path unless one is given.");
    f("endpoint", endpoint, "completions or chat.");
    f("model", model, "Name of the model; empty: the first that the server lists.");
    f("api-key", api_key, "Sent as a bearer token; empty: none.");
    f("way", way,
      "How the server is told what to keep: cachalot (sessions), llama-slots (slots that are saved and restored; start "
      "llama-server with --slot-save-path), none, or auto: cachalot where it has sessions, else none.");
    f("rests", rests,
      "What happens between two turns, separated by commas: hot (nothing), suspended (it is told to let go), pushed "
      "(others need the room), restarted. Cold, a text never seen, is always measured.");
    f("seed", seed, "Prompts are a function of it, and the server must not have seen them. 0: another one each time.");
    f("conversations", conversations, "Conversations of each kind.");
    f("prompt-tokens", prompt_tokens, "Tokens of a conversation's first turn.");
    f("turn-tokens", turn_tokens, "Tokens of the turn with which it comes back.");
    f("max-tokens", max_tokens, "Tokens of an answer, at most.");
    f("push-tokens", push_tokens, "Tokens of other conversations that come between two turns, for pushed.");
    f("idle", idle, "Seconds that pass before a conversation comes back.");
    f("idle-command", idle_command, "Shell command that runs before each comes back, e.g. to drop the page cache.");
    f("restart-command", restart_command,
      "Shell command that ends the server and starts it again, on the same port, with its output sent elsewhere. "
      "Empty: you are asked to.");
    f("timeout", timeout, "Seconds that a request may take.");
    f("tokens-per-word", tokens_per_word, "0: measured with two short requests before the run.");
  }
};

// All that is wrong, in one message.
Status Validate(const ResumeOptions& options);

// Cold first. Requires valid options.
std::vector<Rest> RestsOf(const ResumeOptions& options);
// "cold", "hot", ...
std::string_view RestName(Rest rest);

// For what a run of either kind has to learn of the server first.
LoadOptions AsLoadOptions(const ResumeOptions& options);

}  // namespace cachalot::load
