#include "exec/cpu/panel_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/thread_pool.h"
#include "exec/testing/executor_rig.h"
#include "exec/testing/tiny_model.h"

namespace cachalot::exec {
namespace {

const TinyModelSpec kSpec{
    .architecture = "gemma3", .type = TensorType::kQ4_K, .layers = 2, .width = 256, .head_dim = 64, .ffn_width = 256};

class PanelFiles : public testing::Test {
 protected:
  PanelFiles() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~PanelFiles() override { std::filesystem::remove_all(folder_); }

  CpuModelOptions Options() const { return {.panel_file = path_}; }
  std::vector<float> Logits(const std::string& gguf, const CpuModelOptions& options) const {
    ExecutorRig rig(gguf, {.threads = 2, .model = options});
    return rig.RunWhole(0, {1, 2, 3, 4, 5, 6, 7}, 7);
  }
  void Put(const std::string& contents) const { std::ofstream(path_, std::ios::binary) << contents; }
  std::string Contents() const { return ReadFile(path_, 1 << 30).value(); }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  const std::string folder_ =
      testing::TempDir() + "cachalot_panels_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = folder_ + "/tiny.panels";
  const std::string gguf_ = MakeTinyModel(kSpec);
};

TEST_F(PanelFiles, WhatWasPackedIsMappedAndGivesTheSameBits) {
  const std::vector<float> expected = Logits(gguf_, {});
  EXPECT_EQ(Logits(gguf_, Options()), expected);
  const std::string written = Contents();
  const auto time = std::filesystem::last_write_time(path_);
  EXPECT_EQ(Logits(gguf_, Options()), expected);
  EXPECT_TRUE(Contents() == written);
  EXPECT_EQ(std::filesystem::last_write_time(path_), time);  // read, not made again
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(PanelFiles, AnotherModelOfTheSameNameIsPackedAgain) {
  Logits(gguf_, Options());
  TinyModelSpec other = kSpec;
  other.seed = 2;
  const std::string changed = MakeTinyModel(other);
  ASSERT_EQ(changed.size(), gguf_.size());
  const std::string before = Contents();
  EXPECT_EQ(Logits(changed, Options()), Logits(changed, {}));
  EXPECT_TRUE(Contents() != before);
}

TEST_F(PanelFiles, TheReferenceFormIsNotTakenForTheOther) {
  Logits(gguf_, Options());
  CpuModelOptions reference = Options();
  reference.reference = true;
  EXPECT_EQ(Logits(gguf_, reference), Logits(gguf_, {.reference = true}));
}

// One byte anywhere: refused, packed again, and the file is whole again. Padding alone means nothing.
TEST_F(PanelFiles, ADamagedFileIsNeverUsed) {
  const std::vector<float> expected = Logits(gguf_, Options());
  const std::string good = Contents();
  ThreadPool pool(2);
  ExecutorRig rig(gguf_, {});
  const PanelSource source{rig.model().fingerprint(), kernels::PackAs::kItsType};
  size_t refused = 0, accepted = 0;
  for (size_t at = 0; at < good.size(); at += at < 4096 ? 7 : 997) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Put(damaged);
    const Result<PanelsByTensor> read = ReadPanelFile(MappedFile::Open(path_).value(), source, pool);
    ++(read.ok() ? accepted : refused);
    EXPECT_TRUE(read.ok() ? good[at] == '\0' : read.status().code() == Code::kCorrupt) << at;
  }
  EXPECT_GT(refused, accepted);
  std::string damaged = good;
  damaged[4096] = static_cast<char>(damaged[4096] ^ 1);
  Put(damaged);
  EXPECT_EQ(Logits(gguf_, Options()), expected);
  EXPECT_TRUE(Contents() == good);
}

TEST_F(PanelFiles, ACutFileIsRefusedAtEveryLength) {
  Logits(gguf_, Options());
  const std::string good = Contents();
  ThreadPool pool(1);
  ExecutorRig rig(gguf_, {});
  const PanelSource source{rig.model().fingerprint(), kernels::PackAs::kItsType};
  for (size_t size = 1; size + 4096 < good.size(); size += size < 64 ? 1 : 1201) {
    Put(good.substr(0, size));
    EXPECT_FALSE(ReadPanelFile(MappedFile::Open(path_).value(), source, pool).ok()) << size;
  }
}

TEST_F(PanelFiles, WithoutRoomOrFolderTheModelLoadsAllTheSame) {
  const std::vector<float> expected = Logits(gguf_, {});
  EXPECT_EQ(Logits(gguf_, {.panel_file = folder_ + "/none/tiny.panels"}), expected);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{10'000, old.rlim_max};
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(Logits(gguf_, Options()), expected);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(FileCount(), 0u);
}

}  // namespace
}  // namespace cachalot::exec
