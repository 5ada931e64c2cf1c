// PublicPrefixes are the beginnings of prompts that the operator declared public: their KV is shared by all tenants.
// Threads:   immutable; read by the text workers.
// Ownership: owns the tokens.
// Invariant: nothing counts as public but tokens that equal those of a declared text (and the template around it), one
//            by one from the prompt's beginning. What a client wrote never becomes public.
// Cost:      CommonTokens compares with each prefix up to the first difference.
//
// A prompt may begin with a declared text in three ways, and the tokens of all three are kept: the text as a completion
// prompt; the text as the beginning of a rendered chat; and the text as the system message of a chat without tools, up
// to where the first user message begins.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "server/served_model.h"

namespace cachalot::server {

class PublicPrefixes {
 public:
  PublicPrefixes() = default;
  // A line break at the very end of a text is not part of it. `unix_seconds` is for templates that print the date.
  PublicPrefixes(const ServedModel& model, std::span<const std::string> texts, int64_t unix_seconds);

  // How many tokens of the prompt are those of a public prefix, at most.
  uint64_t CommonTokens(std::span<const TokenId> prompt) const;

 private:
  void Add(std::vector<TokenId> tokens);

  std::vector<std::vector<TokenId>> prefixes_;
};

}  // namespace cachalot::server
