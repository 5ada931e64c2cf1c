// ServedModel is what the API knows about the model behind it.
// Threads:   immutable while the server runs; read by the I/O thread and the text workers.
// Ownership: borrows tokenizer and template, which must outlive the server.
// Invariant: names is not empty; names[0] is the one in answers.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cachalot::text {
class ChatTemplate;
class Tokenizer;
}  // namespace cachalot::text

namespace cachalot::server {

struct ServedModel {
  std::vector<std::string> names;  // the model's own, then its aliases
  std::string fingerprint;         // system_fingerprint of the answers
  uint32_t context_tokens = 0;     // longest prompt and answer together
  uint64_t pool_tokens = 0;        // what the KV pool holds of one sequence; bounds the default of max_tokens
  const text::Tokenizer* tokenizer = nullptr;
  uint64_t longest_token_bytes = 0;                   // of its tokens; 0: not known
  const text::ChatTemplate* chat_template = nullptr;  // null: a base model, which answers no chat
};

}  // namespace cachalot::server
