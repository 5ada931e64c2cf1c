#include "model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "base/testing/allocations.h"
#include "model/fingerprint.h"
#include "model/gguf_parser.h"
#include "model/model_spec.h"
#include "model/testing/gguf_builder.h"
#include "model/testing/tiny_model.h"
#include "model/weights.h"

namespace cachalot::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<GgufFile> Parse(const std::string& bytes) { return GgufFile::Parse(std::as_bytes(std::span(bytes)), "x.gguf"); }

std::string ErrorOf(const std::string& bytes) {
  const Result<GgufFile> file = Parse(bytes);
  EXPECT_FALSE(file.ok());
  const std::string message = file.status().message();
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("x.gguf: byte ")) << message;
  return message;
}

// Everything that a file goes through before it is run, over an exact copy, so that a sanitizer sees any overrun.
bool LoadsWhole(std::string_view bytes) {
  const std::vector<char> copy(bytes.begin(), bytes.end());
  const Result<GgufFile> file = GgufFile::Parse(std::as_bytes(std::span(copy)), "x.gguf");
  if (!file.ok()) return false;
  (void)ModelFingerprint(*file);
  const Result<ModelSpec> spec = ReadModelSpec(*file);
  return spec.ok() && BindWeights(*file, *spec).ok();
}

TinyModelOptions SmallOptions(const std::string& architecture) {
  TinyModelOptions options;
  options.architecture = architecture;
  options.layers = 1;
  options.width = 8;
  options.heads = 2;
  options.head_dim = 4;
  options.ffn_width = 4;
  options.vocabulary = 3;
  return options;
}

TEST(Gguf, ReadsEveryKindOfValue) {
  const std::string bytes = GgufBuilder()
                                .SetRaw("u8", 0, "\x07")
                                .SetRaw("i8", 1, "\xff")
                                .SetRaw("u16", 2, std::string("\x01\x02", 2))
                                .SetRaw("i16", 3, "\xfe\xff")
                                .SetUInt("u32", 5)
                                .SetInt("i32", -5)
                                .SetFloat("f32", 0.5f)
                                .SetBool("yes", true)
                                .SetString("text", std::string_view("a\0b", 3))
                                .SetUInt64("u64", ~uint64_t{0})
                                .SetRaw("i64", 11, std::string(8, '\xff'))
                                .SetRaw("f64", 12, std::string("\0\0\0\0\0\0\xf0\x3f", 8))
                                .Build();
  const Result<GgufFile> file = Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(*file->Find("u8"), GgufValue(uint64_t{7}));
  EXPECT_EQ(*file->Find("i8"), GgufValue(int64_t{-1}));
  EXPECT_EQ(*file->Find("u16"), GgufValue(uint64_t{0x201}));
  EXPECT_EQ(*file->Find("i16"), GgufValue(int64_t{-2}));
  EXPECT_EQ(*file->Find("u32"), GgufValue(uint64_t{5}));
  EXPECT_EQ(*file->Find("i32"), GgufValue(int64_t{-5}));
  EXPECT_EQ(*file->Find("f32"), GgufValue(0.5));
  EXPECT_EQ(*file->Find("yes"), GgufValue(true));
  EXPECT_EQ(*file->Find("text"), GgufValue(std::string_view("a\0b", 3)));
  EXPECT_EQ(*file->Find("u64"), GgufValue(~uint64_t{0}));
  EXPECT_EQ(*file->Find("i64"), GgufValue(int64_t{-1}));
  EXPECT_EQ(*file->Find("f64"), GgufValue(1.0));
  EXPECT_EQ(file->Find("absent"), nullptr);
  EXPECT_EQ(file->metadata()[0].key, "u8");
}

TEST(Gguf, ReadsArraysOfNumbersBooleansAndStrings) {
  const std::vector<std::string> words = {"a", "", "\xff"};
  const std::vector<int32_t> ints = {-1, 2};
  const std::vector<float> floats = {0.25f};
  const std::array<bool, 2> flags = {true, false};
  const std::string bytes = GgufBuilder()
                                .SetStrings("words", words)
                                .SetInts("ints", ints)
                                .SetFloats("floats", floats)
                                .SetBools("flags", flags)
                                .SetRaw("none", 9, std::string("\x08\0\0\0\0\0\0\0\0\0\0\0", 12))
                                .Build();
  const Result<GgufFile> file = Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_THAT((*file->FindArray("words"))->strings, ElementsAre("a", "", "\xff"));
  EXPECT_THAT((*file->FindArray("ints"))->ints, ElementsAre(-1, 2));
  EXPECT_THAT((*file->FindArray("floats"))->floats, ElementsAre(0.25f));
  EXPECT_THAT((*file->FindArray("flags"))->ints, ElementsAre(1, 0));
  EXPECT_EQ((*file->FindArray("none"))->size, 0u);
}

TEST(Gguf, TypedLookUpsTellAbsentFromWrong) {
  const std::string bytes = GgufBuilder().SetUInt("n", 5).SetInt("neg", -5).SetString("s", "x").Build();
  const Result<GgufFile> file = Parse(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->FindUInt("n"), 5u);
  EXPECT_EQ(*file->FindNumber("n"), 5.0);
  EXPECT_EQ(*file->FindString("s"), "x");
  EXPECT_EQ(*file->FindUInt("absent"), std::nullopt);
  EXPECT_EQ(*file->FindArray("absent"), nullptr);
  EXPECT_EQ(file->FindUInt("s").status().message(),
            "x.gguf: metadata key 's' is a string, expected an unsigned integer");
  EXPECT_EQ(file->FindUInt("neg").status().message(),
            "x.gguf: metadata key 'neg' is the integer -5, expected an unsigned integer");
  EXPECT_FALSE(file->FindBool("n").ok());
  EXPECT_FALSE(file->FindNumber("s").ok());
  EXPECT_FALSE(file->FindString("n").ok());
  EXPECT_EQ(file->FindArray("n").status().code(), Code::kInvalid);
}

TEST(Gguf, TensorsViewTheirBytes) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::string q8(34 * 2, 'q');
  const std::string bytes =
      GgufBuilder().SetAlignment(64).AddF32("a", {3, 2}, values).AddTensor("b", TensorType::kQ8_0, {32, 2}, q8).Build();
  const Result<GgufFile> file = Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const GgufTensor* a = file->FindTensor("a");
  ASSERT_NE(a, nullptr);
  EXPECT_THAT(a->shape, ElementsAre(3, 2));
  ASSERT_EQ(a->bytes.size(), 24u);
  EXPECT_EQ(std::memcmp(a->bytes.data(), values.data(), 24), 0);
  const GgufTensor* b = file->FindTensor("b");
  EXPECT_EQ(b->type, TensorType::kQ8_0);
  EXPECT_EQ(b->bytes.size(), q8.size());
  EXPECT_EQ(b->bytes.data() - a->bytes.data(), 64);
  EXPECT_EQ(file->FindTensor("c"), nullptr);
}

TEST(Gguf, OpenReadsAFileAndNamesItsPath) {
  const std::string path = ::testing::TempDir() + "/gguf_test.gguf";
  const std::string bytes = TinyModel({}).Build();
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  const Result<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->file_bytes(), bytes.size());
  EXPECT_EQ(file->name(), path);
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  const Result<GgufFile> empty = GgufFile::Open(path);
  EXPECT_EQ(empty.status().message(), path + ": byte 0: the file is empty, expected a GGUF header of 24 bytes");
  std::filesystem::remove(path);
  EXPECT_EQ(GgufFile::Open(path).status().code(), Code::kUnavailable);
}

TEST(Gguf, NamesWhatIsNotAGgufFile) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("byte 0: the file is empty"));
  EXPECT_THAT(ErrorOf("PK\x03\x04...."), HasSubstr("not a GGUF file: begins with 50 4b 03 04, expected 47 47 55 46"));
  EXPECT_THAT(ErrorOf("PK\x03\x04...."), HasSubstr("zip archive"));
  EXPECT_THAT(ErrorOf("version https://git-lfs"), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(ErrorOf("tjgg\x03"), HasSubstr("older ggml format"));
  EXPECT_THAT(ErrorOf("G"), HasSubstr("begins with 47, expected"));
  EXPECT_THAT(ErrorOf("GGUF"), HasSubstr("byte 4: the file ends inside the GGUF version: 4 bytes expected, 0 left"));
}

TEST(Gguf, NamesUnsupportedVersions) {
  EXPECT_THAT(ErrorOf(GgufBuilder().SetVersion(1).Build()),
              HasSubstr("byte 4: GGUF version 1 is not supported, expected 2 or 3"));
  EXPECT_THAT(ErrorOf(GgufBuilder().SetVersion(4).Build()), HasSubstr("GGUF version 4 is not supported"));
  EXPECT_THAT(ErrorOf(GgufBuilder().SetVersion(0x03000000).Build()), HasSubstr("big-endian GGUF (version 3)"));
  EXPECT_TRUE(Parse(GgufBuilder().SetVersion(2).Build()).ok());
}

TEST(Gguf, RefusesCountsThatTheFileCannotHoldWithoutAllocating) {
  std::string bytes = GgufBuilder().SetUInt("a", 1).Build();
  const uint64_t huge = uint64_t{10} << 40;
  std::string tensors = bytes;
  std::memcpy(tensors.data() + 8, &huge, 8);
  std::string metadata = bytes;
  std::memcpy(metadata.data() + 16, &huge, 8);
  std::string length(12, '\0');
  length[0] = 4;
  std::memcpy(length.data() + 4, &huge, 8);
  const std::string array = GgufBuilder().SetRaw("a", 9, length).Build();
  const std::string text = GgufBuilder().SetRaw("a", 8, length.substr(4)).Build();
  std::string tensor = GgufBuilder().AddTensor("t", TensorType::kF32, {huge, 2}, "").Build();

  (void)TakeLargestAllocation();
  for (const std::string* hostile : std::array<const std::string*, 5>{&tensors, &metadata, &array, &text, &tensor})
    ErrorOf(*hostile);
  EXPECT_LT(TakeLargestAllocation(), 4096u);

  EXPECT_THAT(ErrorOf(tensors), HasSubstr("byte 8: the tensor count 10995116277760 needs at least 32 bytes each"));
  EXPECT_THAT(ErrorOf(metadata), HasSubstr("byte 16: the metadata count 10995116277760 needs at least 13 bytes each"));
  EXPECT_THAT(ErrorOf(array), HasSubstr("the array claims 10995116277760 elements of at least 4 bytes"));
  EXPECT_THAT(ErrorOf(text),
              HasSubstr("the string value claims 10995116277760 bytes, but the file has 0 left (key 'a')"));
  EXPECT_THAT(ErrorOf(tensor), HasSubstr("needs 87960930222080 bytes at offset 0"));
}

TEST(Gguf, RefusesMalformedMetadata) {
  EXPECT_THAT(ErrorOf(GgufBuilder().SetRaw("a", 13, "x").Build()),
              HasSubstr("the value type is 13, expected 0 to 12 (key 'a')"));
  EXPECT_THAT(ErrorOf(GgufBuilder().SetRaw("a", 7, "\x02").Build()), HasSubstr("the boolean is 2, expected 0 or 1"));
  EXPECT_THAT(ErrorOf(GgufBuilder().SetUInt("", 1).Build()), HasSubstr("the metadata key is empty"));
  EXPECT_THAT(ErrorOf(GgufBuilder().SetUInt(std::string(2000, 'k'), 1).Build()),
              HasSubstr("has 2000 bytes, at most 1024"));
  const std::string nested("\x09\0\0\0\x01\0\0\0\0\0\0\0", 12);
  EXPECT_THAT(ErrorOf(GgufBuilder().SetRaw("a", 9, nested).Build()), HasSubstr("arrays of arrays are not supported"));
  const std::string unknown("\x0d\0\0\0\0\0\0\0\0\0\0\0", 12);
  EXPECT_THAT(ErrorOf(GgufBuilder().SetRaw("a", 9, unknown).Build()), HasSubstr("the array element type is 13"));
  const std::string flags("\x07\0\0\0\x02\0\0\0\0\0\0\0\x01\x09", 14);
  EXPECT_THAT(ErrorOf(GgufBuilder().SetRaw("a", 9, flags).Build()), HasSubstr("the boolean is 9, expected 0 or 1"));
  std::string wide("\x0a\0\0\0\x01\0\0\0\0\0\0\0", 12);
  wide.append(8, '\xff');
  EXPECT_THAT(ErrorOf(GgufBuilder().SetRaw("a", 9, wide).Build()), HasSubstr("larger than 2^63 - 1"));
}

TEST(Gguf, RefusesDuplicates) {
  std::string bytes = GgufBuilder().SetUInt("aa", 1).SetUInt("ab", 1).Build();
  bytes[bytes.find("ab") + 1] = 'a';
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("metadata key 'aa' stands twice"));
  const float one = 1;
  const std::string tensors = GgufBuilder().AddF32("t", {1}, {&one, 1}).AddF32("t", {1}, {&one, 1}).Build();
  EXPECT_THAT(ErrorOf(tensors), HasSubstr("tensor 't' stands twice"));
}

TEST(Gguf, RefusesBadAlignments) {
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 1u << 21}) {
    EXPECT_THAT(ErrorOf(GgufBuilder().SetUInt("general.alignment", alignment).Build()),
                HasSubstr("general.alignment is the integer " + std::to_string(alignment)));
  }
  EXPECT_THAT(ErrorOf(GgufBuilder().SetString("general.alignment", "32").Build()),
              HasSubstr("is a string, expected a power"));
}

TEST(Gguf, RefusesMalformedTensors) {
  const std::string data(1024, '\0');
  const auto with = [&](uint32_t type, std::vector<uint64_t> shape) {
    return ErrorOf(GgufBuilder().AddTensor("t", type, std::move(shape), data).Build());
  };
  EXPECT_THAT(with(0, {}), HasSubstr("the tensor has 0 dimensions, expected 1 to 4 (tensor 't')"));
  EXPECT_THAT(with(0, {1, 1, 1, 1, 1}), HasSubstr("the tensor has 5 dimensions"));
  EXPECT_THAT(with(0, {4, 0}), HasSubstr("dimension 1 of the tensor is 0"));
  EXPECT_THAT(with(0, {uint64_t{1} << 32, uint64_t{1} << 32}), HasSubstr("has more than 2^56 elements"));
  EXPECT_THAT(with(0, {uint64_t{1} << 57}), HasSubstr("has more than 2^56 elements"));
  EXPECT_THAT(with(12, {32}), HasSubstr("rows of 32 elements do not divide into blocks of 256 (Q4_K)"));
  EXPECT_THAT(with(0, {300}),
              HasSubstr("needs 1200 bytes at offset 0 of the tensor data, but the file has 1024 there"));
}

TEST(Gguf, NamesUnsupportedTensorTypes) {
  const std::string known = ErrorOf(GgufBuilder().AddTensor("t", 16, {256}, "").Build());
  EXPECT_THAT(known, HasSubstr("tensor type 16 (IQ2_XXS) is not supported, expected one of F32, F16,"));
  EXPECT_THAT(known, HasSubstr("(tensor 't')"));
  EXPECT_THAT(ErrorOf(GgufBuilder().AddTensor("t", 999, {256}, "").Build()), HasSubstr("tensor type 999 (unknown)"));
}

TEST(Gguf, RefusesOffsetsOutsideTheFileOrUnaligned) {
  const float one = 1;
  const auto with = [&](uint64_t offset) {
    return ErrorOf(GgufBuilder().AddF32("t", {1}, {&one, 1}).OverrideOffset("t", offset).Build());
  };
  EXPECT_THAT(with(16), HasSubstr("the offset 16 is not a multiple of the alignment 32"));
  EXPECT_THAT(with(32), HasSubstr("needs 4 bytes at offset 32 of the tensor data, but the file has 4 there"));
  EXPECT_THAT(with(~uint64_t{31}), HasSubstr("needs 4 bytes at offset 18446744073709551584"));
}

TEST(Gguf, MessagesShowHostileNamesOnOneLine) {
  EXPECT_THAT(ErrorOf(GgufBuilder().SetRaw("a\n\x1b[31m", 99, "").Build()), HasSubstr("(key 'a\\x0a\\x1b[31m')"));
  EXPECT_THAT(ErrorOf(GgufBuilder().SetRaw(std::string(100, 'k'), 99, "").Build()), HasSubstr("kkk...'"));
}

class GgufDamage : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufDamage, EveryTruncationIsRefused) {
  const std::string bytes = TinyModel(SmallOptions(GetParam())).Build();
  ASSERT_TRUE(LoadsWhole(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(LoadsWhole(std::string_view(bytes).substr(0, size))) << size << " of " << bytes.size();
  }
}

TEST_P(GgufDamage, AnyFlippedByteIsReadSafely) {
  const std::string bytes = TinyModel(SmallOptions(GetParam())).Build();
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      refused += LoadsWhole(damaged) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, bytes.size() / 4);
}

INSTANTIATE_TEST_SUITE_P(Architectures, GgufDamage, ::testing::Values("llama", "qwen2", "gemma3"));

}  // namespace
}  // namespace cachalot::model
