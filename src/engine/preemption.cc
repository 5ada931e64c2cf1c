// Requests that were admitted for what they would likely generate give way when they generate more.
#include "sched/preemption.h"

#include <algorithm>

#include "engine/decision_log.h"
#include "engine/engine_state.h"

namespace cachalot::engine {

// The oldest of those without a guarantee is never a victim: admission saw to it that it can finish alone, beside all
// that have one. So somebody always comes to an end.
void Engine::State::PreemptForGrowth() {
  while (!plan.empty() && kv.SlotsToGrow(growth) > kv.available_slots()) {
    uint64_t oldest = UINT64_MAX;
    for (const Request& request : running) {
      if (!request.guaranteed) oldest = std::min(oldest, request.arrival);
    }
    std::vector<sched::VictimView> views;
    for (const Request& request : running) {
      sched::VictimView view{.preemptible = !request.guaranteed && request.arrival != oldest, .freed_slots = 1};
      for (const Choice& choice : request.choices) {
        if (choice.sequence.value == 0) continue;
        view.freed_slots += kv.ExclusiveSlots(choice.sequence);
      }
      view.recompute_seconds = RecomputeSeconds(request);
      views.push_back(view);
    }
    const std::optional<uint32_t> victim = sched::ChooseVictim(views);
    if (!victim) return;
    Preempt(*victim);
    PlanRows();
    ListRows();
  }
}

void Engine::State::Preempt(uint32_t index) {
  ++totals.preemptions;
  if (options.decision_log != nullptr) options.decision_log->Preempted(running[index].asked.id);
  Requeue(index);
}

// Its KV stays where it is until somebody needs the room; the request waits again, in its old place.
void Engine::State::Requeue(uint32_t index) {
  AbandonLoad(running[index]);
  Request request = std::move(running[index]);
  running.erase(running.begin() + index);
  for (Choice& choice : request.choices) {
    if (choice.sequence.value == 0) continue;
    choice.computed = kv.Length(choice.sequence);
    kv.Free(std::exchange(choice.sequence, SequenceId(0)));
  }
  request.promise.ShrinkTo(0);
  ++request.preemptions;
  admission_due = true;
  Enqueue(std::move(request));
}

}  // namespace cachalot::engine
