// Those that wait: whose turn it is, who is tried, and who was overtaken.
#include <algorithm>

#include "engine/engine_state.h"

namespace cachalot::engine {

// Puts a request among those that wait, by arrival.
void Engine::State::Enqueue(Request request) {
  Choice& choice = request.first_open();
  const std::span<const TokenId> tokens = HistoryOf(request, choice);
  if (!choice.output.empty()) request.history.assign(tokens.begin(), tokens.end());
  request.demand = DemandOf(request.asked, request.sequences());
  request.pending = {};
  request.watch = std::make_unique<kv::PrefixWatch>(request.asked.scope,
                                                    choice.output.empty() ? request.asked.prompt : request.history,
                                                    SkippableOf(request, choice));
  kv.Watch(*request.watch);
  fair_share.Enter(request.asked.tenant);
  const auto at = std::ranges::upper_bound(waiting, request.arrival, {}, &Request::arrival);
  waiting.insert(at, std::move(request));
}

void Engine::State::AdmitWaiting() {
  if (!std::exchange(admission_due, false) || waiting.empty()) return;
  settled = true;
  TryWaiting(0);
}

void Engine::State::TryWaiting(size_t first) {
  SurveyRunning();
  turn_kept = survey.sequences >= options.max_sequences;
  if (turn_kept) return;
  admitted.clear();
  const std::span<TenantQueue> queues = QueueUp(first);
  const auto queue_of = [&](TenantId tenant) {
    return std::ranges::lower_bound(queues, tenant, {}, &TenantQueue::tenant);
  };
  const auto can_run = [&](TenantId tenant) {
    const auto queue = queue_of(tenant);
    return queue != queues.end() && queue->tenant == tenant && queue->next < queue->order.size();
  };
  while (!turn_kept && survey.sequences < options.max_sequences) {
    const std::optional<TenantId> tenant = fair_share.Next(can_run);
    if (!tenant) break;
    TakeFrom(*queue_of(*tenant), queues);
  }
  turn_kept |= survey.sequences >= options.max_sequences;
  if (first == 0) NoteRefused(queues);
  if (admitted.empty()) return;
  settled = false;
  NoteOvertaken(queues);
  if (first > 0) NotePassedBy(waiting_views[first].tenant);
  std::ranges::sort(admitted);
  for (auto i = admitted.rbegin(); i != admitted.rend(); ++i) waiting.erase(waiting.begin() + *i);
}

// Those from `first` on, by tenant, each tenant's in its order.
std::span<TenantQueue> Engine::State::QueueUp(size_t first) {
  waiting_views.clear();
  for (const Request& request : waiting) {
    waiting_views.push_back({request.watch->tokens(), request.overtaken, request.asked.tenant});
  }
  const std::span<const uint32_t> order = waiting_order.Of(std::span(waiting_views).subspan(first), kPatience);
  tenant_queues.clear();
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const TenantId tenant = waiting_views[first + order[begin]].tenant;
    while (end < order.size() && waiting_views[first + order[end]].tenant == tenant) ++end;
    tenant_queues.push_back({tenant, order.subspan(begin, end - begin), static_cast<uint32_t>(first)});
  }
  return tenant_queues;
}

// Tries the next one.
void Engine::State::TakeFrom(TenantQueue& queue, std::span<TenantQueue> all) {
  const uint32_t i = queue.first + queue.order[queue.next++];
  Request& request = waiting[i];
  const bool overdue = request.overtaken >= kPatience;
  const Admission result = TryAdmit(request);
  request.awaits = result == Admission::kAwaits;
  request.capped = result == Admission::kCapped;
  awaits_running |= request.awaits;
  if (result == Admission::kAdmitted) {
    fair_share.Leave(request.asked.tenant);
    running.push_back(std::move(request));
    admitted.push_back(i);
    queue.admitted_end = std::max(queue.admitted_end, i + 1);
    for (TenantQueue& other : all) other.passed |= &other != &queue && other.refused.has_value();
    SurveyRunning();
  } else if (result == Admission::kNoRoom) {
    if (!queue.refused) queue.refused = i;
    turn_kept = overdue;  // when its turn has come, nobody passes any more
  } else if (result == Admission::kCapped && overdue) {
    queue.next = queue.order.size();  // nor does any of its own tenant
  }
}

// Each that arrived before one of its tenant that was admitted; and the first that found no room when another tenant's
// then did.
void Engine::State::NoteOvertaken(std::span<const TenantQueue> queues) {
  for (const TenantQueue& queue : queues) {
    for (uint32_t i = 0; i < queue.admitted_end; ++i) {
      if (waiting_views[i].tenant == queue.tenant && waiting[i].place.taken) ++waiting[i].overtaken;
    }
    if (queue.passed && *queue.refused >= queue.admitted_end) ++waiting[*queue.refused].overtaken;
  }
}

// Of each tenant the first that found no room.
void Engine::State::NoteRefused(std::span<const TenantQueue> queues) {
  refused_arrivals.clear();
  for (const TenantQueue& queue : queues) {
    if (queue.refused) refused_arrivals.push_back(waiting[*queue.refused].arrival);
  }
}

// One that came later was admitted without all being tried again: it passes those of other tenants that were refused.
void Engine::State::NotePassedBy(TenantId tenant) {
  for (const uint64_t arrival : refused_arrivals) {
    const auto found = std::ranges::lower_bound(waiting, arrival, {}, &Request::arrival);
    if (found == waiting.end() || found->arrival != arrival || found->asked.tenant == tenant) continue;
    ++found->overtaken;
  }
}

}  // namespace cachalot::engine
