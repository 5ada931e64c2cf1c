// What goes into the engine and what comes out: requests, refusals, tokens, endings.
// Threads:   plain values; they cross threads by value.
// Ownership: a request owns its tokens; the engine owns the stop conditions that it makes from the factory.
// Invariant: every request gets exactly one of: a Rejection; or one Finish per choice.
// Cost:      none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/prefix_scope.h"
#include "base/retention.h"
#include "base/sampling.h"
#include "base/status.h"
#include "base/stop_condition.h"
#include "base/tenant.h"
#include "engine/session.h"

namespace cachalot::engine {

// What the client says of its next request in the same conversation.
struct ReturnHint {
  bool returns = true;      // false: there will be none
  std::optional<Nanos> in;  // after the end of this one
};

struct GenerateRequest {
  RequestId id;
  std::vector<TokenId> prompt;  // not empty
  uint32_t max_tokens = 16;     // output tokens of each choice; 0 only scores the prompt
  uint32_t n = 1;               // choices, forked from one prompt
  SamplingParams sampling;
  std::vector<TokenId> end_tokens;     // sorted; any of them ends a choice and is its last token
  StopConditionFactory stop;           // empty: none
  int32_t prompt_logprobs = -1;        // -1: none; else logprobs of the prompt's tokens, with that many of the best
  PrefixScope scope;                   // who shares its KV
  TenantId tenant;                     // whose caps and share it is under
  RetentionHints retention;            // of its KV, once it has ended
  std::optional<SessionName> session;  // the conversation that it goes on with, or begins
  uint64_t session_ttl_seconds = 0;    // of that, after its last use; 0: none
  ReturnHint returns;
};

enum class RejectReason : uint8_t {
  kContextLength = 0,  // prompt + max_tokens exceed the model's context: 400 context_length_exceeded
  kTooLarge = 1,       // could never fit the pool: 413
  kQueueFull = 2,      // 429
  kShuttingDown = 3,   // 503
  kPoisoned = 5,       // a verified hit differed from what was computed, so no answer can be trusted: 500
  kInvalid = 4,        // empty prompt, token outside the vocabulary, parameters out of range: 400
};

struct Rejection {
  RequestId id;
  RejectReason reason = RejectReason::kInvalid;
  std::string message;      // says what was wrong, with numbers
  uint64_t needed = 0;      // tokens (kContextLength), slots (kTooLarge), requests (kQueueFull)
  uint64_t available = 0;   // in the same unit
  double wait_seconds = 0;  // kQueueFull: until all that waits now will likely have been answered
};

enum class FinishReason : uint8_t { kStop = 0, kLength = 1, kCancelled = 2, kError = 3 };

// A token of one choice.
struct TokenEvent {
  RequestId id;
  uint32_t choice = 0;
  SampledToken token;
};

// Logprobs of the prompt's tokens [first, first + tokens.size()), in order; the prompt's first token has none.
struct PromptEvent {
  RequestId id;
  uint32_t first = 0;
  std::vector<SampledToken> tokens;
};

// How much of a pin there was room for.
enum class PinOutcome : uint8_t { kNotAsked = 0, kWhole = 1, kShortened = 2, kRefused = 3 };

// What became of a choice's retention hints.
struct RetentionReport {
  bool kept = false;  // its KV stays, as the hints say; else it is gone, as there is no prefix cache or it was cut off
  PinOutcome pin = PinOutcome::kNotAsked;
  uint32_t pinned_tokens = 0;  // of prompt and output, from the beginning
};

struct FinishEvent {
  RequestId id;
  uint32_t choice = 0;
  FinishReason reason = FinishReason::kStop;
  Status error;  // of kError
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;  // of the prompt: those that were really not computed
  uint32_t output_tokens = 0;
  uint32_t host_tokens = 0;  // of the cached ones: loaded from host memory when the request had come
  uint32_t disk_tokens = 0;
  RetentionReport retention;
  std::optional<SessionReport> session;  // where the request named one
};

}  // namespace cachalot::engine
