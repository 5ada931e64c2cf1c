#include "load/prompt_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/random.h"

namespace cachalot::load {
namespace {

// Short and common: most tokenizers have one token for each, together with the space before it.
constexpr std::array<std::string_view, 256> kWords = {
    "the",      "of",       "and",      "to",     "in",      "is",         "was",     "for",     "on",      "that",
    "with",     "as",       "by",       "at",     "from",    "his",        "her",     "it",      "an",      "were",
    "are",      "which",    "this",     "be",     "had",     "has",        "have",    "not",     "but",     "they",
    "he",       "she",      "or",       "one",    "their",   "been",       "also",    "who",     "after",   "all",
    "two",      "when",     "there",    "first",  "other",   "new",        "its",     "more",    "time",    "about",
    "up",       "out",      "may",      "into",   "some",    "these",      "then",    "than",    "would",   "over",
    "only",     "year",     "most",     "made",   "can",     "many",       "such",    "where",   "before",  "later",
    "between",  "people",   "used",     "three",  "being",   "both",       "known",   "will",    "through", "during",
    "city",     "part",     "name",     "work",   "life",    "state",      "place",   "long",    "number",  "world",
    "well",     "while",    "against",  "early",  "until",   "war",        "family",  "group",   "since",   "home",
    "house",    "book",     "small",    "high",   "company", "day",        "good",    "great",   "little",  "line",
    "water",    "end",      "men",      "right",  "use",     "general",    "young",   "under",   "old",     "school",
    "music",    "land",     "game",     "case",   "week",    "side",       "form",    "light",   "hand",    "point",
    "south",    "north",    "east",     "west",   "river",   "king",       "road",    "field",   "story",   "system",
    "power",    "order",    "church",   "body",   "member",  "history",    "country", "village", "death",   "party",
    "season",   "series",   "team",     "player", "child",   "woman",      "man",     "night",   "money",   "paper",
    "plan",     "local",    "public",   "free",   "black",   "white",      "red",     "green",   "blue",    "large",
    "major",    "second",   "several",  "every",  "often",   "around",     "never",   "again",   "once",    "still",
    "much",     "same",     "found",    "called", "given",   "held",       "began",   "became",  "left",    "set",
    "took",     "went",     "came",     "see",    "know",    "think",      "say",     "make",    "get",     "give",
    "take",     "find",     "tell",     "ask",    "seem",    "feel",       "try",     "leave",   "call",    "need",
    "become",   "turn",     "move",     "live",   "help",    "start",      "show",    "hear",    "play",    "run",
    "believe",  "bring",    "happen",   "write",  "provide", "sit",        "stand",   "lose",    "pay",     "meet",
    "include",  "continue", "learn",    "change", "lead",    "understand", "watch",   "follow",  "stop",    "create",
    "speak",    "read",     "allow",    "add",    "spend",   "grow",       "open",    "walk",    "win",     "offer",
    "remember", "love",     "consider", "appear", "buy",     "wait",
};

}  // namespace

uint64_t BitsOf(const TextKey& key) {
  const PhiloxCounter bits = Philox4x32({static_cast<uint32_t>(key.index), static_cast<uint32_t>(key.index >> 32),
                                         key.part, static_cast<uint32_t>(key.kind)},
                                        {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
  return (uint64_t{bits[0]} << 32) | bits[1];
}

void AppendWords(const TextKey& key, uint64_t words, std::string* out) {
  SplitMix64 random(BitsOf(key));
  for (uint64_t i = 0; i < words; ++i) {
    *out += ' ';
    *out += kWords[random.Below(kWords.size())];
  }
}

TokenFit FitTokens(const TokenProbe& small, const TokenProbe& large) {
  if (large.words <= small.words || large.prompt_tokens <= small.prompt_tokens) return {};
  TokenFit fit;
  fit.tokens_per_word =
      static_cast<double>(large.prompt_tokens - small.prompt_tokens) / static_cast<double>(large.words - small.words);
  const double extra =
      static_cast<double>(small.prompt_tokens) - fit.tokens_per_word * static_cast<double>(small.words);
  fit.extra_tokens = std::max(0.0, extra);
  fit.measured = true;
  return fit;
}

uint64_t WordsFor(double tokens, const TokenFit& fit) {
  return static_cast<uint64_t>(std::max(1.0, std::round(tokens / fit.tokens_per_word)));
}

}  // namespace cachalot::load
