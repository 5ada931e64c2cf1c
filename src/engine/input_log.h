// InputLog keeps all that enters an engine: what it was made with, the input of each step, and what the world outside
// answered in it: the tokens that were sampled, what ended by a stop condition, a run that failed, copies and lower
// tiers. With it the same engine makes the same decisions again without the model (engine/input_log_reader.h,
// sim/input_replay.h). It holds what clients sent and got.
// Threads:   engine thread; so is the sink.
// Ownership: owns the sink.
// Invariant: steps are whole, and there is none after one that is missing.
// Cost:      a copy of each request, 13 bytes per token, and those of engine/store_answers.h and
//            engine/archive_answers.h.
//
// The format is in docs/replay.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/kv_layout.h"
#include "engine/archive_answers.h"
#include "engine/engine.h"
#include "engine/input_frames.h"
#include "engine/store_answers.h"

namespace cachalot::tier {
class DurableSessions;
class KvStore;
class SessionArchive;
struct StoredSession;
}  // namespace cachalot::tier

namespace cachalot::engine {

struct HostFacts {
  uint64_t memory_bytes = 0;
  std::string eviction;
};

// What an engine was made with.
struct InputFacts {
  EngineOptions options;  // without logs
  KvLayout layout;
  uint32_t slots = 0;
  uint32_t vocabulary = 0;
  uint64_t context_tokens = 0;
  uint32_t most_rows = 0;  // of one run
  uint32_t most_logit_rows = 0;
  Digest identity{};
  std::optional<StepCurve> step_curve;
  std::optional<TierRate> host_rate;
  std::optional<HostFacts> host;
  bool store = false;     // there is a disk tier
  bool sessions = false;  // they last
  bool archive = false;   // and are saved by name
  bool asynchronous_copies = false;
};

inline constexpr uint32_t kMostTenants = 1 << 16;

// Each names what cannot be, of facts that come from a file.
std::vector<std::string> Problems(const InputFacts& facts);
// But for host memory, which whoever made it knows.
InputFacts FactsOf(const EngineOptions& options, const ModelFacts& facts, const exec::Executor& executor,
                   const exec::DeviceMemory& memory);

struct LoggedToken {
  RequestId request;
  uint32_t choice = 0;
  TokenId token = 0;
  bool stops = false;  // the choice, as its end token or condition says
};

// What a device's memory says of a copy: to Done, and to Wait; to Same that slots are equal is kWell.
enum class CopyAnswer : uint8_t { kUnderWay = 0, kDone = 1, kWell = 2, kFailed = 3, kDiffers = 4 };

// Of DurableSessions::Sync.
struct SyncEnd {
  uint64_t sync = 0;
  bool well = false;
};

// Whoever makes or moves one includes tier/archive_file.h.
struct LoggedStep {
  StepInput input;
  bool drains = false;                              // the engine drains from this step on
  std::vector<tier::StoredSession> found_sessions;  // by the first step, of an earlier process
  std::vector<CopyAnswer> copies;                   // in the order of the questions
  std::optional<StoreAnswers> store;                // nothing: nothing new
  std::vector<SyncEnd> syncs;                       // that ended
  std::optional<ArchiveAnswers> archive;            // nothing: none
  std::vector<LoggedToken> tokens;
  bool run_failed = false;
};

class InputLog {
 public:
  using Sink = std::function<void(std::string)>;

  // With a payload of more than `most_frame_bytes` it ends, and says so: nobody would read it again.
  explicit InputLog(Sink sink, uint64_t most_frame_bytes = kMostFrameBytes);
  ~InputLog();

  // Once, before the first step.
  void Begin(const InputFacts& facts);
  void BeginStep(const StepInput& input);
  void EndStep(const StepOutput& output);
  void Drained() { drains_ = true; }
  // Between steps nobody's answers decide anything.
  void NoteCopy(CopyAnswer answer) {
    if (in_step_) copies_.push_back(answer);
  }
  // Null between steps, as is archive().
  StoreNotes* store() { return in_step_ ? &store_ : nullptr; }
  ArchiveAnswers* archive() { return in_step_ ? &archive_ : nullptr; }
  // By the first step.
  void NoteFound(const std::vector<tier::StoredSession>& found);
  void NoteSync(const SyncEnd& end) { syncs_.push_back(end); }
  // There are no more steps.
  void End();

 private:
  void Write(const std::string& payload);

  const Sink sink_;
  const uint64_t most_frame_bytes_;
  bool in_step_ = false;
  std::string input_;  // of this step, as what follows
  std::string found_;  // sessions, as they are written; empty: none
  std::vector<CopyAnswer> copies_;
  StoreNotes store_;
  ArchiveAnswers archive_;
  std::vector<SyncEnd> syncs_;
  bool drains_ = false;
  uint64_t step_failures_ = 0;
  bool gave_up_ = false;
};

// What the engine is to see of each, so that the log hears what that answers. Both must outlive it.
std::unique_ptr<exec::DeviceMemory> MakeLoggedMemory(exec::DeviceMemory& memory, InputLog& log);
std::unique_ptr<tier::KvStore> MakeLoggedStore(tier::KvStore& store, InputLog& log);
std::unique_ptr<tier::DurableSessions> MakeLoggedSessions(tier::DurableSessions& sessions, InputLog& log);
std::unique_ptr<tier::SessionArchive> MakeLoggedArchive(tier::SessionArchive& archive, InputLog& log);

}  // namespace cachalot::engine
