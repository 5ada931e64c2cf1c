#include "cli/compatibility.h"

#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"

namespace cachalot::cli {
namespace {

using Change = std::function<void(ServeSettings&)>;

// For each combination, settings that have it and no other.
const std::map<std::string_view, Change> kExamples = {
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
    {"--record, --input-log or --decision-log in one file",
     [](auto& s) {
       s.logs.record = "/logs/one";
       s.logs.decision_log = "/logs/../logs/one";
     }},
    {"--host-memory with --device cpu", [](auto& s) { s.model.tiers.host_memory.bytes = 1 << 30; }},
    {"--host-eviction without --host-memory", [](auto& s) { s.model.tiers.host_eviction = "s3fifo"; }},
    {"--host-share without --host-memory", [](auto& s) { s.model.tiers.host_share = 0.5; }},
    {"--eviction with --no-prefix-cache",
     [](auto& s) {
       s.engine.eviction = "lru";
       s.engine.prefix_cache = false;
     }},
    {"--pin-budget with --no-prefix-cache",
     [](auto& s) {
       s.engine.pin_budget = 0.1;
       s.engine.prefix_cache = false;
     }},
    {"--thrash-control with --no-shadow-index", [](auto& s) { s.engine.shadow_index = false; }},
    {"--verify-hits with --no-prefix-cache",
     [](auto& s) {
       s.engine.verify_hits = 1;
       s.engine.prefix_cache = false;
     }},
    {"--ttft-target without --disk-path or --host-memory", [](auto& s) { s.engine.ttft_target = 1; }},
    {"--idle-timeout without --disk-path or --host-memory", [](auto& s) { s.engine.sessions.idle_seconds = 60; }},
    {"--idle-timeout with --max-sessions 0",
     [](auto& s) {
       s.engine.sessions.idle_seconds = 60;
       s.engine.sessions.most = 0;
       s.model.device = "simlink";
       s.model.tiers.host_memory.bytes = 1 << 30;
     }},
    {"--session-memory with --max-sessions 0",
     [](auto& s) {
       s.engine.sessions.memory.bytes = 1;
       s.engine.sessions.most = 0;
     }},
    {"--disk-min-free without --disk-path or --session-files", [](auto& s) { s.model.tiers.disk_min_free.bytes = 1; }},
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
    {"--request-sequences or --tenant-sequences above --max-sequences",
     [](auto& s) { s.engine.terms.tenant.sequences = s.engine.max_sequences + 1; }},
    {"--tenant-queue above --max-queue", [](auto& s) { s.engine.terms.queue = s.engine.max_queue + 1; }},
    {"--admission-reserve with --admission guaranteed", [](auto& s) { s.engine.admission_reserve = 0.1; }},
    {"--kv-type with --reference",
     [](auto& s) {
       s.model.reference = true;
       s.model.kv_type = "bf16";
     }},
    {"--prefill-chunk above --step-rows", [](auto& s) { s.engine.prefill_chunk = s.engine.step_rows + 1; }},
    {"--max-sequences above --step-rows", [](auto& s) { s.engine.max_sequences = s.engine.step_rows + 1; }},
};

TEST(Compatibility, EachCombinationIsFoundWhereItIsAndNoOther) {
  ASSERT_EQ(Combinations().size(), kExamples.size());
  for (const Combination& combination : Combinations()) {
    ASSERT_TRUE(kExamples.contains(combination.options)) << combination.options;
    ServeSettings settings;
    kExamples.at(combination.options)(settings);
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

TEST(Compatibility, SizesAreHeldAgainstTheModelsBlocks) {
  TierOptions tiers;
  tiers.disk_path = "/kv";
  tiers.disk_size.bytes = 32 << 10;
  tiers.host_memory.bytes = 1000;
  EXPECT_TRUE(CheckSizes(tiers, {}).ok());
  EXPECT_TRUE(CheckSizes(tiers, {.block_bytes = 1 << 10, .staging_bytes = 999}).ok());
  EXPECT_EQ(CheckSizes(tiers, {.block_bytes = 2 << 10}).message(),
            "--disk-size below 32 blocks: its files would hold hardly a block each (32 KiB, where a block has 2 KiB: "
            "expected at least 64 KiB)");
  EXPECT_EQ(CheckSizes(tiers, {.staging_bytes = 2048}).message(),
            "--host-memory with --disk-path, and no more than the staging of that: the staging is part of it (1000 B, "
            "of which the disk tier alone takes 2 KiB)");
  for (const SizeCombination& combination : SizeCombinations()) {
    EXPECT_NE(CompatibilityPage().find(combination.options), std::string::npos) << combination.options;
    EXPECT_EQ(combination.found({}, {.block_bytes = 1 << 20, .staging_bytes = 1 << 20}), std::nullopt);
  }
}

TEST(Compatibility, ThePageIsThatOfTheTable) {
  const Result<std::string> page = ReadFile(CACHALOT_SOURCE_DIR "/docs/compatibility.md", 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(*page, CompatibilityPage()) << "cachalot serve --print-compatibility > docs/compatibility.md";
}

}  // namespace
}  // namespace cachalot::cli
