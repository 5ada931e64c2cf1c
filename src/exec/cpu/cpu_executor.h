// CpuExecutor runs a CpuModel's forward pass over paged KV.
// Threads:   Run is called by the engine thread and divides its work among the pool's threads.
// Ownership: borrows model, memory, pool and kernels; owns its workspace.
// Invariant: as Executor; equal bits for every instruction set, thread count, batch and chunking.
// Cost:      no allocation in Run.
#pragma once

#include <memory>

#include "exec/executor.h"

namespace cachalot {
class ThreadPool;
}
namespace cachalot::kernels {
struct KernelTable;
}
namespace cachalot::model {
struct ModelSpec;
}

namespace cachalot::exec {

class CpuModel;
class DeviceMemory;

// Bytes that a step of `limits` needs besides weights and KV: the activation peak.
uint64_t CpuWorkspaceBytes(const CpuModel& model, const StepLimits& limits);
// The same of a model that is not loaded.
uint64_t CpuWorkspaceBytes(const model::ModelSpec& spec, const StepLimits& limits, uint64_t context_tokens);

// The memory's slots must have the model's layout.
std::unique_ptr<Executor> MakeCpuExecutor(const CpuModel& model, DeviceMemory& memory, const StepLimits& limits,
                                          const kernels::KernelTable& kernels, ThreadPool& pool);

}  // namespace cachalot::exec
