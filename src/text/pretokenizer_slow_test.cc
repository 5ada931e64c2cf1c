#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/hash.h"
#include "text/nfc.h"
#include "text/pretokenizer.h"
#include "text/testing/recorded.h"
#include "text/unicode.h"

namespace cachalot::text {
namespace {

std::string ShortDigest(const std::string& bytes) {
  return HexOf(Sha256Of(std::as_bytes(std::span(bytes)))).substr(0, 16);
}

// Calls `append(character, out)` for every code point of a block but the surrogates.
template <class Append>
std::string Probe(uint32_t block, uint32_t block_size, Append append) {
  std::string out;
  for (uint32_t cp = block * block_size; cp < (block + 1) * block_size; ++cp) {
    if (cp >= 0xD800 && cp < 0xE000) continue;
    std::string character;
    AppendLax(&character, cp);
    append(character, &out);
  }
  return out;
}

// As split_probe and nfc_probe of tools/tokenizer_recording.py.
void AppendSplitProbe(const std::string& c, std::string* out) {
  *out += "a" + c + "b " + c + c + " '" + c + "1" + c + "\n" + c;
}
void AppendNfcProbe(const std::string& c, std::string* out) {
  *out += c + "\u0301A" + c + "\u0323\u0345" + c + c + "\u1161";
}

TEST(PreTokenizerSlow, EveryCodePointIsCutAsByThePublishedRegularExpressions) {
  const nlohmann::json recorded = ReadRecorded("pretokenizer.json");
  const uint32_t block_size = recorded["block"].get<uint32_t>();
  for (const auto& [name, digests] : recorded["split_digests"].items()) {
    ASSERT_EQ(digests.size() * block_size, size_t{kCodePointLimit});
    for (uint32_t block = 0; block < digests.size(); ++block) {
      const std::string text = Probe(block, block_size, AppendSplitProbe);
      std::string ends;
      for (size_t end = 0; end < text.size();) {
        end = PreTokenEnd(*FindPreTokenizer(name), text, end);
        for (int shift = 0; shift < 32; shift += 8) ends.push_back(static_cast<char>(end >> shift));
      }
      EXPECT_EQ(ShortDigest(ends), digests[block].get<std::string>()) << name << ", block " << block;
    }
  }
}

TEST(PreTokenizerSlow, EveryCodePointComposesAsInHuggingFaceTokenizers) {
  const nlohmann::json recorded = ReadRecorded("pretokenizer.json");
  const uint32_t block_size = recorded["block"].get<uint32_t>();
  const nlohmann::json& digests = recorded["nfc_digests"];
  ASSERT_EQ(digests.size() * block_size, size_t{kCodePointLimit});
  for (uint32_t block = 0; block < digests.size(); ++block)
    EXPECT_EQ(ShortDigest(ToNfc(Probe(block, block_size, AppendNfcProbe))), digests[block].get<std::string>())
        << "block " << block;
}

}  // namespace
}  // namespace cachalot::text
