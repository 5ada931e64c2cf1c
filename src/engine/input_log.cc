#include "engine/input_log.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "engine/input_fields.h"
#include "exec/device_memory.h"
#include "exec/executor.h"

namespace cachalot::engine {
namespace {

constexpr std::string_view kMagic = "CACHINP3";
constexpr size_t kFrameHead = 8;  // length and checksum of what follows
constexpr uint32_t kMostTenants = 1 << 16;
constexpr uint32_t kMostChoices = 1 << 16;
constexpr uint32_t kMostSlots = 1 << 26;
constexpr uint64_t kMostContext = uint64_t{1} << 32;

enum class Frame : uint8_t { kFacts = 0, kStep = 1, kEnd = 2 };

uint32_t ChecksumOf(std::string_view bytes) { return Crc32c(std::as_bytes(std::span(bytes))); }

// Each setting under its name, so that a log of another version is told from a broken one.
struct OptionsOut {
  LogWriter& a;
  void operator()(std::string_view name, auto& value, std::string_view) { Write(name, value); }
  void Write(std::string_view name, const ByteSize& value) { a(std::string(name), value.bytes); }
  void Write(std::string_view name, const auto& value) { a(std::string(name), value); }
};

struct OptionsIn {
  LogReader& a;
  void operator()(std::string_view name, auto& value, std::string_view) {
    std::string written;
    a(written);
    if (written != name) a.Fail();
    Read(value);
  }
  void Read(ByteSize& value) { a(value.bytes); }
  void Read(auto& value) { a(value); }
};

void VisitWith(LogWriter& a, auto options) { options.Visit(OptionsOut{a}); }  // a copy: Visit hands out mutable fields
void VisitWith(LogReader& a, auto& options) { options.Visit(OptionsIn{a}); }

}  // namespace

void Fields(auto& a, Like<TenantTerms> auto& v) {
  VisitWith(a, v);
  a(v.weight);
}

void Fields(auto& a, Like<EngineOptions> auto& v) {
  VisitWith(a, v);
  a(v.tenants);
}

void Fields(auto& a, Like<LayerKvShape> auto& v) { a(v.kv_heads, v.k_dim, v.v_dim, v.window); }
void Fields(auto& a, Like<LayerGroup> auto& v) { a(v.window, v.layers, v.used_bytes); }

void Fields(auto& a, Like<LayerPlace> auto& v) { a(v.group, v.k_offset, v.v_offset); }

void Fields(auto& a, Like<KvLayout> auto& v) {
  a(v.shape.layers);
  a.EnumUpTo(v.shape.type, KvType::kBF16);
  a(v.shape.block_tokens, v.slot_bytes, v.groups, v.places);
}

void Fields(auto& a, Like<HostFacts> auto& v) { a(v.memory_bytes, v.eviction); }

void Fields(auto& a, Like<InputFacts> auto& v) {
  a(v.options, v.layout, v.slots, v.vocabulary, v.context_tokens, v.most_rows, v.most_logit_rows);
  a(v.identity, v.step_curve, v.host_rate, v.host, v.store, v.sessions, v.archive, v.asynchronous_copies);
}

void Fields(auto& a, Like<CopyAnswer> auto& v) { a.EnumUpTo(v, CopyAnswer::kDiffers); }
void Fields(auto& a, Like<SyncEnd> auto& v) { a(v.sync, v.well); }
void Fields(auto& a, Like<LoggedToken> auto& v) { a(v.request, v.choice, v.token, v.stops); }

namespace {

// Of an arrival from a file.
bool MayBe(const GenerateRequest& request) {
  return request.tenant.value < kMostTenants && request.n <= kMostChoices &&
         std::ranges::is_sorted(request.end_tokens) && request.retention.ttl >= Nanos(0) &&
         request.retention.pin >= Nanos(0);
}

bool MayBe(const StoreAnswers& answers) {
  const auto rate = [](const ChangedAnswer<TierRate>& changed) {
    const TierRate& r = changed.answer;
    return r.latency_seconds >= 0 && r.latency_seconds < 1e9 && r.bytes_per_second > 0 && r.bytes_per_second < 1e18;
  };
  return std::ranges::all_of(answers.load_rates, rate) &&
         std::ranges::all_of(answers.deadlines, [](const auto& changed) { return changed.answer >= Nanos(0); });
}

// As a file's reader promises it.
bool MayBe(const ArchiveAnswers& answers) {
  return std::ranges::all_of(answers.ends,
                             [](const ArchiveEnd& end) { return end.groups.size() <= tier::kArchivedKvBlocks; }) &&
         std::ranges::all_of(answers.headers, [](const tier::ArchiveHeader& header) {
           return uint64_t{header.blocks} * header.block_tokens <= header.session.tokens.size();
         });
}

bool MayFollow(const LoggedStep& step, Nanos before) {
  constexpr Nanos kLatest = std::chrono::hours(24 * 365 * 100);
  const StepInput& input = step.input;
  const auto may_arrive = [](const GenerateRequest& request) { return MayBe(request); };
  const auto may_be = [&](const Inquiry& inquiry) { return std::ranges::all_of(inquiry.requests, may_arrive); };
  return input.now >= before && input.now < kLatest && input.last_duration >= Nanos(0) &&
         input.last_duration < kLatest && input.waited >= Nanos(0) && input.waited < kLatest &&
         (!step.store || MayBe(*step.store)) && (!step.archive || MayBe(*step.archive)) &&
         std::ranges::all_of(input.arrivals, may_arrive) && std::ranges::all_of(input.inquiries, may_be);
}

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

InputLog::InputLog(Sink sink) : sink_(std::move(sink)) {}
InputLog::~InputLog() = default;

void InputLog::Write(const std::string& payload) {
  LogWriter head;
  head(static_cast<uint32_t>(payload.size()), ChecksumOf(payload));
  sink_(head.Take() + payload);
}

void InputLog::Begin(const InputFacts& facts) {
  sink_(std::string(kMagic));
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

namespace {

// Frames of a log, one after the other.
class FrameReader {
 public:
  explicit FrameReader(std::string_view bytes) : bytes_(bytes), at_(kMagic.size()) {}

  uint64_t at() const { return at_; }
  Result<std::string_view> Next() {
    const std::string_view left = bytes_.substr(at_);
    if (left.empty()) return Damage("the log ends without its end mark, as after a crash");
    if (left.size() < kFrameHead) return Damage("the log ends in mid-frame");
    uint32_t size = 0, checksum = 0;
    LogReader head(left.substr(0, kFrameHead));
    head(size, checksum);
    if (left.size() - kFrameHead < size) return Damage("the log ends in mid-frame");
    const std::string_view payload = left.substr(kFrameHead, size);
    if (ChecksumOf(payload) != checksum) return Damage("a frame's checksum is wrong");
    at_ += kFrameHead + size;
    return payload;
  }
  Status Damage(std::string_view what) const { return Status(Code::kCorrupt, fmt::format("offset {}: {}", at_, what)); }

 private:
  const std::string_view bytes_;
  uint64_t at_;
};

Result<InputFacts> ReadFacts(FrameReader& frames) {
  const uint64_t at = frames.at();
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view payload, frames.Next());
  InputFacts facts;
  Frame frame{};
  LogReader in(payload);
  in.EnumUpTo(frame, Frame::kEnd);
  in(facts);
  if (!in.done() || frame != Frame::kFacts) {
    return Invalid(fmt::format("offset {}: expected what this version knows of an engine and its options", at));
  }
  if (const auto problems = Problems(facts); !problems.empty()) {
    return Invalid(fmt::format("offset {}: no engine is so: {}", at, problems.front()));
  }
  return facts;
}

}  // namespace

Result<LoggedInputs> ParseInputLog(std::string_view bytes) {
  if (!bytes.starts_with(kMagic))
    return Invalid(fmt::format("offset 0: expected an input log, which begins {}", kMagic));
  FrameReader frames(bytes);
  LoggedInputs log;
  CACHALOT_ASSIGN_OR_RETURN(log.facts, ReadFacts(frames));
  Nanos now{0};
  for (;;) {
    const uint64_t at = frames.at();
    const Result<std::string_view> payload = frames.Next();
    if (!payload.ok()) {
      log.damage = payload.status();
      return log;
    }
    Frame frame{};
    LoggedStep step;
    LogReader in(*payload);
    in.EnumUpTo(frame, Frame::kEnd);
    if (frame == Frame::kEnd && in.done()) break;
    in(step.input, step.drains, step.found_sessions, step.copies, step.store, step.syncs, step.archive, step.tokens,
       step.run_failed);
    if (!in.done() || frame != Frame::kStep || !MayFollow(step, now)) {
      log.damage = Status(Code::kCorrupt, fmt::format("offset {}: expected a step, later than those before", at));
      return log;
    }
    now = step.input.now;
    log.steps.push_back(std::move(step));
  }
  if (frames.at() != bytes.size()) log.damage = frames.Damage("something follows the log's end");
  return log;
}

}  // namespace cachalot::engine
