// Arrivals: what is copied into slots for a load, and sequences that run while it comes in layer after layer.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/engine_state.h"

namespace cachalot::engine {
namespace {

// A cell's bytes, outside the pool.
struct CellSource {
  kv::LoadCell cell;
  std::span<const std::byte> bytes;
};

// The parts of slots that one layer takes.
std::vector<exec::SlotFill> FillsOf(std::span<const CellSource> sources, const KvLayout& layout, size_t layer) {
  const LayerPlace& place = layout.places[layer];
  const uint64_t bytes = KvBytesPerToken(layout.shape.layers[layer], layout.shape.type) * layout.shape.block_tokens;
  std::vector<exec::SlotFill> fills;
  for (const CellSource& source : sources) {
    if (source.cell.group != place.group) continue;
    fills.push_back({source.bytes.subspan(place.k_offset, bytes), source.cell.slot, place.k_offset});
  }
  return fills;
}

std::vector<exec::SlotFill> FillsOf(std::span<const CellSource> sources) {
  std::vector<exec::SlotFill> fills;
  for (const CellSource& source : sources) fills.push_back({source.bytes, source.cell.slot});
  return fills;
}

// Of those that will come.
uint64_t BytesThere(exec::DeviceMemory& memory, const Arrival& arrival) {
  const auto done = [&](exec::CopyTicket ticket) { return memory.Done(ticket); };
  const auto layers = static_cast<uint64_t>(std::ranges::count_if(arrival.layers, done));
  return arrival.bytes * layers / arrival.layers.size();
}

}  // namespace

bool LoadGate::Await(uint32_t layer) {
  for (const LoadPart& part : parts_) {
    const std::vector<exec::CopyTicket>& layers = part.arrival->layers;
    const Status arrived = memory_.Wait(layers[std::min<size_t>(layer, layers.size() - 1)]);
    if (status_.ok()) status_ = arrived;
  }
  return status_.ok();
}

// Begins to copy what the sequence will see of the part's blocks to its slots: from `staging`, where its run lies, and
// from host memory.
void Engine::State::BeginArrival(Loading& loading, LoadPart* part, tier::Staging staging) {
  const StoredBlocks& stored = loading.stored;
  Arrival& arrival = part->arrival.emplace(Arrival{.begun = now, .steps = totals.steps});
  SlotCopies copies;
  std::vector<CellSource> sources;
  std::span<const std::byte> run = staging.bytes();
  auto cell = part->cells.begin();
  for (uint64_t block = part->first; block < part->first + part->blocks; ++block) {
    const bool wanted = loading.meeting.FateOf(block) == sched::BlockFate::kLoading;
    for (uint32_t group = 0; group < kv.geometry().windows.size(); ++group) {
      const bool in_run = part->tier == TierId::kDisk && (stored.on_disk[block - stored.first] >> group & 1) != 0;
      const std::span<const std::byte> staged = run.first(in_run ? memory.slot_bytes() : 0);
      run = run.subspan(staged.size());
      if (cell == part->cells.end() || cell->block != block || cell->group != group) continue;
      auto pin = loading.pins.extract({block, group});
      if (wanted && !in_run && pin.empty()) {
        arrival.status = Unavailable("it is no longer in host memory");
        return;
      }
      if (wanted) sources.push_back({*cell, in_run ? staged : pin.mapped().bytes()});
      if (wanted && !in_run) copies.pins.push_back(std::move(pin.mapped()));
      ++cell;
    }
  }
  if (sources.empty()) {  // nobody wants any of it any more
    arrival.layers.push_back(exec::CopyTicket(0));
    return;
  }
  copies.staging = std::move(staging);
  const size_t lists = loading.in_layers && part->tier == TierId::kHost ? executor.layout().places.size() : 1;
  for (size_t layer = 0; layer < lists; ++layer) {
    arrival.layers.push_back(memory.CopyIn(lists == 1 ? FillsOf(sources) : FillsOf(sources, executor.layout(), layer)));
  }
  arrival.bytes = sources.size() * memory.slot_bytes();
  for (const CellSource& source : sources) {
    kv.BeginCopyIn(source.cell.slot);
    copies.in.push_back(source.cell.slot);
  }
  copies.tickets = arrival.layers;
  slot_copies.push_back(std::move(copies));
}

bool Engine::State::HasArrived(const LoadPart& part) const {
  return part.arrival && (!part.arrival->status.ok() || memory.Done(part.arrival->layers.back()));
}

bool Engine::State::HasArrived(const Loading& loading) const {
  return std::ranges::any_of(loading.parts, [&](const LoadPart& part) { return HasArrived(part); });
}

// The part has arrived, or will not.
void Engine::State::EndArrival(Loading& loading, const LoadPart& part, kv::SlotPromise* promise) {
  const Arrival& arrival = *part.arrival;
  const Status status = arrival.status.ok() ? StatusOf(arrival.layers) : arrival.status;
  EndPart(loading, part, status, promise);
  for (const kv::LoadCell& cell : part.cells) {
    const bool there = loading.meeting.FateOf(cell.block) == sched::BlockFate::kLoaded;
    if (there) HostCameUp(loading.stored.keys[cell.block], cell.group);
  }
}

// Whether the request's rows above its load may run: what is still to come of it, layer after layer, takes no longer
// than they do, so that nobody in their step is held up.
bool Engine::State::MayJoin(const Request& request) const {
  const Loading& loading = *request.loading;
  const sched::Meeting& meeting = loading.meeting;
  if (!loading.in_layers || meeting.done() || meeting.front_token() != meeting.low_token()) return false;
  uint64_t missing_bytes = 0;
  for (const LoadPart& part : loading.parts) {
    if (!part.arrival || !part.arrival->status.ok()) return false;
    const uint64_t there = BytesThere(memory, *part.arrival);
    if (there == 0 && part.arrival->bytes > 0) return false;
    missing_bytes += part.arrival->bytes - there;
  }
  const Choice& choice = *std::ranges::find(request.choices, loading.sequence, &Choice::sequence);
  const uint64_t end = loading.tokens.size(), rows = request.history_tokens(choice) - end;
  const double step = step_cost.Predict(work_shape.Rows(end, std::min<uint64_t>(rows, step_tokens_limit()), 1));
  return static_cast<double>(missing_bytes) <= step * HostRate().bytes_per_second;
}

// Those that are planned above their load.
void Engine::State::JoinLoads() {
  for (const sched::PlannedRows& planned : plan) {
    const Request& request = running[candidates[planned.index].request];
    if (request.loading == nullptr || request.loading->gate || !MayJoin(request)) continue;
    Loading& loading = *request.loading;
    kv.JoinLoad(loading.sequence, std::span(loading.tokens).subspan(loading.meeting.low_token()));
    loading.gate.emplace(memory, loading.parts);
  }
}

// Who has joined a load of which not all has arrived now leaves the step; so does who joined in vain, as others took
// the rows. Which requests that are.
std::vector<uint32_t> Engine::State::DropLost() {
  std::vector<uint32_t> lost;
  for (uint32_t r = 0; r < running.size(); ++r) {
    Request& request = running[r];
    if (request.loading == nullptr || !request.loading->gate) continue;
    const auto is_its = [&](const sched::PlannedRows& p) { return candidates[p.index].request == r; };
    const bool arrived = request.loading->gate->status().ok();
    if (arrived && std::ranges::any_of(plan, is_its)) continue;
    request.load_failed = !arrived;
    if (!arrived) ++totals.tiers.failed_loads;
    AbandonLoad(request);
    lost.push_back(r);
  }
  return lost;
}

// They compute what they have lost.
void Engine::State::RequeueLost(std::span<const uint32_t> lost) {
  for (auto r = lost.rbegin(); r != lost.rend(); ++r) {
    if (running[*r].open_choices() > 0) Requeue(*r);
  }
}

// Of those that ran all has arrived.
void Engine::State::EndJoined() {
  for (const sched::PlannedRows& planned : plan) {
    Request& request = running[candidates[planned.index].request];
    if (request.loading == nullptr || !request.loading->gate) continue;
    PollLoad(*request.loading, {}, PromiseOf(request));
    CACHALOT_CHECK(request.loading->meeting.done());
    EndLoadOf(request);
  }
}

}  // namespace cachalot::engine
