#include "text/tokenizer.h"

#include <fmt/format.h>

#include "text/bpe.h"
#include "text/sentencepiece.h"
#include "text/special_matcher.h"
#include "text/vocab.h"

namespace cachalot::text {
namespace {

constexpr std::string_view kByteLevelBpe = "gpt2";
constexpr std::string_view kSentencePiece = "llama";

bool IsHidden(TokenKind kind) { return kind == TokenKind::kControl || kind == TokenKind::kUnknown; }

// What a SentencePiece token stands for.
std::string PieceText(std::string_view spelling) {
  constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";
  std::string out;
  for (size_t pos = 0; pos < spelling.size();) {
    const bool space = spelling.substr(pos).starts_with(kEscapedSpace);
    out.push_back(space ? ' ' : spelling[pos]);
    pos += space ? kEscapedSpace.size() : 1;
  }
  return out;
}

class VocabTokenizer final : public Tokenizer {
 public:
  static Result<std::unique_ptr<const Tokenizer>> Make(const VocabData& data);

  std::vector<TokenId> Encode(std::string_view text, const EncodeOptions& options) const override;
  std::string Decode(std::span<const TokenId> ids, bool with_special) const override;
  std::string_view TokenBytes(TokenId id, bool with_special) const override {
    if (id >= vocab_.size() || (IsHidden(vocab_.kind(id)) && !with_special)) return {};
    return texts_[id];
  }
  bool strips_first_space() const override { return strips_first_space_; }

  TokenKind Kind(TokenId id) const override { return id < vocab_.size() ? vocab_.kind(id) : TokenKind::kUnused; }
  std::string_view Spelling(TokenId id) const override {
    return id < vocab_.size() ? vocab_.spelling(id) : std::string_view();
  }
  std::optional<TokenId> FindSpecial(std::string_view spelling) const override;

  uint32_t vocabulary_size() const override { return vocab_.size(); }
  std::optional<TokenId> bos() const override { return vocab_.bos(); }
  std::optional<TokenId> eos() const override { return vocab_.eos(); }
  bool adds_bos() const override { return adds_bos_; }
  std::span<const TokenId> end_tokens() const override { return vocab_.end_tokens(); }

 private:
  explicit VocabTokenizer(Vocab vocab) : vocab_(std::move(vocab)) {}
  Status AddTexts(bool byte_level);
  void AddSpecials();
  Status AddEncoder(const VocabData& data);
  Status SetEnds(const VocabData& data);

  Vocab vocab_;
  StringTable texts_;                          // what each token stands for
  SpecialMatcher all_special_, user_defined_;  // with and without control and unknown tokens
  std::unique_ptr<const FragmentEncoder> encoder_;
  bool adds_bos_ = false, adds_eos_ = false, strips_first_space_ = false;
};

Result<std::unique_ptr<const Tokenizer>> VocabTokenizer::Make(const VocabData& data) {
  if (data.model != kByteLevelBpe && data.model != kSentencePiece)
    return Invalid(
        fmt::format("tokenizer.ggml.model is {}, which is not supported; supported are {} (byte-level BPE) and "
                    "{} (SentencePiece BPE)",
                    data.model.empty() ? "missing" : Quote(data.model), kByteLevelBpe, kSentencePiece));
  CACHALOT_ASSIGN_OR_RETURN(Vocab vocab, Vocab::Build(data));
  std::unique_ptr<VocabTokenizer> made(new VocabTokenizer(std::move(vocab)));
  CACHALOT_RETURN_IF_ERROR(made->AddTexts(data.model == kByteLevelBpe));
  made->AddSpecials();
  CACHALOT_RETURN_IF_ERROR(made->AddEncoder(data));
  CACHALOT_RETURN_IF_ERROR(made->SetEnds(data));
  return std::unique_ptr<const Tokenizer>(std::move(made));
}

Status VocabTokenizer::AddTexts(bool byte_level) {
  for (TokenId id = 0; id < vocab_.size(); ++id) {
    const std::string_view spelling = vocab_.spelling(id);
    switch (vocab_.kind(id)) {
      case TokenKind::kControl:
      case TokenKind::kUnknown:
      case TokenKind::kUserDefined: texts_.Add(spelling); break;
      case TokenKind::kNormal:
      case TokenKind::kUnused: texts_.Add(byte_level ? ByteLevelText(spelling) : PieceText(spelling)); break;
      case TokenKind::kByte: {
        const std::optional<uint8_t> byte = ByteOfSpelling(spelling);
        if (!byte.has_value())
          return Invalid(
              fmt::format("token {} is a byte token but spelled {}, expected <0x00> to <0xFF>", id, Quote(spelling)));
        const char text = static_cast<char>(*byte);
        texts_.Add({&text, 1});
      }
    }
  }
  return OkStatus();
}

void VocabTokenizer::AddSpecials() {
  for (TokenId id = 0; id < vocab_.size(); ++id) {
    const TokenKind kind = vocab_.kind(id);
    if (vocab_.spelling(id).empty() || (!IsHidden(kind) && kind != TokenKind::kUserDefined)) continue;
    all_special_.Add(vocab_.spelling(id), id);
    if (kind == TokenKind::kUserDefined) user_defined_.Add(vocab_.spelling(id), id);
  }
}

Status VocabTokenizer::AddEncoder(const VocabData& data) {
  if (data.model == kByteLevelBpe) {
    CACHALOT_ASSIGN_OR_RETURN(encoder_, Bpe::Create(vocab_, texts_, data));
    return OkStatus();
  }
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<const SentencePiece> encoder, SentencePiece::Create(vocab_, data));
  strips_first_space_ = encoder->adds_space_prefix();
  encoder_ = std::move(encoder);
  return OkStatus();
}

Status VocabTokenizer::SetEnds(const VocabData& data) {
  // Where the file does not say, the converters' convention holds: SentencePiece and Llama 3 begin with a BOS token.
  const bool begins_with_bos = data.model == kSentencePiece || FindPreTokenizer(data.pre) == PreTokenizer::kLlama3;
  adds_bos_ = data.add_bos.value_or(begins_with_bos && vocab_.bos().has_value());
  adds_eos_ = data.add_eos.value_or(false);
  if (adds_bos_ && !vocab_.bos().has_value())
    return Invalid("tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is missing");
  if (adds_eos_ && !vocab_.eos().has_value())
    return Invalid("tokenizer.ggml.add_eos_token is true, but tokenizer.ggml.eos_token_id is missing");
  return OkStatus();
}

std::vector<TokenId> VocabTokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  EncodeRun run(text.size());
  if (options.add_bos && adds_bos_) run.ids.push_back(*vocab_.bos());
  const SpecialMatcher& matcher = options.parse_special ? all_special_ : user_defined_;
  bool at_start = true;
  for (size_t pos = 0; pos < text.size();) {
    const std::optional<SpecialMatcher::Match> match = matcher.Next(text, pos);
    const std::string_view fragment = text.substr(pos, match.has_value() ? match->begin - pos : text.npos);
    if (!fragment.empty()) {
      encoder_->Encode(fragment, at_start, &run);
      at_start = false;
    }
    if (!match.has_value()) break;
    run.ids.push_back(match->id);
    at_start = true;
    pos = match->end;
  }
  if (options.add_bos && adds_eos_) run.ids.push_back(*vocab_.eos());
  return std::move(run.ids);
}

std::string VocabTokenizer::Decode(std::span<const TokenId> ids, bool with_special) const {
  std::string out;
  bool strip = strips_first_space_;
  for (TokenId id : ids) {
    std::string_view bytes = TokenBytes(id, with_special);
    if (strip && !bytes.empty()) {
      bytes.remove_prefix(bytes.front() == ' ');
      strip = false;
    }
    out += bytes;
  }
  return out;
}

std::optional<TokenId> VocabTokenizer::FindSpecial(std::string_view spelling) const {
  const std::optional<TokenId> id = vocab_.Find(spelling);
  if (!id.has_value() || !(IsHidden(vocab_.kind(*id)) || vocab_.kind(*id) == TokenKind::kUserDefined))
    return std::nullopt;
  return id;
}

}  // namespace

Result<std::unique_ptr<const Tokenizer>> Tokenizer::Create(const VocabData& data) { return VocabTokenizer::Make(data); }

Result<std::unique_ptr<const Tokenizer>> Tokenizer::Create(const model::GgufFile& file) {
  CACHALOT_ASSIGN_OR_RETURN(const VocabData data, ReadVocabData(file));
  return VocabTokenizer::Make(data);
}

}  // namespace cachalot::text
