// Reads what the oracles said of texts, from tests/data/text (made by tools/compare_tokenizers.py --record).
// Threads:   one test, one thread.
// Ownership: returns independent values.
// Invariant: a missing or malformed file fails the test that reads it.
// Cost:      parses the file on every call.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/testing/small_vocab.h"

namespace cachalot::text {

inline nlohmann::json ReadRecorded(const std::string& name) {
  const Result<std::string> contents = ReadFile(std::string(CACHALOT_SOURCE_DIR) + "/tests/data/text/" + name, 1 << 20);
  EXPECT_TRUE(contents.ok()) << contents.status().message();
  return contents.ok() ? nlohmann::json::parse(*contents, nullptr, /*allow_exceptions=*/false) : nlohmann::json();
}

inline SmallVocab VocabOf(const nlohmann::json& recorded) {
  SmallVocab vocab(recorded["model"].get<std::string>(), recorded["pre"].get<std::string>());
  for (size_t i = 0; i < recorded["tokens"].size(); ++i) {
    const float score = recorded["scores"].empty() ? 0 : recorded["scores"][i].get<float>();
    vocab.Token(recorded["tokens"][i].get<std::string>(), recorded["types"][i].get<int64_t>(), score);
  }
  for (const nlohmann::json& merge : recorded["merges"])
    vocab.data().merges.push_back(vocab.Keep(merge.get<std::string>()));
  const auto id = [&](const char* key) {
    return recorded[key].is_null() ? std::nullopt : std::optional(recorded[key].get<uint64_t>());
  };
  vocab.data().bos = id("bos");
  vocab.data().eos = id("eos");
  vocab.data().unknown = id("unknown");
  vocab.data().add_space_prefix = recorded["add_space_prefix"].get<bool>();
  return vocab;
}

inline std::string BytesOfHex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

}  // namespace cachalot::text
