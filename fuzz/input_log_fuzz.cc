// Changes an input log, makes its checksums right, reads it and replays it: whatever it says, it is refused, or an
// engine runs on it to the end.
//
// The input is a list of changes of five bytes: which frame, two for the place in it, how, and the new byte. A single
// byte after them: another eviction policy.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/random.h"
#include "base/testing/fault_file_system.h"
#include "engine/engine.h"
#include "engine/input_log_reader.h"
#include "exec/sim/sim_executor.h"
#include "exec/sim/sim_memory.h"
#include "sim/input_replay.h"
#include "sim/sim_tiers.h"
#include "tier/archive_file.h"
#include "tier/file_session_archive.h"
#include "tier/session_store.h"
#include "tier/testing/fake_transfer_engine.h"

namespace cachalot {
namespace {

constexpr size_t kMagicBytes = 8;
constexpr size_t kFrameHead = 8;
constexpr uint32_t kMostSlots = 4096;
constexpr uint64_t kMostHostBytes = 1 << 24;
constexpr uint32_t kSlots = 16;

engine::GenerateRequest AnyRequest(uint64_t id, SplitMix64& random) {
  engine::GenerateRequest request;
  request.id = RequestId(id);
  request.prompt.assign(1 + random.Below(60), static_cast<TokenId>(random.Below(4)));
  request.max_tokens = static_cast<uint32_t>(random.Below(20));
  request.n = 1 + static_cast<uint32_t>(random.Below(2));
  request.end_tokens = {7};
  if (random.Below(2) == 0) request.session = engine::SessionName{"owner", "id"};
  if (random.Below(3) == 0) request.retention.pin = Nanos(1000);
  return request;
}

// One session of its own is saved, and restored under another name.
void AddSessionCommands(uint64_t step, engine::StepInput* input) {
  const auto add = [&](engine::SessionVerb verb, const char* id, const char* other) {
    input->session_commands.push_back(
        {.id = engine::SessionCommandId(step), .verb = verb, .name = {"owner", id}, .other = other});
  };
  if (step % 6 == 0) add(engine::SessionVerb::kFork, "id", "");
  if (step == 15) add(engine::SessionVerb::kSave, "id", "file");
  if (step == 22 || step == 38) add(engine::SessionVerb::kRestore, "restored", "file");
  if (step == 30) add(engine::SessionVerb::kDelete, "restored", "");
  if (step == 36) add(engine::SessionVerb::kSuspend, "id", "");
}

// Where sessions last and are saved: files in memory.
struct SessionPlaces {
  explicit SessionPlaces(ManualClock& clock) {
    const auto transfers = [&](auto) -> Result<std::unique_ptr<tier::TransferEngine>> {
      const tier::TransferOptions options{.limits = {.in_flight_bytes = {1, 1}}, .threads = 1};
      return std::unique_ptr<tier::TransferEngine>(new tier::FakeTransferEngine({}, options, {}, clock));
    };
    const auto entropy = [] { return uint64_t{7}; };
    store =
        tier::SessionStore::Open(files, clock, {.folder = "/sessions", .lock = false, .entropy = entropy}, transfers)
            .value();
    archive = tier::FileSessionArchive::Open(
                  files, clock, {.folder = "/saved", .key_file = "/server.key", .entropy = entropy}, transfers)
                  .value();
  }
  FaultFileSystem files;
  std::unique_ptr<tier::SessionStore> store;
  std::unique_ptr<tier::FileSessionArchive> archive;
};

// Of an engine over host memory and a disk, under a little of everything.
std::string MakeLog() {
  std::string bytes;
  engine::InputLog log([&](const std::string& more) { bytes += more; });
  engine::EngineOptions options{
      .max_sequences = 4, .prefill_chunk = 32, .admission = "expected", .pin_budget = 0.1, .input_log = &log};
  ManualClock clock;
  exec::SimExecutor executor({}, clock);
  exec::SimMemory memory(executor.layout().slot_bytes, kSlots, std::nullopt, clock);
  exec::Sampler sampler = exec::SimSampler();
  const sim::SimTierOptions sizes{.link = {}, .host_blocks = 20, .disk_blocks = 1 << 20};
  const std::unique_ptr<sim::SimTiers> tiers = sim::SimTiers::Make(sizes, executor.layout(), clock).value();
  const std::unique_ptr<tier::KvStore> store = engine::MakeLoggedStore(*tiers->store(), log);
  const SessionPlaces places(clock);
  const std::unique_ptr<tier::DurableSessions> sessions = engine::MakeLoggedSessions(*places.store, log);
  const std::unique_ptr<tier::SessionArchive> archive = engine::MakeLoggedArchive(*places.archive, log);
  const engine::ModelFacts facts{.step_curve = StepCurve{1e-3, 1e-2, 1e-6, 1e-6, 1e-5},
                                 .host_rate = {},
                                 .store = store.get(),
                                 .host = tiers->host(),
                                 .session_store = sessions.get(),
                                 .archive = archive.get()};
  engine::Engine engine(options, executor, memory, sampler, facts);
  engine::InputFacts logged = engine::FactsOf(options, facts, executor, memory);
  logged.host = engine::HostFacts{tiers->host()->ledger().limit_bytes, sizes.host_eviction};
  log.Begin(logged);
  SplitMix64 random(1);
  for (uint64_t step = 1; step < 45; ++step) {
    clock.Advance(Nanos(1'000'000));
    engine::StepInput input{.now = clock.Now(), .last_duration = Nanos(100'000'000), .unix_seconds = step};
    if (step < 35) input.arrivals.push_back(AnyRequest(step, random));
    if (step % 5 == 0) input.cancels.push_back(RequestId(step - 1));
    if (step % 17 == 0) input.inquiries.push_back({engine::InquiryId(step), engine::InquiryKind::kClear, {}});
    AddSessionCommands(step, &input);
    engine.Step(std::move(input));
  }
  log.End();
  return bytes;
}

struct Part {
  size_t begin = 0;
  size_t end = 0;
};

std::vector<Part> PayloadsOf(std::string_view bytes) {
  std::vector<Part> parts;
  for (size_t at = kMagicBytes; at < bytes.size(); at = parts.back().end) {
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= size_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
    parts.push_back({at + kFrameHead, at + kFrameHead + size});
  }
  return parts;
}

void MakeRight(std::string& bytes, const Part& part) {
  const std::string_view payload = std::string_view(bytes).substr(part.begin, part.end - part.begin);
  const uint32_t checksum = Crc32c(std::as_bytes(std::span(payload)));
  for (size_t i = 0; i < 4; ++i) bytes[part.begin - 4 + i] = static_cast<char>(checksum >> (8 * i));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  SetLogLevel(LogLevel::kOff);
  static const std::string log = MakeLog();
  static const std::vector<Part> parts = PayloadsOf(log);
  std::string bytes = log;
  for (; size >= 5; data += 5, size -= 5) {
    const Part& part = parts[data[0] % parts.size()];
    char& byte = bytes[part.begin + (data[1] | data[2] << 8) % (part.end - part.begin)];
    byte = static_cast<char>(data[3] % 2 == 0 ? data[4] : byte ^ data[4]);
    MakeRight(bytes, part);
  }
  Result<engine::InputLogReader> read = engine::InputLogReader::Open(engine::SourceOf(bytes));
  if (!read.ok() || read->facts().slots > kMostSlots) return 0;
  if (read->facts().host && read->facts().host->memory_bytes > kMostHostBytes) return 0;
  std::optional<sim::OtherPolicy> other;
  if (size == 1) other = sim::OtherPolicy{.eviction = "length"};
  static_cast<void>(sim::ReplayInputs(*read, other, [](const std::string&) {}));
  return 0;
}

}  // namespace cachalot
