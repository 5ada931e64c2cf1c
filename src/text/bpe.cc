#include "text/bpe.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "text/nfc.h"
#include "text/unicode.h"

namespace cachalot::text {
namespace {

// Byte-level spellings write each byte as one printable character: itself if it is printable Latin-1, else the next
// free character from U+0100 on.
constexpr size_t kByteChars = 256 + 68;

constexpr bool SpellsItself(uint32_t byte) { return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD); }

constexpr std::array<uint16_t, 256> MakeCharOfByte() {
  std::array<uint16_t, 256> table{};
  uint16_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) table[byte] = SpellsItself(byte) ? static_cast<uint16_t>(byte) : next++;
  return table;
}

constexpr int16_t kNoByte = -1;

constexpr std::array<int16_t, kByteChars> MakeByteOfChar() {
  std::array<int16_t, kByteChars> table{};
  table.fill(kNoByte);
  const auto chars = MakeCharOfByte();
  for (int16_t byte = 0; byte < 256; ++byte) table[chars[static_cast<size_t>(byte)]] = byte;
  return table;
}

constexpr auto kCharOfByte = MakeCharOfByte();
constexpr auto kByteOfChar = MakeByteOfChar();

// The rules that come with a pre-tokenizer in the published files beside its regular expression.
bool ComposesFirst(PreTokenizer kind) { return kind == PreTokenizer::kQwen2; }
bool TakesWholeWords(PreTokenizer kind) { return kind == PreTokenizer::kLlama3; }

bool IsAscii(std::string_view text) {
  unsigned char all = 0;
  for (char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

}  // namespace

std::string ByteLevelText(std::string_view spelling) {
  std::string bytes;
  for (size_t pos = 0; pos < spelling.size();) {
    const Utf8Char c = DecodeUtf8(spelling, pos);
    if (!c.valid || c.code_point >= kByteChars || kByteOfChar[c.code_point] == kNoByte) return std::string(spelling);
    bytes.push_back(static_cast<char>(kByteOfChar[c.code_point]));
    pos += c.bytes;
  }
  return bytes;
}

Result<std::unique_ptr<const Bpe>> Bpe::Create(const Vocab& vocab, const StringTable& texts, const VocabData& data) {
  const std::optional<PreTokenizer> kind = FindPreTokenizer(data.pre);
  if (!kind.has_value())
    return Invalid(fmt::format("tokenizer.ggml.pre is {}, which is not supported; supported are {}",
                               data.pre.empty() ? "missing" : Quote(data.pre), SupportedPreTokenizers()));
  std::unique_ptr<Bpe> bpe(new Bpe(*kind, data.merges.size()));
  for (uint32_t byte = 0; byte < 256; ++byte) {
    std::string spelling;
    AppendUtf8(&spelling, kCharOfByte[byte]);
    const std::optional<TokenId> id = vocab.Find(spelling);
    bpe->byte_symbols_[byte] = id.has_value() && vocab.IsText(*id) ? *id : kNoSymbol;
  }
  CACHALOT_RETURN_IF_ERROR(bpe->AddMerges(vocab, data));
  if (TakesWholeWords(*kind)) bpe->AddWords(vocab, texts);
  return std::unique_ptr<const Bpe>(std::move(bpe));
}

Status Bpe::AddMerges(const Vocab& vocab, const VocabData& data) {
  if (data.merges.empty())
    return Invalid("tokenizer.ggml.merges is missing or empty, expected the merges of a gpt2 tokenizer");
  std::string whole;
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string_view merge = data.merges[rank];
    const auto wrong = [&](std::string_view why) {
      return Invalid(fmt::format("tokenizer.ggml.merges[{}] {} {}", rank, Quote(merge), why));
    };
    const size_t space = merge.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == merge.size() ||
        merge.find(' ', space + 1) != std::string_view::npos)
      return wrong("is not two tokens with a space between them");
    whole.assign(merge.substr(0, space)).append(merge.substr(space + 1));
    const std::string_view names[] = {merge.substr(0, space), merge.substr(space + 1), whole};
    TokenId ids[3];
    for (int i = 0; i < 3; ++i) {
      const std::optional<TokenId> id = vocab.Find(names[i]);
      if (!id.has_value())
        return wrong(fmt::format("names {}, which is not in tokenizer.ggml.tokens", Quote(names[i])));
      ids[i] = *id;
    }
    if (vocab.IsText(ids[2])) merges_.Set(ids[0], ids[1], {static_cast<uint32_t>(rank), ids[2]});
  }
  return OkStatus();
}

void Bpe::AddWords(const Vocab& vocab, const StringTable& texts) {
  words_.emplace(vocab.size());
  for (TokenId id = 0; id < vocab.size(); ++id)
    if (vocab.kind(id) == TokenKind::kNormal && !texts[id].empty()) words_->Add(texts[id], id);
}

void Bpe::Encode(std::string_view fragment, bool /*at_start*/, EncodeRun* run) const {
  std::string changed;
  if (!IsAscii(fragment) && FindInvalidUtf8(fragment) != std::string_view::npos) {
    changed = ReadLax(fragment);
    fragment = changed;
  }
  if (ComposesFirst(kind_) && !IsSurelyNfc(fragment)) {
    changed = ToNfc(fragment);
    fragment = changed;
  }
  for (size_t begin = 0; begin < fragment.size();) {
    const size_t end = PreTokenEnd(kind_, fragment, begin);
    const std::string_view word = fragment.substr(begin, end - begin);
    begin = end;
    if (run->recent.Repeat(word, &run->ids)) continue;
    const size_t first_id = run->ids.size();
    EncodeWord(word, run);
    run->recent.Remember(word, first_id, run->ids);
  }
}

void Bpe::EncodeWord(std::string_view word, EncodeRun* run) const {
  if (words_.has_value()) {
    if (const std::optional<TokenId> id = words_->Find(word)) {
      run->ids.push_back(*id);
      return;
    }
  }
  std::vector<Symbol>& symbols = run->scratch.symbols;
  symbols.clear();
  for (char c : word) {
    const Symbol symbol = byte_symbols_[static_cast<unsigned char>(c)];
    if (symbol != kNoSymbol) symbols.push_back(symbol);
  }
  MergePairs(merges_, &run->scratch);
  run->ids.insert(run->ids.end(), symbols.begin(), symbols.end());
}

}  // namespace cachalot::text
