#include "sched/pressure.h"

#include <cmath>

namespace cachalot::sched {
namespace {

void Add(Nanos elapsed, bool held_up, KvPressure::Level* level) {
  for (size_t i = 0; i < level->shares.size(); ++i) {
    const double weight = -std::expm1(-ToSeconds(elapsed) / kPressureSeconds[i]);
    level->shares[i] += weight * ((held_up ? 1.0 : 0.0) - level->shares[i]);
  }
  if (held_up) level->total += elapsed;
}

}  // namespace

void Pressure::Observe(Nanos elapsed, bool some, bool full) {
  Add(elapsed, some || full, &levels_.some);
  Add(elapsed, full, &levels_.full);
}

}  // namespace cachalot::sched
