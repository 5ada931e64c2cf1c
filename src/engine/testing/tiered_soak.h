// RunTieredSoak sends random work to an engine over a disk tier on which everything fails at some time: operations of
// the file system, single bits, files cut short, the disk full, transfers late, out of order and failing, copies over a
// link that fail, clocks that jump, crashes. Whoever finishes must have got exactly the model's tokens, and what was
// acknowledged of sessions holds after a crash.
// Threads:   one.
// Ownership: none.
// Invariant: equal runs do the same.
// Cost:      a fraction of a millisecond per step.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {

struct TieredSoakRun {
  uint64_t seed = 0;
  uint64_t steps = 1000;
  uint32_t slots = 160;
  uint64_t host_bytes = 0;
  uint64_t staging_bytes = 1 << 20;
  bool session_store = false;
  double verify_hits = 0;
  std::function<void(const EngineLogs& logs)> on_logs = {};  // of each process that ended; nothing: none are kept
};

struct TieredSoakReport {
  uint64_t operations = 0;  // arrivals, cancels, commands, faults, crashes and steps
  uint64_t compared = 0;    // answers
  uint64_t crashes = 0;
  uint64_t loaded_tokens = 0;
  uint64_t failed_loads = 0;
  uint64_t host_tokens = 0;  // loaded from there
  uint64_t hits_verified = 0;
  uint64_t suspends_held = 0;  // sessions that had been suspended, after crashes
  uint64_t deletes_held = 0;

  TieredSoakReport& operator+=(const TieredSoakReport& more) {
    operations += more.operations;
    compared += more.compared;
    crashes += more.crashes;
    loaded_tokens += more.loaded_tokens;
    failed_loads += more.failed_loads;
    host_tokens += more.host_tokens;
    hits_verified += more.hits_verified;
    suspends_held += more.suspends_held;
    deletes_held += more.deletes_held;
    return *this;
  }
};

// With other parts of the stack for each seed.
inline TieredSoakRun AnyTieredSoak(uint64_t seed, uint64_t steps) {
  return {.seed = seed,
          .steps = steps,
          .host_bytes = seed % 3 == 0 ? 0 : uint64_t{1} << 16,
          .session_store = seed % 5 != 1,
          .verify_hits = seed % 7 == 2 ? 0.5 : 0};
}

class TieredSoak {
 public:
  explicit TieredSoak(const TieredSoakRun& run)
      : run_(run), random_(run.seed), prompts_(random_(), 300), tiered_(OptionsOf(run)) {
    HarmLink();
  }

  TieredSoakReport Go() {
    for (uint64_t step = 0; step < run_.steps && !testing::Test::HasFailure(); ++step) Step();
    Heal();
    rig().RunToEnd();
    CompareAll();
    tiered_.clock().Advance(std::chrono::seconds(2));  // what could not be written is tried again
    rig().WriteAll();
    const EngineStats stats = rig().Step().stats;
    EXPECT_EQ(stats.in_use_slots(), 0u);
    EXPECT_EQ(stats.promised_slots, 0u);
    EXPECT_EQ(tiered_.store().stats().transfers, 0u);
    if (run_.host_bytes > 0) {
      EXPECT_EQ(stats.tiers.host_moving_bytes, 0u);
      EXPECT_EQ(tiered_.host().Violations(), std::vector<std::string>());
    }
    CountLoads();
    if (run_.on_logs || run_.session_store) Crash();
    CheckSessions();
    return report_;
  }

 private:
  static constexpr uint64_t kDiskBytes = 3 << 20;
  static constexpr uint32_t kSessions = 6;

  static TieredRig::Options OptionsOf(const TieredSoakRun& run) {
    const uint64_t seed = run.seed;
    TieredRig::Options options;
    options.engine = {.max_queue = 50, .max_sequences = 6, .step_rows = 64, .prefill_chunk = 64};
    options.engine.verify_hits = run.verify_hits;
    options.model.block_tokens = 16;
    if (seed % 2 == 1) options.model.windows = {0, 24, 24, 40};
    options.slots = run.slots;
    options.device = seed % 4 < 2 ? Device::kCpu : Device::kSimLink;
    options.disk_bytes = kDiskBytes;
    options.host_bytes = run.host_bytes;
    options.staging_bytes = run.staging_bytes;
    options.session_store = run.session_store;
    options.logged = run.on_logs != nullptr;
    options.packed_element_bytes = seed % 3 == 0 ? 2 : 0;
    options.faults.seed = seed;
    if (seed % 5 != 0) options.faults.fail_share = 0.05;
    options.faults.hold_share = 0.2;
    return options;
  }

  Rig& rig() { return tiered_.rig(); }
  uint64_t Below(uint64_t n) { return random_.Below(n); }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

  void Heal() {
    tiered_.files().Heal();
    tiered_.files().SetTotalBytes(uint64_t{1} << 30);
    EXPECT_LE(tiered_.Occupied(), kDiskBytes);
  }

  void Step() {
    if (OneIn(12)) Harm();
    if (OneIn(8)) Heal();
    if (OneIn(150)) return Restart();
    StepInput input;
    while (OneIn(4)) {
      GenerateRequest request = AnyRequest();
      requests_.emplace(request.id, request);
      input.arrivals.push_back(std::move(request));
    }
    if (!requests_.empty() && OneIn(8)) input.cancels.push_back(RequestId(1 + Below(last_id_)));
    if (OneIn(12)) input.session_commands.push_back(AnyCommand());
    if (OneIn(100)) rig().executor().FailRun(1, Internal("injected"));
    const bool clear = OneIn(200);
    if (clear) input.inquiries.push_back({InquiryId(1), InquiryKind::kClear, {}});
    report_.operations += 1 + input.arrivals.size() + input.cancels.size() + input.session_commands.size() + clear;
    NoteSessions(input);
    const StepOutput out = rig().Step(std::move(input));
    for (const Rejection& rejection : out.rejections) {
      EXPECT_NE(rejection.reason, RejectReason::kPoisoned) << rejection.message;
      requests_.erase(rejection.id);
    }
    for (const SessionAnswer& answer : out.session_answers) NoteSessions(answer);
  }

  // Copies of some processes fail now and then.
  void HarmLink() {
    if (rig().memory().asynchronous() && OneIn(2)) rig().memory().FailSome(0.02, random_());
  }

  void Harm() {
    Heal();
    ++report_.operations;
    const std::vector<std::string> segments = tiered_.Segments();
    switch (Below(8)) {
      case 0: return tiered_.files().Fail({.op = FileOp::kAny, .nth = 1 + Below(10)});
      case 1: return tiered_.files().Fail({.op = FileOp::kRead, .nth = 1 + Below(3)});
      case 2: return tiered_.files().Fail({.op = FileOp::kOpen, .onwards = true});  // permission lost
      case 3: return tiered_.files().Fail({.op = FileOp::kWrite, .onwards = true, .code = Code::kOverloaded});
      case 4: return tiered_.files().SetTotalBytes(tiered_.Occupied() + Below(1 << 20));  // by others
      case 5: return tiered_.clock().Advance(Nanos(static_cast<Nanos::rep>(Below(3'600) * 1'000'000'000)));
      case 6: return tiered_.clock().JumpWallClock(static_cast<int64_t>(Below(200'000)) - 100'000);
      default: break;
    }
    if (segments.empty()) return;
    const std::string& path = segments[Below(segments.size())];
    const uint64_t bytes = tiered_.files().Contents(path).size();
    if (bytes == 0) return;
    if (OneIn(4)) return tiered_.files().Cut(path, Below(bytes));
    tiered_.files().FlipBit(path, Below(8 * bytes));
  }

  void Restart() {
    Heal();
    CompareAll();
    CountLoads();
    ++report_.operations;
    ++report_.crashes;
    Crash();
    CheckSessions();
  }

  void Crash() {
    constexpr std::array kKinds = {Unsynced::kLost, Unsynced::kKept, Unsynced::kMixed};
    tiered_.Crash(kKinds[Below(kKinds.size())], random_());
    if (run_.on_logs) run_.on_logs(*tiered_.logs().at(tiered_.logs().size() - 2));
    commands_.clear();
    overtaken_.clear();
    HarmLink();
  }

  // Whatever else may still make, change or end a session leaves nothing promised of it.
  void NoteSessions(const StepInput& input) {
    const auto changes = [&](const std::string& session) {
      if (const auto held = suspended_.find(session); held != suspended_.end()) held->second = 0;
      deleted_.erase(session);
      Overtake(session);
    };
    for (const GenerateRequest& request : input.arrivals) {
      if (request.session) changes(request.session->id);
    }
    for (const SessionCommand& command : input.session_commands) {
      if (command.verb == SessionVerb::kDelete) {
        suspended_.erase(command.name.id);
        Overtake(command.name.id);
      }
      if (command.verb == SessionVerb::kFork) changes(command.other);
      if (command.verb == SessionVerb::kRestore) changes(command.name.id);
      commands_.emplace(command.id, command);
    }
  }
  // Whatever is answered of it from now on may be of what it was, or of what it becomes.
  void Overtake(const std::string& session) {
    for (const auto& [id, command] : commands_) {
      if (command.name.id == session) overtaken_.insert(id);
    }
  }

  void NoteSessions(const SessionAnswer& answer) {
    const SessionCommand command = commands_.at(answer.id);
    commands_.erase(answer.id);
    if (overtaken_.erase(answer.id) > 0) return;
    if (!answer.status.ok() || !answer.found || !answer.durable) return;
    const std::string& session = command.name.id;
    if (command.verb == SessionVerb::kSuspend && !MayChange(session)) {
      suspended_[session] = answer.sessions.front().tokens;
    }
    if (command.verb == SessionVerb::kDelete && !MayChange(session)) deleted_.insert(session);
  }

  // Some request or command that is not answered yet.
  bool MayChange(const std::string& session) {
    const auto open = [&](const auto& item) {
      const GenerateRequest& request = item.second;
      if (!request.session || request.session->id != session) return false;
      for (uint32_t choice = 0; choice < request.n; ++choice) {
        if (!rig().finishes.contains({request.id, choice})) return true;
      }
      return false;
    };
    const auto other = [&](const auto& item) {
      const SessionCommand& command = item.second;
      return (command.name.id == session &&
              (command.verb == SessionVerb::kDelete || command.verb == SessionVerb::kRestore)) ||
             (command.other == session && command.verb == SessionVerb::kFork);
    };
    return std::ranges::any_of(requests_, open) || std::ranges::any_of(commands_, other);
  }

  // After a crash.
  void CheckSessions() {
    if (!run_.session_store) return;
    const SessionCommandId id(++last_command_);
    rig().Command({.id = id, .verb = SessionVerb::kList, .limit = kMostListedSessions});
    while (!rig().session_answers.contains(id)) rig().Step();
    std::map<std::string, uint64_t> there;
    for (const SessionView& session : rig().session_answers.at(id).sessions) there[session.name.id] = session.tokens;
    for (const auto& [session, tokens] : suspended_) {
      EXPECT_TRUE(there.contains(session)) << session << " was suspended";
      EXPECT_TRUE(tokens == 0 || there[session] == tokens) << session << ": " << there[session] << " of " << tokens;
      ++report_.suspends_held;
    }
    for (const std::string& session : deleted_) {
      EXPECT_FALSE(there.contains(session)) << session << " was deleted";
      ++report_.deletes_held;
    }
  }

  GenerateRequest AnyRequest() {
    GenerateRequest request = Request(++last_id_, prompts_.Next(), static_cast<uint32_t>(Below(12)));
    request.sampling.temperature = OneIn(2) ? 0.0f : 1.0f;
    request.sampling.seed = random_();
    request.scope.salt.low = Below(2);
    request.n = 1 + OneIn(6);
    if (OneIn(3)) request.session = SessionName{"", std::to_string(Below(kSessions))};
    if (OneIn(4)) request.retention.ttl = std::chrono::seconds(Below(40));
    request.retention.scrub = OneIn(12);
    return request;
  }

  SessionCommand AnyCommand() {
    SessionCommand command{.id = SessionCommandId(++last_command_)};
    constexpr std::array kVerbs = {
        SessionVerb::kList,   SessionVerb::kShow, SessionVerb::kSuspend, SessionVerb::kResume,  SessionVerb::kPin,
        SessionVerb::kDelete, SessionVerb::kFork, SessionVerb::kSave,    SessionVerb::kRestore, SessionVerb::kPrefetch};
    command.verb = kVerbs[Below(kVerbs.size())];
    command.name = {"", std::to_string(Below(kSessions))};
    command.pinned = OneIn(2);
    if (command.verb == SessionVerb::kPrefetch) command.prompt = prompts_.Next();
    if (command.verb == SessionVerb::kFork) command.other = std::to_string(Below(kSessions));
    if (command.verb == SessionVerb::kSave || command.verb == SessionVerb::kRestore) {
      command.other = "file" + std::to_string(Below(3));
    }
    return command;
  }

  // Those that have ended, or got as far.
  void CompareAll() {
    for (const auto& [id, request] : requests_) {
      for (uint32_t choice = 0; choice < request.n; ++choice) Compare(request, choice);
    }
    requests_.clear();
  }

  void Compare(const GenerateRequest& request, uint32_t choice) {
    const std::pair key(request.id, choice);
    const std::vector<TokenId> expected = Expected(rig().executor(), request, choice);
    const std::vector<TokenId>& got = rig().outputs[key];
    const auto finish = rig().finishes.find(key);
    const bool whole = finish != rig().finishes.end() &&
                       (finish->second.reason == FinishReason::kStop || finish->second.reason == FinishReason::kLength);
    ASSERT_LE(got.size(), expected.size());
    EXPECT_TRUE(!whole || got.size() == expected.size()) << request.id.value << "." << choice;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin())) << request.id.value << "." << choice;
    ++report_.compared;
  }

  void CountLoads() {
    const EngineStats stats = rig().Step().stats;
    const TierStats& tiers = stats.tiers;
    report_.loaded_tokens += tiers.loaded_tokens;
    report_.failed_loads += tiers.failed_loads;
    report_.host_tokens += tiers.host_loaded_tokens;
    report_.hits_verified += stats.hits_verified;
  }

  const TieredSoakRun run_;
  SplitMix64 random_;
  PromptMaker prompts_;
  TieredRig tiered_;
  std::map<RequestId, GenerateRequest> requests_;
  uint64_t last_id_ = 0;
  uint64_t last_command_ = 0;
  std::map<SessionCommandId, SessionCommand> commands_;  // not answered yet
  std::set<SessionCommandId> overtaken_;                 // of them
  std::map<std::string, uint64_t> suspended_;            // for good: tokens, 0 where they may have changed since
  std::set<std::string> deleted_;                        // for good, and not begun again
  TieredSoakReport report_;
};

inline TieredSoakReport RunTieredSoak(const TieredSoakRun& run) { return TieredSoak(run).Go(); }

}  // namespace cachalot::engine
