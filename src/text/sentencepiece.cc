#include "text/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace cachalot::text {
namespace {

constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";  // U+2581
constexpr size_t kPairBits = size_t{1} << 20;

size_t CharBytes(std::string_view text, size_t pos) {
  const auto lead = static_cast<unsigned char>(text[pos]);
  const size_t bytes = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(bytes, text.size() - pos);
}

std::string EscapeSpaces(std::string_view text, bool with_prefix) {
  std::string out;
  out.reserve(text.size() + text.size() / 2 + kEscapedSpace.size());
  if (with_prefix) out += kEscapedSpace;
  for (size_t pos = 0; pos < text.size();) {
    const size_t space = std::min(text.find(' ', pos), text.size());
    out += text.substr(pos, space - pos);
    if (space < text.size()) out += kEscapedSpace;
    pos = space + 1;
  }
  return out;
}

// The ranks of the scores: 0 for the highest, equal for equal ones.
std::vector<uint32_t> RanksOf(const std::vector<float>& scores) {
  std::vector<float> descending = scores;
  std::sort(descending.begin(), descending.end(), std::greater<>());
  descending.erase(std::unique(descending.begin(), descending.end()), descending.end());
  std::vector<uint32_t> ranks;
  ranks.reserve(scores.size());
  for (float score : scores) {
    const auto at = std::lower_bound(descending.begin(), descending.end(), score, std::greater<>());
    ranks.push_back(static_cast<uint32_t>(at - descending.begin()));
  }
  return ranks;
}

}  // namespace

SentencePiece::SentencePiece(const Vocab& vocab, bool adds_space_prefix)
    : vocab_(vocab), adds_space_prefix_(adds_space_prefix), merges_(vocab.size()), pair_bits_(kPairBits / 64) {}

Result<std::unique_ptr<const SentencePiece>> SentencePiece::Create(const Vocab& vocab, const VocabData& data) {
  if (data.scores.size() != vocab.size())
    return Invalid(fmt::format("tokenizer.ggml.scores has {} entries, expected one per token: {}", data.scores.size(),
                               vocab.size()));
  for (TokenId id = 0; id < vocab.size(); ++id)
    if (std::isnan(data.scores[id])) return Invalid(fmt::format("tokenizer.ggml.scores[{}] is not a number", id));
  std::unique_ptr<SentencePiece> made(new SentencePiece(vocab, data.add_space_prefix.value_or(true)));
  CACHALOT_RETURN_IF_ERROR(made->AddFallback());
  made->AddCharacters();
  made->AddMerges(data);
  return std::unique_ptr<const SentencePiece>(std::move(made));
}

Status SentencePiece::AddFallback() {
  std::array<TokenId, 256> ids{};
  std::optional<uint32_t> missing;
  bool any = false;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const std::optional<TokenId> spelled = vocab_.Find(fmt::format("<0x{:02X}>", byte));
    any |= spelled.has_value();
    // Converters of Gemma 1 and 2 wrote <0x09> as the tab itself.
    const char as_text = static_cast<char>(byte);
    const std::optional<TokenId> id = spelled.has_value() ? spelled : vocab_.Find({&as_text, 1});
    if (!id.has_value() && !missing.has_value()) missing = byte;
    ids[byte] = id.value_or(0);
  }
  if (!missing.has_value()) {
    byte_tokens_ = ids;
    return OkStatus();
  }
  if (any)
    return Invalid(
        fmt::format("tokenizer.ggml.tokens lacks the byte token <0x{:02X}>, expected all 256 or none", *missing));
  if (!vocab_.unknown().has_value())
    return Invalid("the vocabulary has neither byte tokens nor an unknown token, so some text has no tokens");
  return OkStatus();
}

uint64_t SentencePiece::CharKey(std::string_view text, size_t pos) {
  const size_t bytes = CharBytes(text, pos);
  uint64_t key = bytes;
  for (size_t i = 0; i < bytes; ++i) key = key << 8 | static_cast<unsigned char>(text[pos + i]);
  return key;
}

Symbol SentencePiece::SymbolOf(uint64_t char_key) const {
  const Symbol* found = characters_.Find(char_key);
  return found == nullptr ? kNoSymbol : *found;
}

size_t SentencePiece::PairBit(uint64_t left_key, uint64_t right_key) {
  const uint64_t mixed = (left_key * kHashBase + right_key) * kHashBase;
  return (mixed >> 32) % kPairBits;
}

void SentencePiece::AddCharacters() {
  Symbol next_symbol = vocab_.size();
  for (TokenId id = 0; id < vocab_.size(); ++id) {
    const std::string_view piece = vocab_.spelling(id);
    if (!vocab_.IsText(id)) continue;
    for (size_t pos = 0; pos < piece.size(); pos += CharBytes(piece, pos)) {
      const std::string_view character = piece.substr(pos, CharBytes(piece, pos));
      if (SymbolOf(CharKey(piece, pos)) != kNoSymbol) continue;
      const std::optional<TokenId> token = vocab_.Find(character);
      const bool is_piece = token.has_value() && vocab_.IsText(*token);
      characters_.Set(CharKey(piece, pos), is_piece ? *token : next_symbol++);
    }
  }
}

void SentencePiece::AddMerges(const VocabData& data) {
  const std::vector<uint32_t> ranks = RanksOf(data.scores);
  for (TokenId id = 0; id < vocab_.size(); ++id)
    if (vocab_.IsText(id)) AddPiece(id, ranks[id]);
}

void SentencePiece::AddPiece(TokenId piece, uint32_t rank) {
  const std::string_view text = vocab_.spelling(piece);
  const auto find = [&](std::string_view part, uint64_t hash) {
    const std::optional<TokenId> id = vocab_.index().Find(part, hash);
    if (id.has_value() && vocab_.IsText(*id)) return Symbol{*id};
    return part.size() == CharBytes(part, 0) ? SymbolOf(CharKey(part, 0)) : kNoSymbol;
  };
  const uint64_t whole_hash = SpellingIndex::Hash(text);
  // Powers of the base for what stands to the right of each cut, from the end of the piece.
  std::array<uint64_t, kMaxSpellingBytes + 1> powers;
  powers[0] = 1;
  for (size_t i = 1; i <= text.size(); ++i) powers[i] = powers[i - 1] * kHashBase;
  uint64_t left_hash = 0;
  uint64_t previous_key = 0;
  for (size_t pos = 0; pos < text.size();) {
    const uint64_t key = CharKey(text, pos);
    if (pos > 0) {
      const size_t bit = PairBit(previous_key, key);
      pair_bits_[bit / 64] |= uint64_t{1} << bit % 64;
      const Symbol left = find(text.substr(0, pos), left_hash);
      const uint64_t right_hash = whole_hash - left_hash * powers[text.size() - pos];
      const Symbol right = left == kNoSymbol ? kNoSymbol : find(text.substr(pos), right_hash);
      if (right != kNoSymbol) merges_.Set(left, right, {rank, piece});
    }
    previous_key = key;
    const size_t bytes = CharBytes(text, pos);
    for (size_t i = 0; i < bytes; ++i) left_hash = ExtendHash(left_hash, text[pos + i]);
    pos += bytes;
  }
}

void SentencePiece::Encode(std::string_view fragment, bool at_start, EncodeRun* run) const {
  const std::string escaped = EscapeSpaces(fragment, adds_space_prefix_ && at_start);
  const std::string_view text = escaped;
  bool after_unknown = false;
  for (size_t begin = 0; begin < text.size();) {
    const std::string_view segment = NextSegment(text, begin, &run->scratch.symbols);
    begin += segment.size();
    // What unknown characters give depends on those before.
    if (byte_tokens_.has_value() && run->recent.Repeat(segment, &run->ids)) continue;
    const size_t first_id = run->ids.size();
    MergePairs(merges_, &run->scratch);
    AppendIds(segment, run->scratch.symbols, &after_unknown, &run->ids);
    run->recent.Remember(segment, first_id, run->ids);
  }
}

std::string_view SentencePiece::NextSegment(std::string_view text, size_t begin, std::vector<Symbol>* symbols) const {
  symbols->clear();
  uint64_t previous_key = 0;
  size_t pos = begin;
  while (pos < text.size()) {
    const uint64_t key = CharKey(text, pos);
    const size_t bit = PairBit(previous_key, key);
    if (pos > begin && (pair_bits_[bit / 64] >> bit % 64 & 1) == 0) break;
    symbols->push_back(SymbolOf(key));
    previous_key = key;
    pos += CharBytes(text, pos);
  }
  return text.substr(begin, pos - begin);
}

void SentencePiece::AppendIds(std::string_view segment, const std::vector<Symbol>& symbols, bool* after_unknown,
                              std::vector<TokenId>* out) const {
  size_t pos = 0;
  for (Symbol symbol : symbols) {
    if (symbol < vocab_.size()) {
      out->push_back(symbol);
      *after_unknown = false;
      pos += vocab_.spelling(symbol).size();
      continue;
    }
    const size_t bytes = CharBytes(segment, pos);
    if (byte_tokens_.has_value()) {
      for (char c : segment.substr(pos, bytes)) out->push_back((*byte_tokens_)[static_cast<unsigned char>(c)]);
    } else if (!*after_unknown) {
      out->push_back(*vocab_.unknown());
      *after_unknown = true;
    }
    pos += bytes;
  }
}

}  // namespace cachalot::text
