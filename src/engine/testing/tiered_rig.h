// TieredRig is a Rig over a disk tier in memory, with transfers that are late, out of order and fail, and restarts.
// Threads:   one.
// Ownership: owns all parts.
// Invariant: equal inputs give equal outputs.
// Cost:      as Rig.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/testing/fault_file_system.h"
#include "engine/testing/engine_rig.h"
#include "tier/aligned_bytes.h"
#include "tier/kv_store.h"
#include "tier/testing/fake_transfer_engine.h"

namespace cachalot::engine {

class TieredRig {
 public:
  struct Options {
    EngineOptions engine;
    exec::FakeOptions model;
    uint32_t slots = 256;
    Device device = Device::kCpu;
    uint64_t disk_bytes = 16 << 20;
    tier::FakeTransferFaults faults;
  };

  explicit TieredRig(Options options) : options_(std::move(options)) {
    options_.faults.least_latency = Nanos(500);
    options_.faults.most_latency = Nanos(20'000);
    Start();
  }

  Rig& rig() { return *rig_; }
  tier::KvStore& store() { return *store_; }
  FaultFileSystem& files() { return *files_; }

  // Everything is written, and the next process begins with it.
  void Restart() {
    rig_->RunToEnd();
    rig_->WriteAll();
    EXPECT_TRUE(store_->Close().ok());
    Crash(Unsynced::kLost);
  }
  // What runs is gone, and whatever a crash takes.
  void Crash(Unsynced unsynced, uint64_t seed = 0) {
    rig_.reset();
    store_.reset();
    files_ = files_->AfterCrash(unsynced, seed);
    Start();
  }
  // In every segment file.
  void FlipBits(uint64_t bit) {
    const std::vector<std::string> names = files_->List(kFolder).value();
    for (const std::string& name : names) {
      const std::string path = std::string(kFolder) + "/" + name;
      if (name.ends_with(".seg") || name.ends_with(".open"))
        files_->FlipBit(path, bit % (8 * files_->Contents(path).size()));
    }
  }

 private:
  static constexpr const char* kFolder = "/disk";

  void Start() {
    tier::DiskTierOptions disk;
    disk.folder = kFolder;
    disk.limit_bytes = options_.disk_bytes;
    disk.segment_bytes = 512 << 10;
    disk.lock = false;
    disk.entropy = [this] { return entropy_(); };
    const std::span<std::byte> staging = staging_.Resize(1 << 20);
    auto opened = tier::DiskTier::Open(*files_, clock_, disk);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const tier::TransferOptions transfers{.limits = {.in_flight_bytes = {1 << 20, 1 << 20}}, .threads = 1};
    store_ = std::make_unique<tier::KvStore>(
        std::move(*opened), std::make_unique<tier::FakeTransferEngine>(staging, transfers, options_.faults, clock_),
        clock_);
    ++options_.faults.seed;
    rig_ = std::make_unique<Rig>(options_.engine, options_.model, options_.slots, options_.device, nullptr,
                                 ModelFacts{.identity = {1}, .step_curve = {}, .store = store_.get()}, &clock_);
  }

  Options options_;
  ManualClock clock_{1'000'000};
  SplitMix64 entropy_{7};
  tier::AlignedBytes staging_;
  std::unique_ptr<FaultFileSystem> files_ = std::make_unique<FaultFileSystem>();
  std::unique_ptr<tier::KvStore> store_;
  std::unique_ptr<Rig> rig_;
};

}  // namespace cachalot::engine
