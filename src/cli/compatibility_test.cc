#include "cli/compatibility.h"

#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"

namespace cachalot::cli {
namespace {

using Change = std::function<void(ServeSettings&)>;

// For each combination, settings that have it and no other.
const std::map<std::string_view, Change>& Examples() {
  static const std::map<std::string_view, Change> examples = {
      {"--disk-size without --disk-path", [](auto& s) { s.model.tiers.disk_size.bytes = 1 << 30; }},
      {"--disk-path without --disk-size", [](auto& s) { s.model.tiers.disk_path = "/kv"; }},
      {"--disk-path or --host-memory with --no-prefix-cache",
       [](auto& s) {
         s.model.tiers.host_memory.bytes = 1 << 30;
         s.model.device = "simlink";
         s.engine.prefix_cache = false;
       }},
      {"--session-files inside --disk-path",
       [](auto& s) {
         s.model.tiers.disk_path = "/kv";
         s.model.tiers.disk_size.bytes = 1 << 30;
         s.model.tiers.session_files = "/kv/saved";
       }},
      {"--bodies-limit below --body-limit", [](auto& s) { s.server.bodies_limit = s.server.body_limit - 1; }},
      {"--host-memory with --device cpu", [](auto& s) { s.model.tiers.host_memory.bytes = 1 << 30; }},
      {"--thrash-control with --no-shadow-index", [](auto& s) { s.engine.shadow_index = false; }},
      {"--verify-hits with --no-prefix-cache",
       [](auto& s) {
         s.engine.verify_hits = 1;
         s.engine.prefix_cache = false;
       }},
      {"--ttft-target without --disk-path or --host-memory", [](auto& s) { s.engine.ttft_target = 1; }},
      {"--idle-timeout without --disk-path or --host-memory", [](auto& s) { s.engine.sessions.idle_seconds = 60; }},
      {"--disk-write-rate without --disk-path", [](auto& s) { s.engine.disk_write_rate.bytes = 1; }},
      {"--disk-read-rate without --disk-path", [](auto& s) { s.model.tiers.disk_read_rate.bytes = 1; }},
      {"--disk-compression without --disk-path", [](auto& s) { s.model.tiers.disk_compression = "zstd"; }},
      {"--disk-io without --disk-path", [](auto& s) { s.model.tiers.disk_io = "pread"; }},
      {"--session-path with --max-sessions 0",
       [](auto& s) {
         s.model.tiers.session_path = "/sessions";
         s.engine.sessions.most = 0;
       }},
      {"--session-files with --max-sessions 0",
       [](auto& s) {
         s.model.tiers.session_files = "/saved";
         s.engine.sessions.most = 0;
       }},
      {"--max-owner-sessions above --max-sessions",
       [](auto& s) { s.engine.sessions.most_of_owner = s.engine.sessions.most + 1; }},
      {"--admission-reserve with --admission guaranteed", [](auto& s) { s.engine.admission_reserve = 0.1; }},
      {"--kv-type with --reference",
       [](auto& s) {
         s.model.reference = true;
         s.model.kv_type = "bf16";
       }},
      {"--prefill-chunk above --step-rows", [](auto& s) { s.engine.prefill_chunk = s.engine.step_rows + 1; }},
      {"--max-sequences above --step-rows", [](auto& s) { s.engine.max_sequences = s.engine.step_rows + 1; }},
  };
  return examples;
}

TEST(Compatibility, EachCombinationIsFoundWhereItIsAndNoOther) {
  ASSERT_EQ(Combinations().size(), Examples().size());
  for (const Combination& combination : Combinations()) {
    ASSERT_TRUE(Examples().contains(combination.options)) << combination.options;
    ServeSettings settings;
    Examples().at(combination.options)(settings);
    for (const Combination& other : Combinations()) {
      EXPECT_EQ(other.holds(settings), other.options == combination.options)
          << other.options << " in the example of " << combination.options;
    }
    const std::vector<std::string> found = Found(settings, combination.verdict);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(found[0].starts_with(combination.options));
  }
}

TEST(Compatibility, DefaultsGoTogether) {
  EXPECT_TRUE(Found({}, Verdict::kRefused).empty());
  EXPECT_TRUE(Found({}, Verdict::kWarned).empty());
}

TEST(Compatibility, ThePageIsThatOfTheTable) {
  const Result<std::string> page = ReadFile(CACHALOT_SOURCE_DIR "/docs/compatibility.md", 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(*page, CompatibilityPage()) << "cachalot serve --print-compatibility > docs/compatibility.md";
}

}  // namespace
}  // namespace cachalot::cli
