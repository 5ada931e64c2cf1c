#include "sim/input_replay.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/random.h"
#include "base/testing/fault_file_system.h"
#include "exec/device_memory.h"
#include "exec/testing/fake_executor.h"
#include "sim/sim_server.h"
#include "tier/aligned_bytes.h"
#include "tier/archive_file.h"
#include "tier/disk_store.h"
#include "tier/file_session_archive.h"
#include "tier/host_tier.h"
#include "tier/session_store.h"
#include "tier/testing/fake_transfer_engine.h"

namespace cachalot::sim {
namespace {

using engine::DecisionLog;
using engine::InputLog;
using engine::StepInput;

struct TrafficCase {
  const char* name;
  std::vector<uint32_t> windows = {0};
  std::string admission = "guaranteed";
  uint32_t slots = 60;
  uint64_t host_bytes = 0;
  const char* decides = "admit ";  // something that is decided in this case
  bool over_link = false;          // else copies take no time
  uint64_t disk_bytes = 0;
  bool sessions_last = false;  // and are saved by name
};

// An engine over the fake model under random traffic, with both logs.
class Traffic {
 public:
  Traffic(const TrafficCase& run, uint64_t seed) : random_(seed) {
    exec::FakeOptions model;
    model.windows = run.windows;
    model.limits = {.rows = 40, .logit_rows = 12};
    engine::EngineOptions options{.max_queue = 20,
                                  .max_sequences = 10,
                                  .step_rows = 40,
                                  .prefill_chunk = 24,
                                  .admission = run.admission,
                                  .pin_budget = 0.1,
                                  .tenants = std::vector<TenantTerms>(3),
                                  .decision_log = &decision_log_,
                                  .input_log = &input_log_};
    options.tenants[1].weight = 3;
    options.tenants[2].tenant.sequences = 2;
    engine::ModelFacts facts{.identity = {7}, .step_curve = StepCurve{1e-3, 1e-4, 1e-7, 1e-7, 1e-5}};
    const KvLayout layout = exec::FakeExecutor::LayoutFor(model);
    std::optional<engine::HostFacts> host_facts;
    if (run.host_bytes > 0) {
      host_ = tier::HostTier::Make(host_memory_.Resize(run.host_bytes),
                                   {layout.slot_bytes, static_cast<uint32_t>(layout.groups.size())})
                  .value();
      facts.host = host_.get();
      host_facts = engine::HostFacts{run.host_bytes, std::string(tier::CellEvictionNames().front())};
    }
    if (run.disk_bytes > 0) {
      OpenStore(run.disk_bytes);
      logged_store_ = engine::MakeLoggedStore(*store_, input_log_);
      facts.store = logged_store_.get();
    }
    if (run.sessions_last) {
      OpenSessions();
      facts.session_store = logged_sessions_.get();
      facts.archive = logged_archive_.get();
    }
    memory_ = run.over_link ? exec::MakeSimLinkMemory(layout.slot_bytes, run.slots,
                                                      {.bytes_per_second = 1e8, .latency = Nanos(1000)}, clock_)
                                  .value()
                            : exec::MakeCpuMemory(layout.slot_bytes, run.slots).value();
    executor_.emplace(model, *memory_, &clock_);
    logged_memory_ = engine::MakeLoggedMemory(*memory_, input_log_);
    engine_.emplace(options, *executor_, *logged_memory_, sampler_, facts);
    facts_ = engine::FactsOf(options, facts, *executor_, *memory_);
    facts_.host = host_facts;
    input_log_.Begin(facts_);
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) Step(AnyInput());
    engine_->Drain();
    Step(AnyInput());
    while (!engine_->idle()) Step({});
    EXPECT_TRUE(executor_->violations().empty()) << executor_->violations().front();
    input_log_.End();
  }

  // A session goes into a file, and comes back under another name.
  void SaveAndRestore() {
    engine::GenerateRequest request = AnyRequest();
    request.prompt.assign(70, 5);
    request.max_tokens = 4;
    request.n = 1;
    request.session = engine::SessionName{"owner", "saved"};
    request.session_ttl_seconds = 0;
    request.retention = {};
    StepInput input;
    input.arrivals.push_back(std::move(request));
    Step(std::move(input));
    while (!engine_->idle()) Step({});
    for (const auto& [verb, name] :
         {std::pair(engine::SessionVerb::kSave, "saved"), std::pair(engine::SessionVerb::kRestore, "restored")}) {
      engine::SessionCommand command = AnyCommand();
      command.verb = verb;
      command.name.id = name;
      command.other = "file";
      input.session_commands.assign(1, std::move(command));
      Step(std::move(input));
      for (int i = 0; i < 20; ++i) Step({});
    }
    EXPECT_NE(decisions_.find("session command 1 done moved 73"), std::string::npos);
    EXPECT_NE(decisions_.find("session command 2 done moved 73"), std::string::npos);
  }

  const engine::InputFacts& facts() const { return facts_; }
  const std::string& inputs() const { return inputs_; }
  const std::string& decisions() const { return decisions_; }

 private:
  void OpenStore(uint64_t bytes) {
    const tier::DiskTierOptions disk{
        .folder = "/disk", .limit_bytes = bytes, .segment_bytes = 512 << 10, .lock = false};
    const tier::TransferOptions transfers{.limits = {.in_flight_bytes = {1 << 20, 1 << 20}, .running_jobs = {2, 1}},
                                          .threads = 3};
    const tier::FakeTransferFaults slow{.least_latency = Nanos(500), .most_latency = Nanos(20'000)};
    store_ = std::make_unique<tier::DiskStore>(
        tier::DiskTier::Open(files_, clock_, disk).value(),
        std::make_unique<tier::FakeTransferEngine>(staging_.Resize(2 << 20), transfers, slow, clock_), clock_);
  }

  void OpenSessions() {
    const auto transfers = [this](auto) -> Result<std::unique_ptr<tier::TransferEngine>> {
      const tier::TransferOptions options{.limits = {.in_flight_bytes = {1, 1}}, .threads = 1};
      const tier::FakeTransferFaults slow{.least_latency = Nanos(500), .most_latency = Nanos(20'000)};
      return std::unique_ptr<tier::TransferEngine>(new tier::FakeTransferEngine({}, options, slow, clock_));
    };
    const auto entropy = [] { return uint64_t{7}; };
    session_store_ =
        tier::SessionStore::Open(files_, clock_, {.folder = "/sessions", .lock = false, .entropy = entropy}, transfers)
            .value();
    archive_ = tier::FileSessionArchive::Open(
                   files_, clock_, {.folder = "/saved", .key_file = "/server.key", .entropy = entropy}, transfers)
                   .value();
    logged_sessions_ = engine::MakeLoggedSessions(*session_store_, input_log_);
    logged_archive_ = engine::MakeLoggedArchive(*archive_, input_log_);
  }

  uint32_t Below(uint64_t n) { return static_cast<uint32_t>(random_.Below(n)); }

  void Step(StepInput input) {
    clock_.Advance(Nanos(1 + Below(5'000'000)));
    input.now = clock_.Now();
    input.unix_seconds = static_cast<uint64_t>(clock_.UnixSeconds());
    engine_->Step(std::move(input));
  }

  StepInput AnyInput() {
    StepInput input;
    input.last_duration = Nanos(Below(200'000'000));
    if (last_id_ % 2 == 1) input.last_stalled = input.last_duration / 3;
    input.waited = Nanos(Below(3) == 0 ? Below(1000) : 0);
    while (Below(5) < 2) input.arrivals.push_back(AnyRequest());
    if (last_id_ > 0 && Below(6) == 0) input.cancels.push_back(RequestId(1 + Below(last_id_)));
    if (Below(40) == 0) executor_->FailRun(1, Internal("injected"));
    if (Below(20) == 0) input.inquiries.push_back(AnyInquiry());
    if (Below(6) == 0) input.session_commands.push_back(AnyCommand());
    return input;
  }

  // Most begin as an earlier one.
  std::vector<TokenId> AnyPrompt() {
    std::vector<TokenId> prompt;
    if (!prompts_.empty() && Below(4) > 0) {
      const std::vector<TokenId>& other = prompts_[Below(prompts_.size())];
      prompt.assign(other.begin(), other.begin() + Below(other.size()));
    }
    for (uint32_t more = 1 + Below(60); more > 0 && prompt.size() < 120; --more) prompt.push_back(Below(900));
    if (prompts_.size() < 40) prompts_.emplace_back();
    return prompts_[Below(prompts_.size())] = prompt;
  }

  engine::GenerateRequest AnyRequest() {
    engine::GenerateRequest request;
    request.id = RequestId(++last_id_);
    request.prompt = AnyPrompt();
    request.max_tokens = Below(Below(5) == 0 ? 200 : 40);
    request.n = 1 + Below(3);
    request.sampling.temperature = Below(2) == 0 ? 0.0f : 1.0f;
    request.sampling.seed = random_();
    request.sampling.logit_bias = {{Below(100), 0.5f}};
    if (Below(4) == 0) request.prompt_logprobs = 1;
    if (Below(4) == 0) request.end_tokens = {Below(1000)};
    if (Below(3) == 0) request.stop = EndAfter(1 + Below(10));
    request.scope = {.salt = {.high = 0, .low = Below(2)}, .public_tokens = Below(2) * 20};
    request.tenant = TenantId(Below(3));
    if (Below(3) == 0) request.session = engine::SessionName{"owner", std::to_string(Below(4))};
    request.session_ttl_seconds = Below(2) * 3;
    if (Below(4) == 0) request.returns.in = Nanos(Below(1'000'000));
    request.retention.priority = static_cast<RetentionPriority>(Below(3));
    if (Below(3) == 0) request.retention.ttl = Nanos(1000 * (1 + Below(200)));
    if (Below(4) == 0) request.retention.pin = Nanos(1000 * (1 + Below(100'000)));
    request.retention.scrub = Below(4) == 0;
    return request;
  }

  engine::Inquiry AnyInquiry() {
    engine::Inquiry inquiry{engine::InquiryId(Below(1000)), static_cast<engine::InquiryKind>(Below(4)), {}};
    if (inquiry.kind == engine::InquiryKind::kProbe) inquiry.requests.emplace_back().prompt = AnyPrompt();
    return inquiry;
  }

  engine::SessionCommand AnyCommand() {
    engine::SessionCommand command;
    command.id = engine::SessionCommandId(++last_command_);
    command.verb = static_cast<engine::SessionVerb>(Below(10));
    command.name = {"owner", std::to_string(Below(4))};
    command.pinned = Below(2) == 0;
    command.other = std::to_string(Below(6));
    command.prompt = AnyPrompt();
    return command;
  }

  SplitMix64 random_;
  std::vector<std::vector<TokenId>> prompts_;
  engine::InputFacts facts_{.options = {}, .layout = {}, .step_curve = {}, .host_rate = {}, .host = {}};
  std::string inputs_, decisions_;
  InputLog input_log_{[this](const std::string& bytes) { inputs_ += bytes; }};
  DecisionLog decision_log_{[this](const std::string& lines) { decisions_ += lines; }};
  tier::AlignedBytes host_memory_;
  std::unique_ptr<tier::HostTier> host_;
  ManualClock clock_{1'000'000};
  FaultFileSystem files_;
  tier::AlignedBytes staging_;
  std::unique_ptr<tier::DiskStore> store_;
  std::unique_ptr<tier::KvStore> logged_store_;
  std::unique_ptr<tier::SessionStore> session_store_;
  std::unique_ptr<tier::FileSessionArchive> archive_;
  std::unique_ptr<tier::DurableSessions> logged_sessions_;
  std::unique_ptr<tier::SessionArchive> logged_archive_;
  std::unique_ptr<exec::DeviceMemory> memory_, logged_memory_;
  std::optional<exec::FakeExecutor> executor_;
  exec::Sampler sampler_ = exec::FakeSampler();
  std::optional<engine::Engine> engine_;
  uint64_t last_id_ = 0;
  uint64_t last_command_ = 0;
};

Result<InputReplayReport> ReplayText(const std::string& inputs, const std::optional<OtherPolicy>& other,
                                     std::string* decisions) {
  decisions->clear();
  CACHALOT_ASSIGN_OR_RETURN(engine::InputLogReader log, engine::InputLogReader::Open(engine::SourceOf(inputs)));
  return ReplayInputs(log, other, [decisions](const std::string& lines) { *decisions += lines; });
}

class InputReplay : public testing::TestWithParam<TrafficCase> {};

TEST_P(InputReplay, MakesTheDecisionsThatWereMade) {
  bool decides = false;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Traffic traffic(GetParam(), seed);
    traffic.Run(400);
    decides |= traffic.decisions().find(GetParam().decides) != std::string::npos;
    for (const char* word : {"admit ", "evict ", "run ", "finish ", "refuse ", " stop ", " cancelled ", " error "}) {
      EXPECT_NE(traffic.decisions().find(word), std::string::npos) << word;
    }
    std::string again;
    const auto report = ReplayText(traffic.inputs(), {}, &again);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_TRUE(report->damage.ok()) << report->damage.message();
    ASSERT_TRUE(again == traffic.decisions()) << "seed " << seed;
    EXPECT_EQ(report->other_tokens, 0u);
    EXPECT_GT(report->tokens, 500u);
  }
  EXPECT_TRUE(decides) << GetParam().decides;
}

TEST_P(InputReplay, MakesOthersWithAnotherPolicy) {
  Traffic traffic(GetParam(), 3);
  traffic.Run(400);
  std::string others;
  const auto report = ReplayText(traffic.inputs(), OtherPolicy{.eviction = "length"}, &others);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(others == traffic.decisions());
}

INSTANTIATE_TEST_SUITE_P(
    All, InputReplay,
    testing::Values(
        TrafficCase{"Full"}, TrafficCase{"Sliding", {0, 24, 24, 40}},
        TrafficCase{"Expected", {0}, "expected", 30, 0, "preempt "},
        TrafficCase{"HostMemory", {0}, "guaranteed", 24, 1 << 20, "evict "},
        TrafficCase{"HostMemoryOverALink", {0}, "guaranteed", 24, 1 << 20, "resume ", true},
        TrafficCase{"SlidingOverALink", {0, 24, 24, 40}, "expected", 60, 1 << 20, "evict ", true},
        TrafficCase{"Disk", {0}, "guaranteed", 24, 0, "resume ", false, 16 << 20},
        TrafficCase{"LastingSessions", {0}, "guaranteed", 60, 0, "session command ", false, 0, true},
        TrafficCase{"AllTiersOverALink", {0, 24, 24, 40}, "expected", 60, 1 << 20, "resume ", true, 16 << 20, true}),
    [](const auto& info) { return info.param.name; });

// With bytes changed at random, and the checksums of all frames made right.
std::string Damaged(const std::string& inputs, SplitMix64& random) {
  constexpr size_t kMagicBytes = 8, kFrameHead = 8;
  std::string bytes = inputs;
  std::vector<std::pair<size_t, size_t>> frames;  // where payloads begin and end
  for (size_t at = kMagicBytes; at < bytes.size(); at = frames.back().second) {
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= size_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
    frames.push_back({at + kFrameHead, at + kFrameHead + size});
  }
  for (uint64_t changes = 1 + random.Below(3); changes > 0; --changes) {
    const auto [begin, end] = frames[random.Below(4) == 0 ? 0 : random.Below(frames.size())];
    const size_t at = begin + random.Below(end - begin);
    bytes[at] = static_cast<char>(random.Below(2) == 0 ? random() : bytes[at] ^ (1 << random.Below(8)));
    const uint32_t checksum = Crc32c(std::as_bytes(std::span(bytes).subspan(begin, end - begin)));
    for (size_t i = 0; i < 4; ++i) bytes[begin - 4 + i] = static_cast<char>(checksum >> (8 * i));
  }
  return bytes;
}

TEST(InputReplayErrors, WhateverALogSaysIsRefusedOrReplayed) {
  SetLogLevel(LogLevel::kOff);
  Traffic traffic({"AllTiers", {0}, "expected", 24, 1 << 20, "", false, 16 << 20, true}, 2);
  traffic.SaveAndRestore();
  traffic.Run(40);
  SplitMix64 random(9);
  int refused = 0, cut_off = 0, replayed = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string bytes = Damaged(traffic.inputs(), random);
    Result<engine::InputLogReader> log = engine::InputLogReader::Open(engine::SourceOf(bytes));
    if (!log.ok()) {
      EXPECT_NE(log.status().message().find("offset"), std::string::npos) << log.status().message();
      ++refused;
      continue;
    }
    if (log->facts().slots > 4096) continue;
    std::optional<OtherPolicy> other;
    if (i % 3 == 0) other = OtherPolicy{.eviction = "length"};
    const auto report = ReplayInputs(*log, other, [](const std::string&) {});
    replayed += report.ok() ? 1 : 0;
    cut_off += report.ok() && !report->damage.ok() ? 1 : 0;
  }
  EXPECT_GT(refused, 10);
  EXPECT_GT(cut_off, 10);
  EXPECT_GT(replayed, 100);
}

TEST(InputReplayAsItComes, DecisionsAreMadeBeforeTheLogEnds) {
  Traffic traffic({"Full"}, 1);
  traffic.Run(100);
  size_t given = 0, first_decision = 0;
  const auto pieces = [&](uint64_t most, std::string* bytes) -> Result<bool> {
    const std::string_view next = std::string_view(traffic.inputs()).substr(given, std::min<uint64_t>(most, 100));
    *bytes += next;
    given += next.size();
    return !next.empty();
  };
  Result<engine::InputLogReader> log = engine::InputLogReader::Open(pieces);
  ASSERT_TRUE(log.ok()) << log.status().message();
  std::string again;
  const auto report = ReplayInputs(*log, {}, [&](const std::string& lines) {
    if (again.empty()) first_decision = given;
    again += lines;
  });
  ASSERT_TRUE(report.ok() && report->damage.ok());
  EXPECT_TRUE(again == traffic.decisions());
  EXPECT_LT(first_decision, given / 4);
}

// Of which the last step comes again and again.
TEST(InputReplayAsItComes, ALogWithoutEndIsNotHeld) {
  std::string facts;
  engine::InputLog log([&](const std::string& more) { facts += more; });
  Traffic traffic({"Full"}, 1);
  log.Begin(traffic.facts());
  std::string step;
  engine::InputLog steps([&](const std::string& more) { step += more; });
  steps.BeginStep({.now = Nanos(1)});
  steps.EndStep({});
  const auto endless = [&, begun = false](uint64_t, std::string* bytes) mutable -> Result<bool> {
    *bytes += std::exchange(begun, true) ? step : facts;
    return true;
  };
  engine::InputLogReader reader = engine::InputLogReader::Open(endless).value();
  const auto report =
      ReplayInputs(reader, OtherPolicy{.eviction = "lru", .most_log_bytes = 1 << 20}, [](const std::string&) {});
  EXPECT_EQ(report.status().code(), Code::kInvalid);
  EXPECT_NE(report.status().message().find("at most 1048576 bytes"), std::string::npos) << report.status().message();
  EXPECT_LT(reader.offset(), 2u << 20);
}

TEST(InputReplayErrors, NothingIsReplayedAfterATokenThatNoOpenRequestAskedFor) {
  std::string inputs;
  engine::InputLog log([&](const std::string& more) { inputs += more; });
  log.Begin(Traffic({"Full"}, 1).facts());
  for (int i = 1; i <= 3; ++i) {
    engine::StepOutput output;
    if (i == 2) output.tokens.push_back({.id = RequestId(999)});
    log.BeginStep({.now = Nanos(i)});
    log.EndStep(output);
  }
  log.End();
  for (const auto& other : {std::optional<OtherPolicy>(), std::optional<OtherPolicy>({.eviction = "lru"})}) {
    std::string text;
    const auto report = ReplayText(inputs, other, &text);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->damage.code(), Code::kCorrupt);
    EXPECT_EQ(report->steps, 1u);
  }
}

TEST(InputReplayErrors, AnUnknownPolicyIsNamed) {
  Traffic traffic({"Full"}, 1);
  traffic.Run(3);
  std::string text;
  const auto report = ReplayText(traffic.inputs(), OtherPolicy{.eviction = "newest"}, &text);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("newest"), std::string::npos) << report.status().message();
}

}  // namespace
}  // namespace cachalot::sim
