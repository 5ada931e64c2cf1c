// The engine's thread over a real folder and a real transfer thread.
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/file_system.h"
#include "base/mutex.h"
#include "engine/engine_loop.h"
#include "engine/testing/engine_rig.h"
#include "tier/disk_store.h"

namespace cachalot::engine {
namespace {

class TiersLoop : public testing::Test {
 protected:
  TiersLoop() {
    std::string pattern = std::filesystem::temp_directory_path() / "cachalot_tiers_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~TiersLoop() override { std::filesystem::remove_all(folder_); }

  // Serves requests of these seeds, all at once, and says how many tokens came from disk.
  uint64_t Serve(uint64_t begin, uint64_t end) {
    auto store = tier::DiskStore::Open(*files_, clock_, Options(), slot_bytes_);
    EXPECT_TRUE(store.ok()) << store.status().message();
    auto memory = exec::MakeCpuMemory(slot_bytes_, 600).value();
    exec::FakeExecutor executor({}, *memory);
    exec::Sampler sampler = exec::FakeSampler();
    const StepCurve slow = {10, 0.1, 0, 0, 0};  // so that what is on disk is waited for, however busy the machine is
    Engine engine({}, executor, *memory, sampler, {.identity = {1}, .step_curve = slow, .store = store->get()});
    uint64_t loaded = 0;
    {
      EngineLoop loop(engine, clock_, [&](StepOutput out) { Take(std::move(out), &loaded); });
      for (uint64_t seed = begin; seed < end; ++seed) loop.Submit(Request(seed, Tokens(300, seed), 10));
      {
        MutexLock lock(mutex_);
        while (finished_ < end - begin) changed_.Wait(mutex_);
        finished_ = 0;
      }
      loop.Drain();
    }
    EXPECT_TRUE(WriteLeftBehind(engine, clock_, std::chrono::minutes(1)));
    EXPECT_TRUE((*store)->Close().ok());
    for (uint64_t seed = begin; seed < end; ++seed) {
      EXPECT_EQ(outputs_[seed], Expected(executor, Request(seed, Tokens(300, seed), 10), 0)) << seed;
    }
    outputs_.clear();
    EXPECT_TRUE(executor.violations().empty());
    return loaded;
  }

 private:
  tier::DiskTierOptions Options() const {
    tier::DiskTierOptions options;
    options.folder = folder_;
    options.limit_bytes = 64 << 20;
    return options;
  }

  void Take(StepOutput out, uint64_t* loaded) {
    MutexLock lock(mutex_);
    *loaded = out.stats.tiers.loaded_tokens;
    for (const TokenEvent& event : out.tokens) outputs_[event.id.value].push_back(event.token.token);
    finished_ += out.finishes.size();
    changed_.NotifyAll();
  }

  const uint64_t slot_bytes_ = exec::FakeExecutor::LayoutFor({}).slot_bytes;
  std::string folder_;
  SteadyClock clock_;
  const std::unique_ptr<FileSystem> files_ = DiskFileSystem();
  Mutex mutex_;
  CondVar changed_;
  uint64_t finished_ = 0;
  std::map<uint64_t, std::vector<TokenId>> outputs_;
};

TEST_F(TiersLoop, WhatOneProcessLeavesTheNextOneLoads) {
  EXPECT_EQ(Serve(1, 13), 0u);
  EXPECT_GE(Serve(1, 13), 288u);  // whole blocks; later ones may find that computing is sooner
  EXPECT_GE(Serve(7, 19), 288u);
}

}  // namespace
}  // namespace cachalot::engine
