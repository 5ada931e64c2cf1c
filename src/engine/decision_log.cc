#include "engine/decision_log.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/engine.h"
#include "engine/request_record.h"
#include "exec/executor.h"
#include "kv/kv_manager.h"
#include "sched/down_decision.h"
#include "sched/load_or_recompute.h"

namespace cachalot::engine {
namespace {

// Slots of the blocks that hold positions [first, end), e.g. "4,5".
std::string SlotsOf(const PageTableRef& pages, uint64_t first, uint64_t end, uint32_t block_tokens) {
  std::string text;
  for (uint64_t block = first / block_tokens; block * block_tokens < end; ++block) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", pages.slots[block - pages.first_block]);
  }
  return text;
}

}  // namespace

void DecisionLog::BeginStep(Nanos now) {
  ++step_;
  now_ = now;
  lines_.clear();
}

void DecisionLog::Admitted(RequestId request, uint64_t cached_tokens, uint64_t promised_slots) {
  lines_ += fmt::format("admit {} cached {} promised {}\n", request.value, cached_tokens, promised_slots);
}

void DecisionLog::Decided(RequestId request, const sched::Decision& decision) {
  lines_ += fmt::format("resume {} {}\n", request.value, sched::DecisionLine(decision));
}

void DecisionLog::Decided(const sched::DownDecision& decision) {
  lines_ += fmt::format("down {}\n", sched::DecisionLine(decision));
}

void DecisionLog::Evicted(const kv::LeavingBlock& block) {
  lines_ += fmt::format("evict {}+{}", block.position, block.tokens);
  for (const uint32_t slot : block.slots) lines_ += slot == kv::kNoSlot ? " -" : fmt::format(" {}", slot);
  lines_ += '\n';
}

void DecisionLog::Preempted(RequestId request) { lines_ += fmt::format("preempt {}\n", request.value); }

void DecisionLog::Planned(RequestId request, uint32_t choice, const exec::SequenceRows& rows, uint32_t block_tokens) {
  const uint64_t end = rows.first_position + rows.tokens.size();
  lines_ += fmt::format("run {}.{} {}+{} logits {} slots", request.value, choice, rows.first_position,
                        rows.tokens.size(), rows.logit_rows);
  for (const PageTableRef& pages : rows.pages) {
    lines_ += ' ' + SlotsOf(pages, rows.first_position, end, block_tokens);
  }
  lines_ += '\n';
}

void DecisionLog::EndStep(const StepOutput& output) {
  for (const Rejection& rejection : output.rejections) {
    lines_ += fmt::format("refuse {} {} {}/{}\n", rejection.id.value, NameOf(rejection.reason), rejection.needed,
                          rejection.available);
  }
  for (const FinishEvent& event : output.finishes) {
    lines_ += fmt::format("finish {}.{} {} tokens {} cached {}\n", event.id.value, event.choice, NameOf(event.reason),
                          event.output_tokens, event.cached_tokens);
  }
  for (const SessionAnswer& answer : output.session_answers) {
    lines_ += fmt::format("session command {} {} moved {}\n", answer.id.value, answer.status.ok() ? "done" : "failed",
                          answer.moved_tokens);
  }
  if (lines_.empty()) return;
  sink_(fmt::format("step {} at {} ns, {} slots free, {} promised\n{}", step_, now_.count(), output.stats.free_slots,
                    output.stats.promised_slots, std::exchange(lines_, {})));
}

}  // namespace cachalot::engine
