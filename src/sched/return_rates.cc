#include "sched/return_rates.h"

#include <algorithm>

namespace cachalot::sched {
namespace {

// What is believed before anything is known, and how many observations outweigh it: sessions are mostly gone on with.
constexpr std::array<double, kLeavers> kPriors = {0.7, 0.3, 0.3, 0.3};
constexpr double kPriorWeight = 16;
constexpr double kKept = 1 - 1.0 / 256;   // of the sums, with each that is left
constexpr size_t kMostWaiting = 4096;     // of a class; the oldest are given up
constexpr uint8_t kBlocksPerSample = 16;  // one in so many blocks is followed

}  // namespace

void ReturnRates::Left(Leaver leaver, const Digest& key) {
  if (leaver == Leaver::kBlock && key[0] % kBlocksPerSample != 0) return;
  Class& c = classes_[static_cast<size_t>(leaver)];
  if (!c.waiting.try_emplace(key, c.count).second) return;
  c.in_order.emplace_back(key, c.count++);
  c.left = c.left * kKept + 1;
  c.returned *= kKept;
  if (c.in_order.size() <= kMostWaiting) return;
  const auto oldest = c.waiting.find(c.in_order.front().first);
  if (oldest != c.waiting.end() && oldest->second == c.in_order.front().second) c.waiting.erase(oldest);
  c.in_order.pop_front();
}

void ReturnRates::Seen(std::span<const Digest> keys) {
  for (Class& c : classes_) {
    if (c.waiting.empty()) continue;
    for (const Digest& key : keys) c.returned += static_cast<double>(c.waiting.erase(key));
  }
}

double ReturnRates::Of(Leaver leaver) const {
  const auto i = static_cast<size_t>(leaver);
  const Class& c = classes_[i];
  return std::min(1.0, (kPriorWeight * kPriors[i] + c.returned) / (kPriorWeight + c.left));
}

}  // namespace cachalot::sched
