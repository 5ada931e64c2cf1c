#include "engine/engine_loop.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>
#include <variant>

#include "base/fp_env.h"
#include "base/queue.h"

namespace cachalot::engine {
namespace {

struct DrainMessage {};
struct WakeMessage {};
using Message = std::variant<GenerateRequest, RequestId, Inquiry, SessionCommand, DrainMessage, WakeMessage>;

}  // namespace

struct EngineLoop::State {
  State(Engine& engine_in, Clock& clock_in, Sink sink_in)
      : engine(engine_in), clock(clock_in), sink(std::move(sink_in)) {}

  void Main();
  bool WaitForMessages();
  // False when the loop must end.
  bool TakeMessages(StepInput* input);

  Engine& engine;
  Clock& clock;
  const Sink sink;
  Queue<Message> messages;
  std::deque<Message> backlog;    // taken from the queue, not yet given to a step; engine thread only
  bool drain_after_step = false;  // engine thread only
  std::thread thread;
};

EngineLoop::EngineLoop(Engine& engine, Clock& clock, Sink sink)
    : state_(std::make_unique<State>(engine, clock, std::move(sink))) {
  engine.OnTransferEnd([state = state_.get()] { state->messages.Push(WakeMessage{}); });
  state_->thread = std::thread([state = state_.get()] { state->Main(); });
}

EngineLoop::~EngineLoop() { Stop(); }

void EngineLoop::Submit(GenerateRequest request) { state_->messages.Push(std::move(request)); }
void EngineLoop::Cancel(RequestId id) { state_->messages.Push(id); }
void EngineLoop::Drain() { state_->messages.Push(DrainMessage{}); }
void EngineLoop::Command(SessionCommand command) { state_->messages.Push(std::move(command)); }
void EngineLoop::Ask(Inquiry inquiry) { state_->messages.Push(std::move(inquiry)); }

void EngineLoop::Stop() {
  state_->engine.OnTransferEnd({});
  state_->messages.Close();
  if (state_->thread.joinable()) state_->thread.join();
}

// Until there is one, or the engine has something to do without. False when the queue is closed and empty.
bool EngineLoop::State::WaitForMessages() {
  constexpr Nanos kLongest = std::chrono::hours(1);
  if (const std::optional<Nanos> due = engine.next_due()) {
    const Nanos now = clock.Now();
    const Nanos wait = *due <= now ? Nanos(0) : std::min(*due - now, kLongest);
    for (Message& message : messages.WaitDrain(wait)) backlog.push_back(std::move(message));
    return true;
  }
  std::optional<Message> first = messages.WaitPop();
  if (!first) return false;
  backlog.push_back(std::move(*first));
  return true;
}

bool EngineLoop::State::TakeMessages(StepInput* input) {
  if (backlog.empty() && (engine.idle() || engine.awaits_transfers())) {
    const Nanos begun = clock.Now();
    if (!WaitForMessages()) return false;
    input->waited = clock.Now() - begun;
  }
  for (Message& message : messages.Drain()) backlog.push_back(std::move(message));

  while (!backlog.empty() && !drain_after_step) {
    Message message = std::move(backlog.front());
    backlog.pop_front();
    if (auto* request = std::get_if<GenerateRequest>(&message)) {
      input->arrivals.push_back(std::move(*request));
    } else if (const auto* id = std::get_if<RequestId>(&message)) {
      input->cancels.push_back(*id);
    } else if (auto* inquiry = std::get_if<Inquiry>(&message)) {
      input->inquiries.push_back(std::move(*inquiry));
    } else if (auto* command = std::get_if<SessionCommand>(&message)) {
      input->session_commands.push_back(std::move(*command));
    } else if (std::holds_alternative<DrainMessage>(message)) {
      drain_after_step = true;  // what came before it still arrives
    }
  }
  return !messages.closed();
}

void EngineLoop::State::Main() {
  SetDefaultFpEnv();
  StepInput input;
  uint64_t steps = 0;
  uint64_t kept = 0;
  Nanos last_duration{0}, last_stalled{0};
  while (TakeMessages(&input)) {
    input.now = clock.Now();
    input.unix_seconds = static_cast<uint64_t>(std::max<int64_t>(clock.UnixSeconds(), 0));
    input.last_duration = last_duration;
    input.last_stalled = last_stalled;
    const Nanos begun = input.now, stalled = engine.stalled();
    StepOutput output = engine.Step(std::exchange(input, {}));
    output.duration = last_duration = clock.Now() - begun;
    output.stalled = last_stalled = engine.stalled() - stalled;
    const bool ran = std::exchange(steps, output.stats.steps) != output.stats.steps;
    const uint64_t kept_now = output.stats.idle_slots + output.stats.pinned_slots;
    const bool let_go = std::exchange(kept, kept_now) != kept_now;
    const bool says_something = ran || let_go || !output.rejections.empty() || !output.finishes.empty() ||
                                !output.answers.empty() || !output.session_answers.empty();
    if (says_something) sink(std::move(output));
    if (std::exchange(drain_after_step, false)) engine.Drain();
  }
}

bool WriteLeftBehind(Engine& engine, Clock& clock, Nanos limit) {
  const Nanos deadline = clock.Now() + limit;
  while (engine.idle() && engine.writes_pending() && clock.Now() < deadline) {
    engine.Step({.now = clock.Now(), .unix_seconds = static_cast<uint64_t>(clock.UnixSeconds())});
    if (engine.writes_pending()) clock.SleepUntil(clock.Now() + std::chrono::milliseconds(1));
  }
  return !engine.writes_pending();
}

}  // namespace cachalot::engine
