// Replay of engines whose sessions are saved to files and restored, over a disk that fills up, damages and fails.
#include <array>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/log.h"
#include "cli/testing/replayed_log.h"
#include "engine/testing/tiered_rig.h"

namespace cachalot::cli {
namespace {

using engine::SessionAnswer;
using engine::SessionCommand;
using engine::SessionVerb;
using engine::TieredRig;

// What clients were told of saves and restores.
struct Told {
  uint64_t saved = 0, failed = 0, full = 0;
  uint64_t restored = 0, cold = 0;  // with KV, without
  uint64_t corrupt = 0, missing = 0, busy = 0;

  void Count(const SessionAnswer& answer) {
    const Code code = answer.status.code();
    if (answer.verb == SessionVerb::kSave) {
      saved += answer.found && code == Code::kOk;
      failed += code == Code::kUnavailable;
      full += answer.status.message().find("the disk is full") != std::string::npos;
    } else if (answer.verb == SessionVerb::kRestore) {
      restored += code == Code::kOk && answer.moved_tokens > 0;
      cold += code == Code::kOk && answer.moved_tokens == 0;
      corrupt += code == Code::kCorrupt;
      missing += !answer.found;
      busy += code == Code::kOverloaded;
    }
  }
};

// Sessions that are used, saved, restored and deleted, while everything fails at some time.
class Traffic {
 public:
  explicit Traffic(uint64_t seed) : random_(seed), prompts_(random_(), 300), tiered_(OptionsOf(seed)) {}

  void Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      if (OneIn(70)) Harm();
      if (OneIn(8)) Heal();
      if (OneIn(200)) Crash();
      engine::StepInput input;
      if (OneIn(10)) input.arrivals.push_back(AnyRequest());
      if (OneIn(8)) input.session_commands.push_back(AnyCommand());
      tiered_.rig().Step(std::move(input));
    }
    Heal();
    tiered_.rig().RunToEnd();
    Crash();
  }

  // Of each process that ended.
  std::vector<const engine::EngineLogs*> logs() const {
    std::vector<const engine::EngineLogs*> logs;
    for (size_t i = 0; i + 1 < tiered_.logs().size(); ++i) logs.push_back(tiered_.logs()[i].get());
    return logs;
  }
  const Told& told() const { return told_; }

 private:
  static TieredRig::Options OptionsOf(uint64_t seed) {
    TieredRig::Options options;
    options.engine = {.max_queue = 50, .max_sequences = 6, .step_rows = 64, .prefill_chunk = 64};
    options.engine.sessions.most = 5;
    if (seed % 2 == 1) options.model.windows = {0, 24, 24, 40};
    options.device = seed % 4 < 2 ? engine::Device::kCpu : engine::Device::kSimLink;
    options.slots = 250;
    options.disk_bytes = seed % 3 == 0 ? 0 : 3 << 20;
    options.host_bytes = seed % 5 == 0 ? 1 << 16 : 0;
    options.session_store = true;
    options.logged = true;
    options.faults.seed = seed;
    options.faults.fail_share = seed % 5 == 1 ? 0 : 0.03;
    options.faults.hold_share = 0.2;
    return options;
  }

  uint64_t Below(uint64_t n) { return random_.Below(n); }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

  void Heal() {
    tiered_.files().Heal();
    tiered_.files().SetTotalBytes(uint64_t{1} << 30);
  }

  void Harm() {
    Heal();
    const std::vector<std::string> saved = tiered_.files().List("/saved").value();
    switch (Below(9)) {
      case 0: return tiered_.files().Fail({.op = FileOp::kAny, .nth = 1 + Below(4)});
      case 1:
      case 5:
      case 6: return tiered_.files().SetTotalBytes(Below(1 << 12));
      case 2: return tiered_.clock().Advance(std::chrono::seconds(Below(2000)));
      case 3: return tiered_.rig().memory().FailCopyIn(1 + Below(3));
      case 4: return tiered_.rig().memory().FailCopyOut(1 + Below(20));
      default: break;
    }
    if (saved.empty()) return;
    const std::string path = "/saved/" + saved[Below(saved.size())];
    const uint64_t bytes = tiered_.files().Contents(path).size();
    if (bytes == 0) return;
    OneIn(4) ? tiered_.files().Cut(path, Below(bytes)) : tiered_.files().FlipBit(path, Below(8 * bytes));
  }

  void Crash() {
    Heal();
    for (const auto& [id, answer] : tiered_.rig().session_answers) told_.Count(answer);
    constexpr std::array kKinds = {Unsynced::kLost, Unsynced::kKept, Unsynced::kMixed};
    tiered_.Crash(kKinds[Below(kKinds.size())], random_());
  }

  std::string AnySession() { return std::to_string(Below(8)); }

  engine::GenerateRequest AnyRequest() {
    engine::GenerateRequest request = engine::Request(++last_, prompts_.Next(), static_cast<uint32_t>(Below(6)));
    request.session = engine::SessionName{"", AnySession()};
    if (OneIn(6)) request.retention.ttl = std::chrono::seconds(1 + Below(3000));
    if (OneIn(6)) request.session_ttl_seconds = 1 + Below(3000);
    return request;
  }

  SessionCommand AnyCommand() {
    constexpr std::array kVerbs = {SessionVerb::kSave,    SessionVerb::kSave,   SessionVerb::kRestore,
                                   SessionVerb::kRestore, SessionVerb::kDelete, SessionVerb::kSuspend,
                                   SessionVerb::kResume,  SessionVerb::kFork,   SessionVerb::kShow};
    SessionCommand command{.id = engine::SessionCommandId(++last_), .verb = kVerbs[Below(kVerbs.size())]};
    command.name = {"", AnySession()};
    const bool file = command.verb == SessionVerb::kSave || command.verb == SessionVerb::kRestore;
    command.other = !file ? AnySession() : OneIn(20) ? "../file" : "file" + std::to_string(Below(4));
    return command;
  }

  SplitMix64 random_;
  engine::PromptMaker prompts_;
  TieredRig tiered_;
  uint64_t last_ = 0;
  Told told_;
};

TEST(SavedSessionsReplay, WhateverBecomesOfTheFilesTheDecisionsAreMadeAgain) {
  SetLogLevel(LogLevel::kOff);
  Told all;
  uint64_t compared = 0, others = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Traffic traffic(seed);
    traffic.Run(1500);
    for (const engine::EngineLogs* logs : traffic.logs()) {
      const ReplayedLog again = ReplayLog(logs->inputs());
      ASSERT_TRUE(again.decisions == logs->decisions()) << "seed " << seed << ", process " << compared;
      ASSERT_EQ(again.report.other_tokens, 0u);
      others += ReplayLog(logs->inputs(), "length").decisions != logs->decisions();
      ++compared;
    }
    const Told& told = traffic.told();
    all.saved += told.saved;
    all.failed += told.failed;
    all.full += told.full;
    all.restored += told.restored;
    all.cold += told.cold;
    all.corrupt += told.corrupt;
    all.missing += told.missing;
    all.busy += told.busy;
  }
  EXPECT_GT(compared, 100u);
  EXPECT_GT(others, 0u);
  EXPECT_GT(all.saved, 100u);
  EXPECT_GT(all.failed, 5u);
  EXPECT_GT(all.full, 2u);
  EXPECT_GT(all.restored, 20u);
  EXPECT_GT(all.cold, 5u);
  EXPECT_GT(all.corrupt, 5u);
  EXPECT_GT(all.missing, 5u);
  EXPECT_GT(all.busy, 5u);
}

SessionAnswer Do(TieredRig& tiered, SessionCommand command) {
  tiered.rig().Command(command);
  for (int i = 0; i < 20'000 && !tiered.rig().session_answers.contains(command.id); ++i) tiered.rig().Step();
  return tiered.rig().session_answers.at(command.id);
}

// A model with so many layers that a part has only some of the blocks.
TEST(SavedSessionsReplay, FilesOfManyPartsAreWrittenAndReadAgain) {
  TieredRig::Options options;
  options.model.windows.assign(1500, 0);
  options.disk_bytes = 0;
  options.session_store = true;
  options.logged = true;
  TieredRig tiered(std::move(options));
  engine::GenerateRequest request = engine::Request(1, engine::Tokens(1200, 1), 2);
  request.session = engine::SessionName{"", "a"};
  tiered.rig().Arrive(request);
  tiered.rig().RunToEnd();
  const SessionAnswer saved =
      Do(tiered, {.id = engine::SessionCommandId(1), .verb = SessionVerb::kSave, .name = {"", "a"}, .other = "file"});
  ASSERT_TRUE(saved.status.ok()) << saved.status.message();
  EXPECT_GT(saved.moved_bytes, 3 * tier::kArchivedKvBytes);
  tiered.Crash(Unsynced::kLost);
  const SessionAnswer restored = Do(
      tiered, {.id = engine::SessionCommandId(2), .verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"});
  ASSERT_TRUE(restored.status.ok()) << restored.status.message();
  EXPECT_EQ(restored.moved_tokens, 1201u);
  request.id = RequestId(2);
  request.session->id = "b";
  EXPECT_EQ(engine::Ask(tiered, request), 1199u);
  tiered.Crash(Unsynced::kLost);
  for (size_t process = 0; process < 2; ++process) {
    const engine::EngineLogs& logs = *tiered.logs().at(process);
    EXPECT_TRUE(ReplayLog(logs.inputs()).decisions == logs.decisions()) << process;
    EXPECT_LT(logs.inputs().size(), 100'000u) << "the KV itself is not logged";
  }
}

}  // namespace
}  // namespace cachalot::cli
