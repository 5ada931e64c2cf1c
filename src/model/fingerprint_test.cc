#include "model/fingerprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/gguf.h"
#include "model/testing/tiny_model.h"

namespace cachalot::model {
namespace {

// A file with its bytes, into which it has views.
struct Loaded {
  explicit Loaded(const GgufBuilder& builder)
      : bytes(builder.Build()), file(GgufFile::Parse(std::as_bytes(std::span(bytes)), "x.gguf")) {}
  std::string bytes;
  Result<GgufFile> file;
};

std::string FingerprintOf(const std::string& bytes) {
  const Result<GgufFile> file = GgufFile::Parse(std::as_bytes(std::span(bytes)), "x.gguf");
  return file.ok() ? HexOf(ModelFingerprint(*file)) : "malformed";
}

TEST(Fingerprint, EveryByteOfWeightsAndMetadataCountsForTheFingerprint) {
  TinyModelOptions options;
  options.architecture = "llama";
  options.layers = 1;
  options.width = 8;
  options.heads = 2;
  options.head_dim = 4;
  options.ffn_width = 4;
  options.vocabulary = 3;
  const Loaded loaded(TinyModel(options));
  const std::string& bytes = loaded.bytes;
  std::vector<bool> is_weight(bytes.size(), false);
  size_t data_start = bytes.size();
  for (const GgufTensor& tensor : loaded.file->tensors()) {
    const size_t start = static_cast<size_t>(reinterpret_cast<const char*>(tensor.bytes.data()) - bytes.data());
    data_start = std::min(data_start, start);
    std::fill_n(is_weight.begin() + static_cast<ptrdiff_t>(start), tensor.bytes.size(), true);
  }
  const std::string fingerprint = FingerprintOf(bytes);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    if (FingerprintOf(changed) != fingerprint) continue;
    // Only the format version (3, 2) and the padding before and between tensors carry nothing.
    EXPECT_TRUE(at == 4 || (at + 32 > data_start && !is_weight[at] && bytes[at] == 0)) << "byte " << at;
  }
}

TEST(Fingerprint, TheFingerprintIgnoresOrderAndSeesTypesShapesAndNames) {
  const std::vector<float> values = {1, 2, 3, 4};
  const auto of = [](const GgufBuilder& builder) { return FingerprintOf(builder.Build()); };
  const std::string base = of(GgufBuilder().SetUInt("a", 1).SetUInt("b", 2).AddF32("t", {4}, values));
  EXPECT_EQ(base, of(GgufBuilder().SetUInt("b", 2).SetUInt("a", 1).AddF32("t", {4}, values)));
  EXPECT_NE(base, of(GgufBuilder().SetInt("a", 1).SetUInt("b", 2).AddF32("t", {4}, values)));
  EXPECT_NE(base, of(GgufBuilder().SetUInt("a", 1).SetUInt("c", 2).AddF32("t", {4}, values)));
  EXPECT_NE(base, of(GgufBuilder().SetUInt("a", 1).SetUInt("b", 2).AddF32("u", {4}, values)));
  EXPECT_NE(base, of(GgufBuilder().SetUInt("a", 1).SetUInt("b", 2).AddF32("t", {2, 2}, values)));
  const std::string data(reinterpret_cast<const char*>(values.data()), 16);
  EXPECT_NE(base,
            of(GgufBuilder().SetUInt("a", 1).SetUInt("b", 2).AddTensor("t", TensorType::kF16, {4}, data.substr(0, 8))));
}

TEST(Fingerprint, TheTokenizerFingerprintCoversItsKeysOnly) {
  const auto of = [](const GgufBuilder& builder) {
    const Loaded loaded(builder);
    return HexOf(TokenizerFingerprint(*loaded.file));
  };
  const std::vector<std::string> words = {"a", "b"};
  const std::vector<std::string> others = {"ab", ""};
  const std::string base = of(GgufBuilder().SetStrings("tokenizer.ggml.tokens", words));
  EXPECT_EQ(base, of(GgufBuilder().SetUInt("general.x", 1).SetStrings("tokenizer.ggml.tokens", words)));
  EXPECT_NE(base, of(GgufBuilder().SetStrings("tokenizer.ggml.tokens", others)));
  EXPECT_NE(base,
            of(GgufBuilder().SetStrings("tokenizer.ggml.tokens", words).SetString("tokenizer.chat_template", "")));
}

TEST(ContentHash, IsShaOfThePiecesDigestsWhateverTheOrderOfHashing) {
  std::string text(2 * ContentHash::kPieceBytes + 5, 'a');
  text[ContentHash::kPieceBytes] = 'b';
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  Sha256 want;
  for (const uint64_t begin : {uint64_t{0}, ContentHash::kPieceBytes, 2 * ContentHash::kPieceBytes}) {
    const uint64_t size = std::min<uint64_t>(ContentHash::kPieceBytes, text.size() - begin);
    const Digest digest = Sha256Of(bytes.subspan(begin, size));
    want.Update(std::as_bytes(std::span(digest)));
  }
  ContentHash hash(bytes);
  ASSERT_EQ(hash.pieces(), 3u);
  for (const size_t piece : {2, 0, 1}) hash.HashPiece(piece);
  EXPECT_EQ(hash.Finish(), want.Finish());
  EXPECT_EQ(ContentHash({}).Finish(), Sha256Of({}));
}

}  // namespace
}  // namespace cachalot::model
