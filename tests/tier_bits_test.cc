// A real model gives the same tokens and logprobs, to the bit, wherever the KV of its conversation comes from; each hit
// is also computed again and compared.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "engine/engine_loop.h"
#include "model_bits.h"

namespace cachalot {
namespace {

class TierBits : public ModelBits {
 protected:
  TierBits() : cold_(Load()) {
    std::string pattern = std::filesystem::temp_directory_path() / "cachalot_tier_bits_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::create_directory(folder_ + "/saved");
  }
  ~TierBits() override { std::filesystem::remove_all(folder_); }

  // A process over the folder, which reads it no faster than `rate` bytes/s; 0: as fast as it can.
  std::unique_ptr<cli::LoadedModel> Open(const char* device, uint64_t rate = 0) const {
    cli::ModelOptions options;
    options.device = device;
    options.tiers.disk_path = folder_ + "/kv";
    options.tiers.session_files = folder_ + "/saved";
    options.tiers.disk_size.bytes = uint64_t{1} << 30;
    options.tiers.disk_min_free.bytes = 0;
    options.tiers.disk_read_rate.bytes = rate;
    if (options.device == "simlink") options.tiers.host_memory.bytes = uint64_t{256} << 20;
    return Load(options, {.prefill_chunk = 64, .verify_hits = 1});
  }

  static engine::SessionAnswer Do(cli::LoadedModel& model, engine::SessionVerb verb, const std::string& session,
                                  const std::string& other = "") {
    engine::StepInput input;
    input.session_commands.push_back(
        {.id = engine::SessionCommandId(1), .verb = verb, .name = {"", session}, .other = other});
    for (Nanos last_duration{0};;) {
      const engine::StepOutput out = Step(model, std::exchange(input, {}), &last_duration);
      if (!out.session_answers.empty()) return out.session_answers.front();
    }
  }
  static void Suspend(cli::LoadedModel& model, const std::string& session) {
    const engine::SessionAnswer answer = Do(model, engine::SessionVerb::kSuspend, session);
    EXPECT_TRUE(answer.status.ok() && answer.durable) << answer.status.message();
  }
  static engine::EngineStats Stats(cli::LoadedModel& model) {
    Nanos last_duration{0};
    return Step(model, {}, &last_duration).stats;
  }

  // Its next turn finds all of its history but the last token, which was never an input.
  void GoOn(cli::LoadedModel& model, const std::string& session, const char* from) {
    Tokens& history = histories_[session];
    Tokens prompt = history;
    for (const TokenId t : Prompt(7, ++turns_)) prompt.push_back(t);
    engine::GenerateRequest request = Request(1, prompt, kOutput);
    const Scored expected = Run(*cold_, {request});
    request.session = engine::SessionName{"", session};
    uint32_t cached = 0;
    EXPECT_EQ(Run(model, {request}, 0, &cached), expected) << from;
    EXPECT_GE(cached + 1, history.size()) << from;
    history = prompt;
    for (const SampledToken& t : expected) history.push_back(t.token);
  }

  const std::unique_ptr<cli::LoadedModel> cold_;
  std::string folder_;
  std::map<std::string, Tokens> histories_;
  uint64_t turns_ = 100;
};

TEST_P(TierBits, AreTheSameFromEveryTierAfterARestartAndOnAFork) {
  for (const char* device : {"cpu", "simlink"}) {
    SCOPED_TRACE(device);
    const std::string session = std::string("s-") + device, fork = std::string("f-") + device;
    histories_[session] = Prompt(GetParam().prompt_tokens, ++turns_);
    {
      const auto model = Open(device);
      engine::GenerateRequest first = Request(1, histories_[session], 1);
      first.session = engine::SessionName{"", session};
      Run(*model, {first});
      GoOn(*model, session, "the hot pool");
      Suspend(*model, session);
      GoOn(*model, session, "the nearest lower tier");
      const engine::TierStats tiers = Stats(*model).tiers;
      EXPECT_GT(std::string(device) == "cpu" ? tiers.loaded_tokens : tiers.host_loaded_tokens, 0u);
      EXPECT_TRUE(Do(*model, engine::SessionVerb::kFork, session, fork).status.ok());
      histories_[fork] = histories_[session];
      GoOn(*model, fork, "the session that it was forked from");
      Suspend(*model, fork);
      Suspend(*model, session);
    }
    const auto model = Open(device);
    GoOn(*model, session, "the disk, after a restart");
    GoOn(*model, fork, "the disk, on a fork");
    EXPECT_GT(Stats(*model).tiers.loaded_tokens, 0u);
    EXPECT_GT(Stats(*model).hits_verified, 0u);
  }
}

TEST_P(TierBits, AreTheSameFromAFile) {
  histories_["s"] = histories_["t"] = Prompt(GetParam().prompt_tokens, ++turns_);
  {
    const auto model = Open("cpu");
    engine::GenerateRequest first = Request(1, histories_["s"], 1);
    first.session = engine::SessionName{"", "s"};
    Run(*model, {first});
    const engine::SessionAnswer saved = Do(*model, engine::SessionVerb::kSave, "s", "file");
    ASSERT_TRUE(saved.status.ok()) << saved.status.message();
  }
  std::filesystem::remove_all(folder_ + "/kv");
  const auto model = Open("cpu");
  const engine::SessionAnswer restored = Do(*model, engine::SessionVerb::kRestore, "t", "file");
  ASSERT_TRUE(restored.status.ok()) << restored.status.message();
  GoOn(*model, "t", "a file");
}

TEST_P(TierBits, AreTheSameAfterAProcessWasKilled) {
  for (const char* device : {"cpu", "simlink"}) {
    SCOPED_TRACE(device);
    const std::string session = std::string("k-") + device;
    histories_[session] = Prompt(GetParam().prompt_tokens, ++turns_);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto model = Open(device);
      engine::GenerateRequest first = Request(1, histories_[session], 1);
      first.session = engine::SessionName{"", session};
      Run(*model, {first});
      Suspend(*model, session);
      if (!HasFailure()) ::raise(SIGKILL);
      ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const auto model = Open(device);
    GoOn(*model, session, "the disk, after kill -9");
    EXPECT_GT(Stats(*model).tiers.loaded_tokens, 0u);
    EXPECT_GT(Stats(*model).hits_verified, 0u);
  }
}

// Disks ever faster, which the process measures with short prompts, until some were met by computing.
TEST_P(TierBits, AreTheSameWhereverComputingMeetsLoading) {
  const uint32_t tokens = std::max(GetParam().prompt_tokens, 500u);
  const auto requests = [&](uint64_t number) {
    return Request(1, Prompt(number == 0 ? tokens : 120, number + 1), kOutput);
  };
  {
    const auto model = Open("cpu");
    for (uint64_t number = 0; number < 4; ++number) Run(*model, {requests(number)});
    ASSERT_TRUE(engine::WriteLeftBehind(*model->engine, model->clock, std::chrono::minutes(1)));
  }
  const Scored expected = Run(*cold_, {requests(0)});
  for (const char* device : {"cpu", "simlink"}) {
    std::set<uint32_t> cuts;
    for (double rate = 1e6; rate < 1e10 && cuts.size() < 2; rate *= 1.5) {
      const auto model = Open(device, static_cast<uint64_t>(rate));
      for (uint64_t number = 1; number < 4; ++number) Run(*model, {requests(number)});
      uint32_t cached = 0;
      EXPECT_EQ(Run(*model, {requests(0)}, 0, &cached), expected) << device << ", " << rate << " bytes/s";
      if (cached > 0 && cached + 17 < tokens) cuts.insert(cached);
    }
    EXPECT_EQ(cuts.size(), 2u) << device;
  }
}

CACHALOT_FOR_BOTH_MODELS(TierBits);

}  // namespace
}  // namespace cachalot
