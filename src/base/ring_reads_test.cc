#include "base/ring_reads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "base/file_system.h"
#include "base/random.h"

namespace cachalot {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kFilePages = 512;

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};

class Pages {
 public:
  explicit Pages(uint64_t pages)
      : memory_(static_cast<std::byte*>(std::aligned_alloc(kPage, pages * kPage))), bytes_(pages * kPage) {
    std::ranges::fill(bytes(), std::byte{0});
  }
  std::span<std::byte> bytes() const { return {memory_.get(), bytes_}; }

 private:
  std::unique_ptr<std::byte, FreeMemory> memory_;
  uint64_t bytes_;
};

// What FakeRings do and have done.
struct FakeRingPlan {
  enum class Outcome : uint8_t { kWhole, kShort, kNothing, kBroken };
  std::vector<Outcome> outcomes = {Outcome::kWhole};  // of the places, by turns
  std::atomic<size_t> made = 0;
  std::atomic<size_t> calls = 0;
  std::atomic<size_t> places = 0;
};

// Reads one place after the other, and as much as it is told to.
class FakeRing final : public Ring {
 public:
  explicit FakeRing(FakeRingPlan& plan) : plan_(plan) {}

  bool Read(int fd, std::span<PlaceRead> places) override {
    ++plan_.calls;
    for (PlaceRead& place : places) {
      EXPECT_EQ(place.read_bytes, 0u);
      const auto outcome = plan_.outcomes[plan_.places++ % plan_.outcomes.size()];
      if (outcome == FakeRingPlan::Outcome::kBroken) return false;
      if (outcome == FakeRingPlan::Outcome::kNothing) continue;
      iovec first = place.into.front();
      const bool whole = outcome == FakeRingPlan::Outcome::kWhole;
      if (!whole) first.iov_len = std::max(first.iov_len / 2 / kPage * kPage, kPage);
      const ssize_t n = ::preadv(fd, whole ? place.into.data() : &first,
                                 whole ? static_cast<int>(place.into.size()) : 1, static_cast<off_t>(place.offset));
      place.read_bytes = static_cast<uint64_t>(std::max<ssize_t>(n, 0));
    }
    return true;
  }

 private:
  FakeRingPlan& plan_;
};

RingMaker Faked(FakeRingPlan& plan) {
  return [&plan]() -> Result<std::unique_ptr<Ring>> {
    ++plan.made;
    return std::unique_ptr<Ring>(std::make_unique<FakeRing>(plan));
  };
}

Result<std::unique_ptr<Ring>> Refuse() { return Unavailable("Operation not permitted"); }

class RingReads : public testing::Test {
 protected:
  RingReads() {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(DiskFileSystem()->MakeFolder(folder_).ok());
    const auto file = DiskFileSystem()->Open(path_, OpenMode::kCreate).value();
    contents_.resize(kFilePages * kPage);
    SplitMix64 random(5);
    std::ranges::generate(contents_, [&] { return static_cast<std::byte>(random()); });
    EXPECT_TRUE(file->WriteAt(0, contents_).ok());
    EXPECT_TRUE(file->Sync().ok());
  }
  ~RingReads() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<File> Open(DiskIo io, const RingOptions& rings = {}) const {
    return DiskFileSystemBy(io, rings).value()->OpenDirect(path_, OpenMode::kRead).value();
  }

  // Seeded ranges within the file, of which some follow the one before, some lie elsewhere and some are empty.
  static std::vector<FileRange> RandomRanges(SplitMix64& random, std::span<std::byte> memory, uint64_t most_ranges) {
    std::vector<FileRange> ranges;
    uint64_t end = 0;
    for (uint64_t i = 0, count = 1 + random.Below(most_ranges); i < count; ++i) {
      const uint64_t pages = std::min<uint64_t>(random.Below(i == 0 ? 300 : 8), memory.size() / kPage);
      const bool follows = random.Below(2) == 0 && end + pages <= kFilePages;
      const uint64_t begin = follows ? end : random.Below(kFilePages - pages + 1);
      ranges.push_back({begin * kPage, memory.first(pages * kPage)});
      memory = memory.subspan(pages * kPage);
      end = begin + pages;
    }
    return ranges;
  }

  void ExpectRead(std::span<const FileRange> ranges) const {
    for (const FileRange& range : ranges) {
      const auto wanted = std::span(contents_).subspan(range.offset, range.into.size());
      ASSERT_TRUE(std::ranges::equal(range.into, wanted)) << "at " << range.offset;
    }
  }

  void ExpectRandomReadsAreRight(const File& file, uint64_t seed, int reads, uint64_t most_ranges = 100) const {
    SplitMix64 random(seed);
    for (int i = 0; i < reads; ++i) {
      const Pages memory(300 + 8 * most_ranges);
      const std::vector<FileRange> ranges = RandomRanges(random, memory.bytes(), most_ranges);
      const Status status = file.ReadAt(ranges);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_NO_FATAL_FAILURE(ExpectRead(ranges));
    }
  }

  const std::string folder_ =
      testing::TempDir() + "cachalot_ring_reads_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = folder_ + "/file";
  std::vector<std::byte> contents_;
};

// Where io_uring is forbidden these read by pread, which has to be as good.
TEST_F(RingReads, AnyRangesAreReadAsTheyAreInTheFile) {
  const DiskIo forced = MakeRing().ok() ? DiskIo::kIoUring : DiskIo::kAuto;
  for (const DiskIo io : {DiskIo::kPread, DiskIo::kAuto, forced}) {
    ExpectRandomReadsAreRight(*Open(io), 1, 60);
    ExpectRandomReadsAreRight(*Open(io), 2, 60, 2);
  }
}

TEST_F(RingReads, WhatARingLeavesOutIsReadAllTheSame) {
  using enum FakeRingPlan::Outcome;
  const std::vector<std::vector<FakeRingPlan::Outcome>> plans = {
      {kWhole}, {kShort}, {kNothing}, {kBroken}, {kWhole, kShort, kNothing, kShort, kShort, kBroken, kWhole}};
  for (const auto& outcomes : plans) {
    FakeRingPlan plan;
    plan.outcomes = outcomes;
    ExpectRandomReadsAreRight(*Open(DiskIo::kIoUring, {.make = Faked(plan)}), 3, 40);
    EXPECT_GT(plan.calls, 30u);  // all but those that are empty
  }
}

TEST_F(RingReads, ARingThatBrokeIsNotUsedAgain) {
  FakeRingPlan plan;
  plan.outcomes = {FakeRingPlan::Outcome::kBroken, FakeRingPlan::Outcome::kWhole};
  const auto file = Open(DiskIo::kIoUring, {.make = Faked(plan), .most = 1});
  const Pages memory(1);
  const FileRange range{0, memory.bytes()};
  EXPECT_EQ(plan.made, 1u);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(file->ReadAt(std::span(&range, 1)).ok());
  EXPECT_EQ(plan.calls, 4u);
  EXPECT_EQ(plan.made, 3u);  // broken, good, broken, good
}

TEST_F(RingReads, OnePlaceIsForPreadUnlessRingsAreInsistedOn) {
  for (const bool insist : {false, true}) {
    FakeRingPlan plan;
    const auto file = Open(insist ? DiskIo::kIoUring : DiskIo::kAuto, {.make = Faked(plan)});
    const Pages memory(4);
    const std::span<std::byte> bytes = memory.bytes();
    const std::array one = {FileRange{kPage, bytes.first(kPage)}, FileRange{2 * kPage, bytes.subspan(kPage)}};
    ASSERT_TRUE(file->ReadAt(one).ok());
    ExpectRead(one);
    EXPECT_EQ(plan.places, insist ? 1u : 0u);
    const std::array two = {FileRange{kPage, bytes.first(kPage)}, FileRange{3 * kPage, bytes.subspan(kPage)}};
    ASSERT_TRUE(file->ReadAt(two).ok());
    ExpectRead(two);
    EXPECT_EQ(plan.places, insist ? 3u : 2u);
    ASSERT_TRUE(file->ReadAt(0, bytes).ok());
    EXPECT_EQ(plan.places, insist ? 3u : 2u);
  }
}

TEST_F(RingReads, OnlyDirectFilesUseRings) {
  FakeRingPlan plan;
  const auto files = DiskFileSystemBy(DiskIo::kIoUring, {.make = Faked(plan)}).value();
  const auto file = files->Open(path_, OpenMode::kRead).value();
  ExpectRandomReadsAreRight(*file, 4, 10);
  EXPECT_EQ(plan.places, 0u);
}

TEST_F(RingReads, FailuresAreThoseOfPread) {
  FakeRingPlan plan;
  plan.outcomes = {FakeRingPlan::Outcome::kWhole, FakeRingPlan::Outcome::kShort};
  const auto plain = Open(DiskIo::kPread), ring = Open(DiskIo::kAuto),
             fake = Open(DiskIo::kAuto, {.make = Faked(plan)});
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(100 * kPage + 10)), 0);
  const Pages memory(8);
  for (const uint64_t begin : {95, 97, 99, 100, 101, 400}) {
    const std::array ranges = {FileRange{0, memory.bytes().first(kPage)},
                               FileRange{begin * kPage, memory.bytes().subspan(kPage, 2 * kPage)},
                               FileRange{(begin + 2) * kPage, memory.bytes().subspan(3 * kPage, 2 * kPage)}};
    const Status wanted = plain->ReadAt(ranges);
    EXPECT_EQ(wanted.code(), begin <= 96 ? Code::kOk : Code::kCorrupt);
    for (const File* file : {ring.get(), fake.get()}) {
      const Status status = file->ReadAt(ranges);
      EXPECT_EQ(status.code(), wanted.code());
      EXPECT_EQ(status.message(), wanted.message());
    }
  }
}

// Puts something that cannot be read in the place of every file of that path that this process has open.
void MakeUnreadable(const std::string& path) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) != path) continue;
    ASSERT_GE(::dup2(pipe[1], std::stoi(entry.path().filename())), 0);
  }
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(RingReads, AFileThatCannotBeReadSaysWhy) {
  const auto plain = Open(DiskIo::kPread), ring = Open(DiskIo::kAuto);
  MakeUnreadable(std::filesystem::canonical(path_));
  const Pages memory(4);
  const std::array ranges = {FileRange{0, memory.bytes().first(kPage)},
                             FileRange{3 * kPage, memory.bytes().subspan(kPage)}};
  for (const File* file : {plain.get(), ring.get()}) {
    const Status status = file->ReadAt(ranges);
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_EQ(status.message(), "cannot read " + path_ + ": Illegal seek");
  }
}

TEST_F(RingReads, WhereRingsAreRefusedPreadServesAndTheReasonIsTold) {
  const auto files = DiskFileSystemBy(DiskIo::kAuto, {.make = Refuse}).value();
  EXPECT_EQ(files->ReadsBy(), "pread (io_uring: Operation not permitted)");
  ExpectRandomReadsAreRight(*files->OpenDirect(path_, OpenMode::kRead).value(), 6, 20);
  const Status insisted = DiskFileSystemBy(DiskIo::kIoUring, {.make = Refuse}).status();
  EXPECT_EQ(insisted.code(), Code::kUnavailable);
  EXPECT_EQ(insisted.message(), "io_uring: Operation not permitted");
  FakeRingPlan plan;
  EXPECT_EQ(DiskFileSystemBy(DiskIo::kPread, {.make = Faked(plan)}).value()->ReadsBy(), "pread");
  EXPECT_EQ(plan.made, 0u);
  EXPECT_EQ(DiskFileSystemBy(DiskIo::kAuto, {.make = Faked(plan)}).value()->ReadsBy(), "io_uring");
  ExpectRandomReadsAreRight(*Open(DiskIo::kIoUring, {.make = Faked(plan), .most = 0}), 7, 20);
  EXPECT_EQ(plan.places, 0u);
}

TEST_F(RingReads, ManyThreadsShareFewRings) {
  std::atomic<size_t> made = 0;
  const RingMaker real = [&] {
    ++made;
    return MakeRing();
  };
  const auto file = Open(DiskIo::kAuto, {.make = real, .most = 3});
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&, seed] { ExpectRandomReadsAreRight(*file, 100 + seed, 30); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(made, 1u);
  EXPECT_LE(made, 3u);
}

TEST_F(RingReads, WhoeverFindsNoRingDoesNotWaitForOne) {
  struct Blocked final : Ring {
    std::atomic<bool>& in_use;
    std::atomic<bool>& go_on;
    Blocked(std::atomic<bool>& used, std::atomic<bool>& go) : in_use(used), go_on(go) {}
    bool Read(int, std::span<PlaceRead>) override {
      in_use = true;
      in_use.notify_all();
      go_on.wait(false);
      return true;
    }
  };
  std::atomic<bool> in_use = false, go_on = false;
  int asked = 0;
  const RingMaker make = [&]() -> Result<std::unique_ptr<Ring>> {
    if (++asked > 1) return Refuse();
    return std::unique_ptr<Ring>(std::make_unique<Blocked>(in_use, go_on));
  };
  const auto file = Open(DiskIo::kAuto, {.make = make});
  std::thread other([&] { ExpectRandomReadsAreRight(*file, 8, 1); });
  in_use.wait(false);
  ExpectRandomReadsAreRight(*file, 9, 10);
  EXPECT_EQ(asked, 2);  // and not at each read again
  go_on = true;
  go_on.notify_all();
  other.join();
}

TEST_F(RingReads, OffsetsGoBeyondFourGiB) {
  constexpr uint64_t kFar = (uint64_t{1} << 32) + 3 * kPage;
  for (const DiskIo io : {DiskIo::kPread, DiskIo::kAuto}) {
    const std::string path = folder_ + "/sparse";
    const auto file = DiskFileSystemBy(io).value()->OpenDirect(path, OpenMode::kCreate).value();
    const Pages memory(4);
    const std::span<std::byte> bytes = memory.bytes();
    std::ranges::fill(bytes.first(2 * kPage), std::byte{7});
    ASSERT_TRUE(file->WriteAt(kFar, bytes.first(2 * kPage)).ok());
    std::ranges::fill(bytes, std::byte{1});
    ASSERT_TRUE(file->ReadAt(std::array{FileRange{3 * kPage, bytes.first(kPage)},
                                        FileRange{kFar + kPage, bytes.subspan(kPage, kPage)},
                                        FileRange{kFar - kPage, bytes.subspan(2 * kPage)}})
                    .ok());
    const auto filled = [&](uint64_t page, int value) {
      const auto all = bytes.subspan(page * kPage, kPage);
      return std::ranges::all_of(all, [&](std::byte byte) { return byte == std::byte(value); });
    };
    EXPECT_TRUE(filled(0, 0) && filled(1, 7) && filled(2, 0) && filled(3, 7));
    ASSERT_TRUE(DiskFileSystem()->Remove(path).ok());
  }
}

TEST_F(RingReads, ARingReadsManyPlacesAndSurvivesThoseThatFail) {
  Result<std::unique_ptr<Ring>> ring = MakeRing();
  if (!ring.ok()) GTEST_SKIP() << "io_uring: " << ring.status().message();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ASSERT_EQ(::write(pipe[1], contents_.data(), 100), 100);
  std::array<std::byte, 64> memory{};
  const std::array<iovec, 2> into{iovec{memory.data(), 10}, iovec{memory.data() + 32, 20}};
  std::vector<PlaceRead> places(1, {0, into});
  EXPECT_TRUE((*ring)->Read(pipe[0], places));
  EXPECT_EQ(places[0].read_bytes, 30u);
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 10, contents_.begin()));
  EXPECT_TRUE(std::equal(memory.begin() + 32, memory.begin() + 52, contents_.begin() + 10));
  places.assign(70, {0, into});  // more than fit into a ring; the first three get what is left
  EXPECT_TRUE((*ring)->Read(pipe[1], places));
  for (const PlaceRead& place : places) EXPECT_EQ(place.read_bytes, 0u);
  ::close(pipe[1]);
  EXPECT_TRUE((*ring)->Read(pipe[0], places));
  uint64_t sum = 0;
  for (const PlaceRead& place : places) sum += place.read_bytes;
  EXPECT_EQ(sum, 70u);
  ::close(pipe[0]);
  EXPECT_TRUE((*ring)->Read(-1, places));
  for (const PlaceRead& place : places) EXPECT_EQ(place.read_bytes, 0u);
}

}  // namespace
}  // namespace cachalot
