#include "cli/compatibility.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/disk_shares.h"

namespace cachalot::cli {
namespace {

using Settings = ServeSettings;

bool HasDisk(const Settings& s) { return !s.model.tiers.disk_path.empty(); }
bool HasHost(const Settings& s) { return s.model.tiers.host_memory.bytes > 0; }
bool HasTier(const Settings& s) { return HasDisk(s) || HasHost(s); }

constexpr Combination kCombinations[] = {
    {"--disk-size without --disk-path", Verdict::kRefused, "a size, and no folder to use it in",
     [](const Settings& s) { return !HasDisk(s) && s.model.tiers.disk_size.bytes > 0; }},
    {"--disk-path without --disk-size", Verdict::kRefused, "a folder, and no limit to what may be written there",
     [](const Settings& s) { return HasDisk(s) && s.model.tiers.disk_size.bytes == 0; }},
    {"--disk-path or --host-memory with --no-prefix-cache", Verdict::kRefused,
     "lower tiers keep KV for later requests, which nobody then looks for",
     [](const Settings& s) { return HasTier(s) && !s.engine.prefix_cache; }},
    {"--session-files inside --disk-path", Verdict::kRefused, "that folder holds no more than --disk-size",
     [](const Settings& s) {
       return HasDisk(s) && !s.model.tiers.session_files.empty() && !ShareDisk(s.model.tiers, 0).ok();
     }},
    {"--bodies-limit below --body-limit", Verdict::kRefused, "no body of the size that is allowed would have room",
     [](const Settings& s) { return s.server.bodies_limit < s.server.body_limit; }},

    {"--host-memory with --device cpu", Verdict::kWarned,
     "KV then moves within the same memory; --kv-memory makes better use of it",
     [](const Settings& s) { return HasHost(s) && s.model.device == "cpu"; }},
    {"--thrash-control with --no-shadow-index", Verdict::kWarned,
     "thrash control does nothing: only the shadow index knows what was computed before",
     [](const Settings& s) { return s.engine.thrash_control && !s.engine.shadow_index; }},
    {"--verify-hits with --no-prefix-cache", Verdict::kWarned, "there are no hits to verify",
     [](const Settings& s) { return s.engine.verify_hits > 0 && !s.engine.prefix_cache; }},
    {"--ttft-target without --disk-path or --host-memory", Verdict::kWarned,
     "it chooses between loading and computing, and there is nothing to load from",
     [](const Settings& s) { return s.engine.ttft_target > 0 && !HasTier(s); }},
    {"--idle-timeout without --disk-path or --host-memory", Verdict::kWarned,
     "the KV of idle sessions has nowhere to go",
     [](const Settings& s) { return s.engine.sessions.idle_seconds > 0 && !HasTier(s); }},
    {"--disk-write-rate without --disk-path", Verdict::kWarned, "nothing is written",
     [](const Settings& s) { return s.engine.disk_write_rate.bytes > 0 && !HasDisk(s); }},
    {"--disk-read-rate without --disk-path", Verdict::kWarned, "nothing is read",
     [](const Settings& s) { return s.model.tiers.disk_read_rate.bytes > 0 && !HasDisk(s); }},
    {"--disk-compression without --disk-path", Verdict::kWarned, "nothing is written",
     [](const Settings& s) { return s.model.tiers.disk_compression != TierOptions{}.disk_compression && !HasDisk(s); }},
    {"--disk-io without --disk-path", Verdict::kWarned, "nothing is read",
     [](const Settings& s) { return s.model.tiers.disk_io != TierOptions{}.disk_io && !HasDisk(s); }},
    {"--session-path with --max-sessions 0", Verdict::kWarned, "no session is remembered, so none is kept there",
     [](const Settings& s) { return !s.model.tiers.session_path.empty() && s.engine.sessions.most == 0; }},
    {"--session-files with --max-sessions 0", Verdict::kWarned, "no session is remembered, so none can be saved",
     [](const Settings& s) { return !s.model.tiers.session_files.empty() && s.engine.sessions.most == 0; }},
    {"--max-owner-sessions above --max-sessions", Verdict::kWarned, "--max-sessions is the cap",
     [](const Settings& s) { return s.engine.sessions.most_of_owner > s.engine.sessions.most; }},
    {"--admission-reserve with --admission guaranteed", Verdict::kWarned,
     "it is for those who begin without a guarantee, and all have one",
     [](const Settings& s) {
       return s.engine.admission == "guaranteed" &&
              s.engine.admission_reserve != engine::EngineOptions{}.admission_reserve;
     }},
    {"--kv-type with --reference", Verdict::kWarned, "the reference keeps KV in f32",
     [](const Settings& s) {
       return s.model.reference && s.model.kv_type != ModelOptions{}.kv_type && s.model.kv_type != "f32";
     }},
    {"--prefill-chunk above --step-rows", Verdict::kWarned, "a step has no more than --step-rows",
     [](const Settings& s) { return s.engine.prefill_chunk > s.engine.step_rows; }},
    {"--max-sequences above --step-rows", Verdict::kWarned,
     "a step has a row for each sequence that generates, so not all of them move on in each",
     [](const Settings& s) { return s.engine.max_sequences > s.engine.step_rows; }},
};

void AppendRows(Verdict verdict, std::string* out) {
  *out += "\n| settings | why |\n| --- | --- |\n";
  for (const Combination& combination : kCombinations) {
    if (combination.verdict == verdict) *out += fmt::format("| {} | {} |\n", combination.options, combination.reason);
  }
}

}  // namespace

std::span<const Combination> Combinations() { return kCombinations; }

std::vector<std::string> Found(const ServeSettings& settings, Verdict verdict) {
  std::vector<std::string> found;
  for (const Combination& combination : kCombinations) {
    if (combination.verdict == verdict && combination.holds(settings)) {
      found.push_back(fmt::format("{}: {}", combination.options, combination.reason));
    }
  }
  return found;
}

std::string CompatibilityPage() {
  std::string page =
      "# Settings that do not go together\n\n"
      "The table that `cachalot serve` checks when it starts (`src/cli/compatibility.cc`), as `cachalot serve "
      "--print-compatibility` prints it. Ranges of single settings are checked as well; `--help` names them.\n\n"
      "## Refused: the server does not start\n";
  AppendRows(Verdict::kRefused, &page);
  page += "\n## Warned of: the server starts, and a setting does nothing or less than it seems\n";
  AppendRows(Verdict::kWarned, &page);
  return page;
}

}  // namespace cachalot::cli
