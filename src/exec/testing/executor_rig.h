// ExecutorRig runs a GGUF model on the CPU executor with page tables of its own: scattered slots, windows that move on.
// Threads:   one caller.
// Ownership: owns model, memory, executor and page tables.
// Invariant: slots that hold nothing visible are filled with bytes that are NaNs in every KV type.
// Cost:      that of the model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "exec/cpu/cpu_model.h"
#include "exec/device_memory.h"
#include "exec/executor.h"

namespace cachalot::exec {

struct RigOptions {
  std::string isa = "auto";
  size_t threads = 1;
  CpuModelOptions model;
  StepLimits limits{600, 600};
  uint32_t slots = 2048;
  uint64_t scatter_seed = 0;  // 0: slots in order
};

class ExecutorRig {
 public:
  // Aborts on a broken model: tests only.
  ExecutorRig(const std::string& gguf_bytes, const RigOptions& options);

  struct Piece {
    uint32_t sequence = 0;  // any small number; a new one begins an empty sequence
    std::vector<TokenId> tokens;
    uint32_t logit_rows = 0;
    LayerGate* gate = nullptr;
  };
  // One step of all pieces; their logits in order, [logit rows][vocabulary].
  std::vector<float> Run(const std::vector<Piece>& pieces);
  // All tokens of one new sequence in chunks of at most `chunk`; the last row's logits.
  std::vector<float> RunWhole(uint32_t sequence, const std::vector<TokenId>& tokens, uint32_t chunk);

  // A new sequence with the tokens of another: its full blocks are shared, a last one that is not full is copied.
  void Fork(uint32_t from, uint32_t to);

  // The slots that a sequence holds in one layer group.
  std::vector<uint32_t> SlotsOf(uint32_t sequence, uint32_t group) const {
    return sequences_[sequence].groups[group].slots;
  }
  // The KV bytes of a sequence's written positions, in position order, and of nothing else.
  std::string KvBytes(uint32_t sequence) const;

  Executor& executor() { return *executor_; }
  DeviceMemory& memory() { return *memory_; }
  const CpuModel& model() const { return *model_; }

 private:
  struct Group {
    std::vector<uint32_t> slots;
    uint32_t first_block = 0;
  };
  struct Sequence {
    std::vector<Group> groups;
    uint64_t length = 0;
  };

  uint32_t TakeSlot();
  void DropSlot(uint32_t slot);
  void Grow(Sequence& sequence, uint64_t tokens);
  void LeaveWindows(Sequence& sequence);
  void Poison(uint32_t slot);

  ThreadPool pool_;
  std::unique_ptr<CpuModel> model_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<Executor> executor_;
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> slot_users_;
  std::vector<Sequence> sequences_;
};

}  // namespace cachalot::exec
