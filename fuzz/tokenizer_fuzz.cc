// Any bytes through small vocabularies of each kind, and any metadata through Tokenizer::Create: nothing crashes, and
// text that the vocabulary can write comes back as it was.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"
#include "text/testing/small_vocab.h"
#include "text/tokenizer.h"

namespace cachalot::text {
namespace {

std::unique_ptr<const Tokenizer> Made(SmallVocab vocab) {
  auto tokenizer = Tokenizer::Create(vocab.data());
  CACHALOT_CHECK(tokenizer.ok());
  return std::move(tokenizer).value();
}

SmallVocab ByteLevel(std::string_view pre) {
  SmallVocab vocab =
      SmallVocab::ByteLevel(pre, {"Ġ Ġ", "a a", "aa aa", "Ġ a", "ĠĠ ĠĠ", "Ã ©", "1 2", "' s", "a b", "ï ¿", "ï¿ ½"});
  vocab.Token("<|end|>", kControlType).Token("<t>", kUserDefinedType).Token("<t>a", kUserDefinedType);
  return vocab;
}

SmallVocab Pieces(bool add_space_prefix) {
  SmallVocab vocab = SmallVocab::Pieces({"▁▁", "▁", "aa", "aaaa", "▁a", "é", "ab", "▁▁▁▁", "a", "b", "\xE2\x96", "éa"});
  vocab.Token("<end>", kControlType).Token("\n\n", kUserDefinedType);
  vocab.data().add_space_prefix = add_space_prefix;
  return vocab;
}

struct Case {
  std::unique_ptr<const Tokenizer> tokenizer;
  bool composes;  // valid text may come back in another form
};

const std::vector<Case>& Cases() {
  static const auto* const cases = [] {
    auto* made = new std::vector<Case>();
    for (const char* pre : {"gpt-2", "smollm", "llama-bpe"}) made->push_back({Made(ByteLevel(pre)), false});
    made->push_back({Made(ByteLevel("qwen2")), true});
    made->push_back({Made(Pieces(false)), false});
    made->push_back({Made(Pieces(true)), false});
    return made;
  }();
  return *cases;
}

void CheckStreams(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool with_special) {
  const auto stops = StopSet::Create(std::vector<std::string>{"aab", "é\n", "ab"});
  StreamDecoder decoder(tokenizer, with_special);
  StopMatcher matcher(*stops);
  std::string text, emitted;
  const auto take = [&](const std::string& piece) {
    text += piece;
    emitted += matcher.Push(piece).emit;
  };
  for (TokenId id : ids) take(decoder.Push(id));
  take(decoder.Finish());
  emitted += matcher.Finish();
  CACHALOT_CHECK(text == ReplaceInvalidUtf8(tokenizer.Decode(ids, with_special)));
  CACHALOT_CHECK(text.starts_with(emitted));
}

void EncodeAnything(std::string_view text, uint8_t options) {
  const bool parse_special = (options & 1) != 0;
  const Case& chosen = Cases()[options / 2 % Cases().size()];
  const Tokenizer& tokenizer = *chosen.tokenizer;
  const std::vector<TokenId> ids = tokenizer.Encode(text, {.add_bos = false, .parse_special = parse_special});
  for (TokenId id : ids) CACHALOT_CHECK(id < tokenizer.vocabulary_size());
  // U+2581 stands for a space in pieces, and after a special token a space is put that stays.
  const bool writable = FindInvalidUtf8(text) == std::string_view::npos &&
                        text.find("\u2581") == std::string_view::npos &&
                        !(tokenizer.strips_first_space() && text.find_first_of("<\n") != std::string_view::npos);
  if (writable && !chosen.composes) CACHALOT_CHECK(tokenizer.Decode(ids, /*with_special=*/true) == text);
  CheckStreams(tokenizer, ids, parse_special);
}

// Metadata from the bytes: each is an instruction.
void CreateFromAnything(std::string_view bytes) {
  size_t pos = 0;
  const auto next = [&]() -> uint8_t { return pos < bytes.size() ? static_cast<uint8_t>(bytes[pos++]) : 0; };
  const uint8_t kind = next();
  SmallVocab vocab = kind % 4 == 0   ? SmallVocab("llama")
                     : kind % 4 == 1 ? Pieces(true)
                                     : ByteLevel(kind % 4 == 2 ? "gpt-2" : "llama-bpe");
  const auto string = [&] {
    std::string out(next() % 8, '\0');
    for (char& c : out) c = static_cast<char>(next());
    return out;
  };
  while (pos < bytes.size()) {
    VocabData& data = vocab.data();
    switch (next() % 9) {
      case 0: vocab.Token(string(), next() % 8, static_cast<float>(next())); break;
      case 1: vocab.Token("<0x" + string() + ">", kByteType); break;
      case 2: data.merges.push_back(vocab.Keep(string() + " " + string())); break;
      case 3: data.merges.push_back(vocab.Keep(string())); break;
      case 4: data.scores.push_back(next()); break;
      case 5:
        data.bos = next();
        data.add_bos = next() % 2;
        break;
      case 6:
        data.unknown = next();
        data.eos = next();
        break;
      case 7:
        if (!data.tokens.empty()) data.tokens[next() % data.tokens.size()] = vocab.Keep(string());
        break;
      case 8:
        if (!data.token_types.empty()) data.token_types[next() % data.token_types.size()] = next() % 7;
        break;
    }
  }
  const auto tokenizer = Tokenizer::Create(vocab.data());
  if (!tokenizer.ok()) {
    CACHALOT_CHECK(tokenizer.status().code() == Code::kInvalid && !tokenizer.status().message().empty());
    return;
  }
  const std::vector<TokenId> ids = (*tokenizer)->Encode(bytes, {});
  CheckStreams(**tokenizer, ids, true);
}

}  // namespace
}  // namespace cachalot::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (data[0] >= 128)
    cachalot::text::CreateFromAnything(bytes.substr(1));
  else
    cachalot::text::EncodeAnything(bytes.substr(1), data[0]);
  return 0;
}
