// TieredRig is a Rig over a disk tier in memory, with transfers that are late, out of order and fail, and restarts.
// Threads:   one.
// Ownership: owns all parts.
// Invariant: equal inputs give equal outputs.
// Cost:      as Rig.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/testing/fault_file_system.h"
#include "engine/testing/engine_logs.h"
#include "engine/testing/engine_rig.h"
#include "tier/aligned_bytes.h"
#include "tier/disk_store.h"
#include "tier/file_session_archive.h"
#include "tier/host_tier.h"
#include "tier/session_store.h"
#include "tier/testing/fake_transfer_engine.h"

namespace cachalot::engine {

class TieredRig {
 public:
  struct Options {
    EngineOptions engine;
    exec::FakeOptions model;
    uint32_t slots = 256;
    Device device = Device::kCpu;
    exec::LinkSpec link{.bytes_per_second = 1e6};
    uint64_t disk_bytes = 16 << 20;  // 0: none
    uint64_t host_bytes = 0;         // 0: none
    uint64_t staging_bytes = 1 << 20;
    uint32_t packed_element_bytes = 0;
    bool session_store = false;
    uint64_t saved_min_free = 0;  // room on disk that saved sessions leave
    bool logged = false;
    tier::FakeTransferFaults faults;
    uint32_t reads = 2;                 // at once
    std::optional<StepCurve> curve;     // what steps are thought to take
    std::optional<TierRate> host_rate;  // and what comes up from host memory
    Digest identity{1};
  };

  explicit TieredRig(Options options) : options_(std::move(options)) {
    options_.faults.least_latency = Nanos(500);
    options_.faults.most_latency = Nanos(20'000);
    Start();
  }

  Rig& rig() { return *rig_; }
  tier::DiskStore& store() { return *store_; }
  tier::HostTier& host() { return *host_; }
  tier::SessionStore& session_store() { return *session_store_; }
  FaultFileSystem& files() { return *files_; }
  ManualClock& clock() { return clock_; }
  // Of each process so far, where they are kept.
  const std::vector<std::unique_ptr<EngineLogs>>& logs() const { return logs_; }
  std::vector<std::string> Segments() const {  // paths
    std::vector<std::string> paths;
    for (const std::string& name : files_->List(kFolder).value()) {
      if (name.ends_with(".seg") || name.ends_with(".open")) paths.push_back(std::string(kFolder) + "/" + name);
    }
    return paths;
  }
  // Bytes that all files of the folder occupy.
  uint64_t Occupied() const {
    uint64_t bytes = 0;
    for (const std::string& name : files_->List(kFolder).value()) {
      bytes += files_->Occupied(std::string(kFolder) + "/" + name).value();
    }
    return bytes;
  }

  // Everything is written, and the next process begins with it.
  void Restart() {
    rig_->RunToEnd();
    rig_->WriteAll();
    if (store_ != nullptr) {
      EXPECT_TRUE(store_->Close().ok());
    }
    Crash(Unsynced::kLost);
  }
  // What runs is gone, and whatever a crash takes.
  void Crash(Unsynced unsynced, uint64_t seed = 0) {
    rig_.reset();
    if (options_.logged) logs_.back()->End();
    host_.reset();
    store_.reset();
    session_store_.reset();
    archive_.reset();
    files_ = files_->AfterCrash(unsynced, seed);
    Start();
  }
  // The next process has another model, whose layout is the same.
  void ChangeModel(const Digest& identity) { options_.identity = identity; }
  // The next process's disk is that fast.
  void ChangeDisk(double bytes_per_second) { options_.faults.bytes_per_second = bytes_per_second; }
  // The next process remembers so many.
  void Limit(const SessionOptions& sessions) { options_.engine.sessions = sessions; }
  // In every segment file.
  void FlipBits(uint64_t bit) {
    for (const std::string& path : Segments()) files_->FlipBit(path, bit % (8 * files_->Contents(path).size()));
  }

 private:
  static constexpr const char* kFolder = "/disk";

  void Start() {
    if (options_.disk_bytes > 0) OpenStore();
    if (options_.session_store) OpenSessionStore();
    if (options_.session_store) OpenArchive();
    const uint64_t slot_bytes = exec::FakeExecutor::LayoutFor(options_.model).slot_bytes;
    const auto groups = static_cast<uint32_t>(exec::FakeExecutor::LayoutFor(options_.model).groups.size());
    if (options_.host_bytes > 0) {
      auto made = tier::HostTier::Make(host_memory_.Resize(options_.host_bytes), {slot_bytes, groups});
      ASSERT_TRUE(made.ok()) << made.status().message();
      host_ = std::move(made).value();
    }
    EngineOptions engine = options_.engine;
    if (options_.logged) logs_.emplace_back(std::make_unique<EngineLogs>())->Attach(&engine);
    rig_ = std::make_unique<Rig>(engine, options_.model, options_.slots, options_.device, nullptr,
                                 ModelFacts{.identity = options_.identity,
                                            .step_curve = options_.curve,
                                            .host_rate = options_.host_rate,
                                            .store = store_.get(),
                                            .host = host_.get(),
                                            .session_store = session_store_.get(),
                                            .archive = archive_.get()},
                                 &clock_, options_.link);
  }

  void OpenSessionStore() {
    const tier::SessionStoreOptions options{
        .folder = "/sessions", .lock = false, .entropy = [this] { return entropy_(); }};
    auto opened = tier::SessionStore::Open(
        *files_, clock_, options, [this](auto) -> Result<std::unique_ptr<tier::TransferEngine>> {
          const tier::TransferOptions transfers{.limits = {.in_flight_bytes = {1, 1}}, .threads = 1};
          return std::unique_ptr<tier::TransferEngine>(
              new tier::FakeTransferEngine({}, transfers, options_.faults, clock_));
        });
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    session_store_ = std::move(*opened);
  }

  void OpenArchive() {
    const tier::FileSessionArchiveOptions options{
        .folder = "/saved", .key_file = "/server.key", .min_free_bytes = options_.saved_min_free, .entropy = [this] {
          return entropy_();
        }};
    auto opened = tier::FileSessionArchive::Open(
        *files_, clock_, options, [this](auto) -> Result<std::unique_ptr<tier::TransferEngine>> {
          const tier::TransferOptions transfers{.limits = {.in_flight_bytes = {1, 1}}, .threads = 1};
          return std::unique_ptr<tier::TransferEngine>(
              new tier::FakeTransferEngine({}, transfers, options_.faults, clock_));
        });
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    archive_ = std::move(*opened);
  }

  void OpenStore() {
    tier::DiskTierOptions disk;
    disk.folder = kFolder;
    disk.limit_bytes = options_.disk_bytes;
    disk.segment_bytes = 512 << 10;
    disk.packed_element_bytes = options_.packed_element_bytes;
    disk.lock = false;
    disk.entropy = [this] { return entropy_(); };
    const std::span<std::byte> staging = staging_.Resize(options_.staging_bytes);
    auto opened = tier::DiskTier::Open(*files_, clock_, disk);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const tier::TransferOptions transfers{
        .limits = {.in_flight_bytes = {1 << 20, 1 << 20}, .running_jobs = {options_.reads, 1}}, .threads = 3};
    store_ = std::make_unique<tier::DiskStore>(
        std::move(*opened), std::make_unique<tier::FakeTransferEngine>(staging, transfers, options_.faults, clock_),
        clock_);
    ++options_.faults.seed;
  }

  Options options_;
  std::vector<std::unique_ptr<EngineLogs>> logs_;
  ManualClock clock_{1'000'000};
  SplitMix64 entropy_{7};
  tier::AlignedBytes staging_, host_memory_;
  std::unique_ptr<FaultFileSystem> files_ = std::make_unique<FaultFileSystem>();
  std::unique_ptr<tier::DiskStore> store_;
  std::unique_ptr<tier::HostTier> host_;
  std::unique_ptr<tier::SessionStore> session_store_;
  std::unique_ptr<tier::FileSessionArchive> archive_;
  std::unique_ptr<Rig> rig_;
};

// What tests over tiers are repeated with.
struct TieredCase {
  const char* name;
  Device device;
  exec::FakeOptions model;
};
inline exec::FakeOptions SlidingModel() { return {.windows = {0, 24, 24, 40}, .block_tokens = 16}; }

// Asks, and expects the answer that the request gets alone. How many of its tokens were not computed.
inline uint32_t Ask(TieredRig& tiered, const GenerateRequest& request) {
  tiered.rig().Arrive(request);
  tiered.rig().RunToEnd();
  const std::pair key(request.id, 0u);
  EXPECT_EQ(tiered.rig().outputs[key], Expected(tiered.rig().executor(), request, 0));
  return tiered.rig().finishes.at(key).cached_tokens;
}

}  // namespace cachalot::engine
