#include "engine/input_log.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/input_fields.h"
#include "engine/input_frames.h"
#include "exec/device_memory.h"
#include "exec/executor.h"

namespace cachalot::engine {
namespace {

constexpr uint32_t kMostSlots = 1 << 26;
constexpr uint64_t kMostContext = uint64_t{1} << 32;

// Whether every layer lies in its group's slots.
bool HoldsAllLayers(const KvLayout& layout) {
  const KvShape& shape = layout.shape;
  if (layout.places.empty() || layout.places.size() != shape.layers.size()) return false;
  for (size_t layer = 0; layer < layout.places.size(); ++layer) {
    const LayerPlace& place = layout.places[layer];
    const LayerKvShape& kept = shape.layers[layer];
    const uint64_t most = layout.slot_bytes / KvTypeBytes(shape.type) / shape.block_tokens;  // values per token
    if (place.group >= layout.groups.size() || kept.kv_heads > most || kept.k_dim > most || kept.v_dim > most) {
      return false;
    }
    const uint64_t bytes = KvBytesPerToken(kept, shape.type) * shape.block_tokens;
    if (bytes > layout.slot_bytes || place.k_offset > layout.slot_bytes - bytes) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> Problems(const InputFacts& facts) {
  std::vector<std::string> problems = Problems(facts.options);
  const auto expect = [&](bool good, std::string_view what, uint64_t value) {
    if (!good) problems.push_back(fmt::format("{} of {}", what, value));
  };
  const KvLayout& layout = facts.layout;
  const uint32_t block_tokens = layout.shape.block_tokens;
  expect(block_tokens > 0 && block_tokens % 16 == 0 && block_tokens <= 1 << 16, "blocks", block_tokens);
  expect(!layout.groups.empty() && layout.groups.size() <= 16, "a number of layer groups", layout.groups.size());
  expect(layout.slot_bytes > 0 && layout.slot_bytes <= uint64_t{1} << 32, "slot bytes", layout.slot_bytes);
  if (problems.empty()) expect(HoldsAllLayers(layout), "a layout whose slots do not hold the layers", 0);
  expect(facts.slots > 0 && facts.slots <= kMostSlots, "a pool", facts.slots);
  const uint64_t cells = facts.host ? facts.host->memory_bytes / std::max<uint64_t>(layout.slot_bytes, 1) : 0;
  expect(cells <= kMostSlots, "host memory, in blocks,", cells);
  expect(facts.vocabulary > 0, "a vocabulary", facts.vocabulary);
  expect(facts.context_tokens > 0 && facts.context_tokens <= kMostContext, "a context", facts.context_tokens);
  expect(facts.most_rows > 0 && facts.most_logit_rows > 0, "runs, in rows,", facts.most_rows);
  expect(facts.options.max_sequences > 0 && facts.options.step_rows > 0 && facts.options.prefill_chunk > 0,
         "steps or sequences", 0);
  expect(facts.options.tenants.size() <= kMostTenants, "a number of tenants", facts.options.tenants.size());
  for (const TenantTerms& terms : facts.options.tenants) expect(terms.weight > 0, "a tenant's weight", terms.weight);
  return problems;
}

InputFacts FactsOf(const EngineOptions& options, const ModelFacts& facts, const exec::Executor& executor,
                   const exec::DeviceMemory& memory) {
  InputFacts all{.options = options,
                 .layout = executor.layout(),
                 .slots = memory.slots(),
                 .vocabulary = executor.vocabulary(),
                 .context_tokens = executor.context_tokens(),
                 .most_rows = executor.limits().rows,
                 .most_logit_rows = executor.limits().logit_rows,
                 .identity = facts.identity,
                 .step_curve = facts.step_curve,
                 .host_rate = facts.host_rate,
                 .host = {},
                 .store = facts.store != nullptr,
                 .sessions = facts.session_store != nullptr,
                 .archive = facts.archive != nullptr,
                 .asynchronous_copies = memory.asynchronous()};
  all.options.decision_log = nullptr;
  all.options.input_log = nullptr;
  return all;
}

InputLog::InputLog(Sink sink, uint64_t most_frame_bytes)
    : sink_(std::move(sink)), most_frame_bytes_(most_frame_bytes) {}
InputLog::~InputLog() = default;

void InputLog::Write(const std::string& payload) {
  if (!gave_up_ && payload.size() > most_frame_bytes_) {
    LogError(fmt::format("the input log ends here: a step of {} bytes is larger than any that is read again, of {}",
                         payload.size(), most_frame_bytes_));
    gave_up_ = true;
  }
  if (gave_up_) return;
  LogWriter head;
  head(static_cast<uint32_t>(payload.size()), FrameChecksum(payload));
  sink_(head.Take() + payload);
}

void InputLog::Begin(const InputFacts& facts) {
  sink_(std::string(kLogMagic));
  LogWriter out;
  out.EnumUpTo(Frame::kFacts, Frame::kEnd);
  out(facts);
  Write(out.Take());
}

void InputLog::BeginStep(const StepInput& input) {
  LogWriter out;
  out.EnumUpTo(Frame::kStep, Frame::kEnd);
  out(input, std::exchange(drains_, false));
  input_ = out.Take();
  in_step_ = true;
}

void InputLog::EndStep(const StepOutput& output) {
  std::vector<LoggedToken> tokens;
  for (const TokenEvent& event : output.tokens) tokens.push_back({event.id, event.choice, event.token.token});
  for (const FinishEvent& event : output.finishes) {
    if (event.reason != FinishReason::kStop) continue;
    const auto last = std::ranges::find_if(
        tokens, [&](const LoggedToken& token) { return token.request == event.id && token.choice == event.choice; });
    if (last != tokens.end()) last->stops = true;
  }
  in_step_ = false;
  LogWriter out;
  if (found_.empty()) NoteFound({});
  std::optional<ArchiveAnswers> archive;
  if (!archive_.empty()) archive = std::exchange(archive_, {});
  out(std::exchange(copies_, {}), store_.Take(), std::exchange(syncs_, {}), archive, tokens,
      output.stats.step_failures > std::exchange(step_failures_, output.stats.step_failures));
  Write(std::exchange(input_, {}) + std::exchange(found_, {}) + out.Take());
}

void InputLog::NoteFound(const std::vector<tier::StoredSession>& found) {
  LogWriter out;
  out(found);
  found_ = out.Take();
}

void InputLog::End() {
  LogWriter out;
  out.EnumUpTo(Frame::kEnd, Frame::kEnd);
  Write(out.Take());
}

}  // namespace cachalot::engine
