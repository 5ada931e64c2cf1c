#include "server/text_workers.h"

#include <algorithm>
#include <utility>

namespace cachalot::server {

TextWorkers::TextWorkers(uint32_t threads) {
  for (uint32_t i = 0; i < std::max(threads, 1u); ++i) threads_.emplace_back([this, i] { Main(i == 0); });
}

TextWorkers::~TextWorkers() { Stop(); }

void TextWorkers::Submit(size_t bytes, Job job) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    (bytes >= kLargeBytes ? large_ : small_).push_back(std::move(job));
  }
  // All: whoever would be woken alone might not take large jobs.
  changed_.NotifyAll();
}

void TextWorkers::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    small_.clear();
    large_.clear();
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool TextWorkers::Take(bool takes_large, Job* job) {
  MutexLock lock(mutex_);
  while (!stopping_ && small_.empty() && !(takes_large && !large_.empty())) changed_.Wait(mutex_);
  if (stopping_) return false;
  // The first worker alternates, so that neither class starves when it is alone.
  const bool large = takes_large && !large_.empty() && (small_.empty() || !last_was_large_);
  if (takes_large) last_was_large_ = large;
  std::deque<Job>& from = large ? large_ : small_;
  *job = std::move(from.front());
  from.pop_front();
  return true;
}

void TextWorkers::Main(bool takes_large) {
  Job job;
  while (Take(takes_large, &job)) {
    job();
    job = nullptr;
  }
}

}  // namespace cachalot::server
