#include "text/vocab.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "model/gguf.h"

namespace cachalot::text {
namespace {

using model::GgufArray;
using model::GgufFile;

Status WrongElements(std::string_view key, const char* expected) {
  return Invalid(fmt::format("{} has elements of the wrong type, expected {}", key, expected));
}

template <class T>
Status ReadArray(const GgufFile& file, const char* key, std::vector<T> GgufArray::*member, const char* expected,
                 std::vector<T>* out) {
  CACHALOT_ASSIGN_OR_RETURN(const GgufArray* array, file.FindArray(key));
  if (array == nullptr) return OkStatus();
  if ((array->*member).size() != array->size) return WrongElements(key, expected);
  *out = array->*member;
  return OkStatus();
}

// Spellings of tokens that end a turn or a text in well-known model families. Those marked `common` are words of other
// meanings too (HTML has an </s>) and count only where the file calls the token a control token.
struct EndSpelling {
  std::string_view spelling;
  bool common;
};
constexpr EndSpelling kEndSpellings[] = {{"<|im_end|>", false},
                                         {"<|eot_id|>", false},
                                         {"<|eom_id|>", false},
                                         {"<end_of_turn>", false},
                                         {"<|endoftext|>", false},
                                         {"<|end|>", false},
                                         {"<|end_of_text|>", false},
                                         {"<|eot|>", false},
                                         {"<|end_of_turn|>", false},
                                         {"</s>", true},
                                         {"<eos>", true},
                                         {"<EOT>", true},
                                         {"[EOT]", true},
                                         {"[EOS]", true},
                                         {"<end_of_utterance>", false}};

// GGUF's token types by number.
constexpr std::array<TokenKind, 7> kKinds = {TokenKind::kNormal,  TokenKind::kNormal,      TokenKind::kUnknown,
                                             TokenKind::kControl, TokenKind::kUserDefined, TokenKind::kUnused,
                                             TokenKind::kByte};

}  // namespace

Result<VocabData> ReadVocabData(const GgufFile& file) {
  VocabData data;
  const auto text = [&](const char* key, std::string_view* out) -> Status {
    CACHALOT_ASSIGN_OR_RETURN(const std::optional<std::string_view> value, file.FindString(key));
    *out = value.value_or("");
    return OkStatus();
  };
  CACHALOT_RETURN_IF_ERROR(text("tokenizer.ggml.model", &data.model));
  CACHALOT_RETURN_IF_ERROR(text("tokenizer.ggml.pre", &data.pre));
  CACHALOT_RETURN_IF_ERROR(ReadArray(file, "tokenizer.ggml.tokens", &GgufArray::strings, "strings", &data.tokens));
  CACHALOT_RETURN_IF_ERROR(
      ReadArray(file, "tokenizer.ggml.token_type", &GgufArray::ints, "integers", &data.token_types));
  CACHALOT_RETURN_IF_ERROR(ReadArray(file, "tokenizer.ggml.scores", &GgufArray::floats, "floats", &data.scores));
  CACHALOT_RETURN_IF_ERROR(ReadArray(file, "tokenizer.ggml.merges", &GgufArray::strings, "strings", &data.merges));
  CACHALOT_ASSIGN_OR_RETURN(data.bos, file.FindUInt("tokenizer.ggml.bos_token_id"));
  CACHALOT_ASSIGN_OR_RETURN(data.eos, file.FindUInt("tokenizer.ggml.eos_token_id"));
  CACHALOT_ASSIGN_OR_RETURN(data.unknown, file.FindUInt("tokenizer.ggml.unknown_token_id"));
  CACHALOT_ASSIGN_OR_RETURN(data.end_of_turn, file.FindUInt("tokenizer.ggml.eot_token_id"));
  CACHALOT_ASSIGN_OR_RETURN(data.end_of_message, file.FindUInt("tokenizer.ggml.eom_token_id"));
  CACHALOT_ASSIGN_OR_RETURN(data.add_bos, file.FindBool("tokenizer.ggml.add_bos_token"));
  CACHALOT_ASSIGN_OR_RETURN(data.add_eos, file.FindBool("tokenizer.ggml.add_eos_token"));
  CACHALOT_ASSIGN_OR_RETURN(data.add_space_prefix, file.FindBool("tokenizer.ggml.add_space_prefix"));
  return data;
}

Result<Vocab> Vocab::Build(const VocabData& data) {
  Vocab vocab;
  CACHALOT_RETURN_IF_ERROR(vocab.AddTokens(data));
  CACHALOT_RETURN_IF_ERROR(vocab.AddKinds(data));
  CACHALOT_RETURN_IF_ERROR(vocab.AddIds(data));
  return vocab;
}

Status Vocab::AddTokens(const VocabData& data) {
  if (data.tokens.empty()) return Invalid("tokenizer.ggml.tokens is missing or empty, expected the vocabulary");
  if (data.tokens.size() > 1u << 30)
    return Invalid(fmt::format("tokenizer.ggml.tokens has {} entries, at most 2^30 are supported", data.tokens.size()));
  for (std::string_view token : data.tokens) {
    if (token.size() > kMaxSpellingBytes)
      return Invalid(fmt::format("token {} {} has {} bytes, at most {} are supported", spellings_.size(), Quote(token),
                                 token.size(), kMaxSpellingBytes));
    spellings_.Add(token);
  }
  kinds_.resize(spellings_.size());
  index_ = SpellingIndex(spellings_.size());
  for (TokenId id = 0; id < size(); ++id) {
    if (!spelling(id).empty() && !index_.Add(spelling(id), id))
      return Invalid(
          fmt::format("tokens {} and {} have the same spelling {}", *Find(spelling(id)), id, Quote(spelling(id))));
  }
  return OkStatus();
}

Status Vocab::AddKinds(const VocabData& data) {
  if (data.token_types.empty()) return OkStatus();
  if (data.token_types.size() != size())
    return Invalid(fmt::format("tokenizer.ggml.token_type has {} entries, expected one per token: {}",
                               data.token_types.size(), size()));
  for (TokenId id = 0; id < size(); ++id) {
    const int64_t type = data.token_types[id];
    if (type < 1 || type >= static_cast<int64_t>(kKinds.size()))
      return Invalid(fmt::format("tokenizer.ggml.token_type[{}] is {}, expected 1 to 6", id, type));
    kinds_[id] = kKinds[static_cast<size_t>(type)];
  }
  return OkStatus();
}

Status Vocab::AddIds(const VocabData& data) {
  std::optional<TokenId> end_of_turn, end_of_message;
  const struct {
    const char* name;
    std::optional<uint64_t> given;
    std::optional<TokenId>* id;
  } ids[] = {{"bos", data.bos, &bos_},
             {"eos", data.eos, &eos_},
             {"unknown", data.unknown, &unknown_},
             {"eot", data.end_of_turn, &end_of_turn},
             {"eom", data.end_of_message, &end_of_message}};
  for (const auto& [name, given, id] : ids) {
    if (!given.has_value()) continue;
    if (*given >= size())
      return Invalid(fmt::format("tokenizer.ggml.{}_token_id is {}, but there are {} tokens", name, *given, size()));
    *id = static_cast<TokenId>(*given);
  }
  AddEndTokens(end_of_turn, end_of_message);
  return OkStatus();
}

void Vocab::AddEndTokens(std::optional<TokenId> end_of_turn, std::optional<TokenId> end_of_message) {
  for (std::optional<TokenId> id : {eos_, end_of_turn, end_of_message})
    if (id.has_value()) end_tokens_.push_back(*id);
  for (const EndSpelling& end : kEndSpellings) {
    const std::optional<TokenId> id = Find(end.spelling);
    if (id.has_value() && (!end.common || kind(*id) == TokenKind::kControl)) end_tokens_.push_back(*id);
  }
  std::sort(end_tokens_.begin(), end_tokens_.end());
  end_tokens_.erase(std::unique(end_tokens_.begin(), end_tokens_.end()), end_tokens_.end());
}

std::optional<uint8_t> ByteOfSpelling(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling.back() != '>') return std::nullopt;
  uint32_t value = 0;
  for (char c : spelling.substr(3, 2)) {
    const uint32_t digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
    if (digit > 15) return std::nullopt;
    value = value << 4 | digit;
  }
  return static_cast<uint8_t>(value);
}

std::string Quote(std::string_view spelling) {
  constexpr size_t kShownBytes = 60;
  const bool cut = spelling.size() > kShownBytes;
  if (cut) spelling = spelling.substr(0, kShownBytes);
  std::string out = "\"";
  for (size_t pos = 0; pos < spelling.size();) {
    const Utf8Char c = DecodeUtf8(spelling, pos);
    const std::string_view bytes = spelling.substr(pos, c.bytes);
    if (c.valid && c.code_point >= 0x20 && c.code_point != 0x7F && c.code_point != '"' && c.code_point != '\\')
      out += bytes;
    else
      for (char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    pos += c.bytes;
  }
  return out + (cut ? "\"..." : "\"");
}

}  // namespace cachalot::text
