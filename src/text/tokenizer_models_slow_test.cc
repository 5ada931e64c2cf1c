#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "model/fetch.h"
#include "model/gguf.h"
#include "text/testing/recorded.h"
#include "text/tokenizer.h"

namespace cachalot::text {
namespace {

// The vocabularies of published models are not part of this repository: this runs for those in the cache folder.
TEST(TokenizerModels, GiveTheIdsThatHuggingFaceTokenizersGive) {
  const Result<std::string> folder = model::DefaultCacheFolder();
  size_t compared = 0;
  for (const model::CatalogueEntry& entry : model::Catalogue()) {
    if (!folder.ok()) break;
    const Result<model::GgufFile> file = model::GgufFile::Open(*folder + "/" + entry.file_name);
    if (!file.ok()) continue;
    const auto tokenizer = Tokenizer::Create(*file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    const nlohmann::json recorded = ReadRecorded("model_" + entry.name + ".json");
    ASSERT_TRUE(recorded.contains("ids"));
    for (size_t i = 0; i < recorded["texts"].size(); ++i) {
      const auto text = recorded["texts"][i].get<std::string>();
      EXPECT_EQ((*tokenizer)->Encode(text, {.add_bos = false}), recorded["ids"][i].get<std::vector<TokenId>>())
          << entry.name << ": " << text;
    }
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << "no model of the catalogue is in the cache folder";
}

}  // namespace
}  // namespace cachalot::text
