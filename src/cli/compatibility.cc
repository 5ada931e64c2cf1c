#include "cli/compatibility.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "cli/disk_shares.h"
#include "cli/place.h"

namespace cachalot::cli {
namespace {

using Settings = ServeSettings;

bool HasDisk(const Settings& s) { return !s.model.tiers.disk_path.empty(); }
bool HasHost(const Settings& s) { return s.model.tiers.host_memory.bytes > 0; }
bool HasTier(const Settings& s) { return HasDisk(s) || HasHost(s); }

bool AreOne(const std::string& path, const std::string& other) {
  return !path.empty() && !other.empty() && PlaceOf(path) == PlaceOf(other);
}

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
    {"--record, --input-log or --decision-log in one file", Verdict::kRefused, "each is a file of its own",
     [](const Settings& s) {
       return AreOne(s.logs.record, s.logs.input_log) || AreOne(s.logs.record, s.logs.decision_log) ||
              AreOne(s.logs.input_log, s.logs.decision_log);
     }},

    {"--host-memory with --device cpu", Verdict::kWarned,
     "KV then moves within the same memory; --kv-memory makes better use of it",
     [](const Settings& s) { return HasHost(s) && s.model.device == "cpu"; }},
    {"--host-eviction without --host-memory", Verdict::kWarned, "nothing leaves it",
     [](const Settings& s) { return s.model.tiers.host_eviction != TierOptions{}.host_eviction && !HasHost(s); }},
    {"--host-share without --host-memory", Verdict::kWarned, "nothing is claimed",
     [](const Settings& s) { return s.model.tiers.host_share != TierOptions{}.host_share && !HasHost(s); }},
    {"--eviction with --no-prefix-cache", Verdict::kWarned, "nothing is kept that could go",
     [](const Settings& s) { return s.engine.eviction != engine::EngineOptions{}.eviction && !s.engine.prefix_cache; }},
    {"--pin-budget with --no-prefix-cache", Verdict::kWarned, "nothing is kept that could be pinned",
     [](const Settings& s) { return s.engine.pin_budget > 0 && !s.engine.prefix_cache; }},
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
    {"--idle-timeout with --max-sessions 0", Verdict::kWarned, "no session is remembered, so none is idle",
     [](const Settings& s) { return s.engine.sessions.idle_seconds > 0 && s.engine.sessions.most == 0; }},
    {"--session-memory with --max-sessions 0", Verdict::kWarned, "no session is remembered, so none takes memory",
     [](const Settings& s) {
       return s.engine.sessions.memory.bytes != engine::SessionOptions{}.memory.bytes && s.engine.sessions.most == 0;
     }},
    {"--disk-min-free without --disk-path or --session-files", Verdict::kWarned, "nothing is written",
     [](const Settings& s) {
       return s.model.tiers.disk_min_free.bytes != TierOptions{}.disk_min_free.bytes && !HasDisk(s) &&
              s.model.tiers.session_files.empty();
     }},
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
    {"--request-sequences or --tenant-sequences above --max-sequences", Verdict::kWarned, "--max-sequences is the cap",
     [](const Settings& s) {
       return std::max(s.engine.terms.request.sequences, s.engine.terms.tenant.sequences) > s.engine.max_sequences;
     }},
    {"--tenant-queue above --max-queue", Verdict::kWarned, "--max-queue is the cap",
     [](const Settings& s) { return s.engine.terms.queue > s.engine.max_queue; }},
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

constexpr uint64_t kLeastBlocks = 32;

constexpr SizeCombination kSizeCombinations[] = {
    {"--disk-size below 32 blocks", "its files would hold hardly a block each",
     [](const TierOptions& tiers, const ModelSizes& sizes) {
       std::optional<std::string> numbers;
       const uint64_t least = kLeastBlocks * sizes.block_bytes;
       if (!tiers.disk_path.empty() && tiers.disk_size.bytes < least) {
         numbers = fmt::format("{}, where a block has {}: expected at least {}", FormatBytes(tiers.disk_size.bytes),
                               FormatBytes(sizes.block_bytes), FormatBytes(least));
       }
       return numbers;
     }},
    {"--host-memory with --disk-path, and no more than the staging of that", "the staging is part of it",
     [](const TierOptions& tiers, const ModelSizes& sizes) {
       std::optional<std::string> numbers;
       if (tiers.host_memory.bytes > 0 && tiers.host_memory.bytes <= sizes.staging_bytes) {
         numbers = fmt::format("{}, of which the disk tier alone takes {}", FormatBytes(tiers.host_memory.bytes),
                               FormatBytes(sizes.staging_bytes));
       }
       return numbers;
     }},
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

std::span<const SizeCombination> SizeCombinations() { return kSizeCombinations; }

Status CheckSizes(const TierOptions& tiers, const ModelSizes& sizes) {
  std::vector<std::string> found;
  for (const SizeCombination& combination : kSizeCombinations) {
    if (const std::optional<std::string> numbers = combination.found(tiers, sizes)) {
      found.push_back(fmt::format("{}: {} ({})", combination.options, combination.reason, *numbers));
    }
  }
  return found.empty() ? OkStatus() : Invalid(fmt::format("{}", fmt::join(found, "; ")));
}

std::string CompatibilityPage() {
  std::string page =
      "# Settings that do not go together\n\n"
      "The tables that `cachalot serve` checks when it starts (`src/cli/compatibility.cc`), as `cachalot serve "
      "--print-compatibility` prints them. Ranges of single settings are checked as well; `--help` names them.\n\n"
      "## Refused: the server does not start\n";
  AppendRows(Verdict::kRefused, &page);
  page +=
      "\n## Refused once the model is loaded\n\n"
      "Its blocks decide, and the message has the numbers. So it is with memory: weights, the activations of "
      "`--step-rows` "
      "and `--max-sequences`, and `--kv-memory` must fit together, and `--kv-memory` must hold a sequence of "
      "`--context`, which is no longer than the model's.\n"
      "\n| settings | why |\n| --- | --- |\n";
  for (const SizeCombination& combination : kSizeCombinations) {
    page += fmt::format("| {} | {} |\n", combination.options, combination.reason);
  }
  page += "\n## Warned of: the server starts, and a setting does nothing or less than it seems\n";
  AppendRows(Verdict::kWarned, &page);
  return page;
}

}  // namespace cachalot::cli
