#include "base/ring_reads.h"

#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace cachalot {
namespace {

constexpr size_t kEntries = 64;

Status Refused(int error) { return Unavailable(std::generic_category().message(error)); }

class IoUring final : public Ring {
 public:
  IoUring() = default;
  IoUring(const IoUring&) = delete;
  IoUring& operator=(const IoUring&) = delete;
  ~IoUring() override {
    if (error_ == 0) io_uring_queue_exit(&ring_);
  }

  // An errno, or 0.
  int error() const { return error_; }

  bool Read(int fd, std::span<PlaceRead> places) override {
    while (!places.empty()) {
      const size_t count = std::min(places.size(), kEntries);
      if (!ReadAtOnce(fd, places.first(count))) return false;
      places = places.subspan(count);
    }
    return true;
  }

 private:
  bool ReadAtOnce(int fd, std::span<PlaceRead> places) {
    for (PlaceRead& place : places) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);  // there is one: nothing is queued between calls
      io_uring_prep_readv(entry, fd, place.into.data(), static_cast<unsigned>(place.into.size()), place.offset);
      io_uring_sqe_set_data(entry, &place);
    }
    int begun = io_uring_submit_and_wait(&ring_, static_cast<unsigned>(places.size()));
    while (begun == -EINTR) begun = io_uring_submit_and_wait(&ring_, static_cast<unsigned>(places.size()));
    for (int ended = 0; ended < begun; ++ended) {
      io_uring_cqe* completion = Await();
      auto* place = static_cast<PlaceRead*>(io_uring_cqe_get_data(completion));
      place->read_bytes = static_cast<uint64_t>(std::max(completion->res, 0));
      io_uring_cqe_seen(&ring_, completion);
    }
    return begun == static_cast<int>(places.size());  // otherwise some are still queued, for the next who submits
  }

  // There is no giving up: the system may write to the memory until then, even once the ring is closed.
  io_uring_cqe* Await() {
    io_uring_cqe* completion = nullptr;
    while (io_uring_wait_cqe(&ring_, &completion) != 0) std::this_thread::yield();
    return completion;
  }

  io_uring ring_{};
  const int error_ = -io_uring_queue_init(kEntries, &ring_, 0);
};

// Some sandboxes let a ring be made, and then do nothing with it.
Status TryRing(Ring& ring) {
  const int fd = ::eventfd(1, EFD_CLOEXEC);
  if (fd < 0) return Refused(errno);
  uint64_t value = 0;
  const iovec into{&value, sizeof(value)};
  PlaceRead read{0, std::span(&into, 1)};
  const bool usable = ring.Read(fd, std::span(&read, 1));
  ::close(fd);
  return usable && read.read_bytes == sizeof(value) && value == 1 ? OkStatus() : Unavailable("its reads fail");
}

}  // namespace

Result<std::unique_ptr<Ring>> MakeRing() {
  auto ring = std::make_unique<IoUring>();
  if (ring->error() != 0) return Refused(ring->error());
  CACHALOT_RETURN_IF_ERROR(TryRing(*ring));
  return std::unique_ptr<Ring>(std::move(ring));
}

RingPool::RingPool(RingMaker make, size_t most_rings) : make_(std::move(make)), most_rings_(most_rings) {
  Result<std::unique_ptr<Ring>> first = make_();
  status_ = first.status();
  const MutexLock lock(mutex_);
  if (most_rings_ == 0 || !first.ok()) {
    most_rings_ = 0;
    return;
  }
  idle_.push_back(std::move(*first));
  rings_ = 1;
}

void RingPool::Read(int fd, std::span<PlaceRead> places) {
  std::unique_ptr<Ring> ring = Take();
  if (ring == nullptr) return;
  if (!ring->Read(fd, places)) ring = nullptr;
  GiveBack(std::move(ring));
}

std::unique_ptr<Ring> RingPool::Take() {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Ring> ring = std::move(idle_.back());
      idle_.pop_back();
      return ring;
    }
    if (rings_ >= most_rings_) return nullptr;
    ++rings_;
  }
  Result<std::unique_ptr<Ring>> made = make_();
  if (made.ok()) return std::move(*made);
  const MutexLock lock(mutex_);
  most_rings_ = --rings_;  // asked for at each read, it would be refused at each
  if (most_rings_ == 0) LogWarning("reads go by pread from now on, io_uring: " + made.status().message());
  return nullptr;
}

void RingPool::GiveBack(std::unique_ptr<Ring> ring) {
  const MutexLock lock(mutex_);
  if (ring == nullptr) {
    --rings_;
  } else {
    idle_.push_back(std::move(ring));
  }
}

}  // namespace cachalot
