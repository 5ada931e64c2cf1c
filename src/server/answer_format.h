// AnswerFormat writes the JSON of answers, whole or as the events of a stream, exactly as the API's clients expect it.
// Threads:   pure functions of the values given; used on the I/O thread.
// Ownership: borrows the tokenizer.
// Invariant: every text that is written is one valid JSON document (or SSE event around one).
// Cost:      one pass over what is written, appended to the caller's buffer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "server/api_request.h"
#include "server/choice_stream.h"

namespace cachalot::text {
class Tokenizer;
}

namespace cachalot::server {

struct SessionUsage {
  std::string id;
  engine::SessionReport report;
};

// What became of the KV of a request that said something about it.
struct KvUsage {
  bool kept = true;  // of every choice
  engine::PinOutcome pin = engine::PinOutcome::kNotAsked;
  uint64_t pinned_tokens = 0;  // of prompts, each once, and outputs
  std::optional<SessionUsage> session;
};

struct Usage {
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;  // of the prompt
  uint64_t output_tokens = 0;
  std::optional<KvUsage> kv;
};

// Logprobs as JSON already, ready to be put between brackets. Chat uses `content`, completions the others.
struct LogprobsText {
  std::string content;
  std::string tokens, token_logprobs, top_logprobs, text_offset;
  bool empty() const { return content.empty() && tokens.empty(); }
  void Append(const LogprobsText& more);
};

// A choice, or a piece of one.
struct ChoicePart {
  uint32_t index = 0;
  std::string_view text;
  const LogprobsText* logprobs = nullptr;  // null: "logprobs":null
  std::string_view finish_reason;          // empty: null
};

class AnswerFormat {
 public:
  struct Head {
    Endpoint endpoint = Endpoint::kChat;
    std::string id;
    std::string model;
    std::string fingerprint;
    int64_t created = 0;
    bool usage_in_chunks = false;  // every chunk has "usage", null but in the last
  };

  AnswerFormat(Head head, const text::Tokenizer& tokenizer) : head_(std::move(head)), tokenizer_(tokenizer) {}

  const std::string& id() const { return head_.id; }

  // One SSE event each.
  void AppendRoleChunk(std::string* out, uint32_t index) const;  // of chat, before a choice's first text
  void AppendTextChunk(std::string* out, const ChoicePart& part) const;
  void AppendFinishChunk(std::string* out, const ChoicePart& part) const;
  void AppendUsageChunk(std::string* out, const Usage& usage) const;

  std::string WholeAnswer(const std::vector<ChoicePart>& choices, const Usage& usage) const;

  // `top` best ones are told of each token.
  void AppendLogprobs(LogprobsText* out, const ShownToken& shown, uint32_t top) const;
  // Of a prompt's first token, which has none.
  void AppendNoLogprob(LogprobsText* out, const ShownToken& shown) const;

 private:
  void AppendCompletionLogprobs(LogprobsText* out, const ShownToken& shown, uint32_t top) const;
  void AppendChatLogprobs(LogprobsText* out, const SampledToken& token, uint32_t top) const;
  std::string CompletionTokenText(TokenId token) const;

  const Head head_;
  const text::Tokenizer& tokenizer_;
};

inline constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";
inline constexpr std::string_view kHeartbeat = ": still working\n\n";

}  // namespace cachalot::server
