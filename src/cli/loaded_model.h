// LoadedModel wires a model file into a running engine: tokenizer, weights, KV memory, executor.
// Threads:   built by the main thread; the engine is then owned by whoever steps it.
// Ownership: owns all parts, in the order in which they depend on each other.
// Invariant: weights, activations and KV fit the memory that was available at the start.
// Cost:      reads every byte of the file once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cli/host_memory.h"
#include "cli/model_options.h"
#include "cost/calibration_profile.h"
#include "engine/engine.h"
#include "exec/cpu/cpu_model.h"
#include "exec/device_memory.h"
#include "exec/executor.h"
#include "exec/sampler.h"
#include "kernels/kernel_table.h"
#include "kv/budget.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "tier/disk_store.h"
#include "tier/durable_sessions.h"
#include "tier/file_session_archive.h"
#include "tier/session_store.h"

namespace cachalot::cli {

struct LoadedModel {
  std::string path;
  std::string name;  // for clients: the catalogue's, or the file's without folder and ending
  Digest tokenizer_fingerprint{};
  Digest identity{};  // of its KV
  std::unique_ptr<const text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  std::string template_problem;  // why the file's chat template cannot be used; empty when it can or has none
  const kernels::KernelTable* kernels = nullptr;
  std::unique_ptr<ThreadPool> pool;
  std::optional<exec::CpuModel> weights;
  exec::StepLimits limits;
  uint64_t activation_bytes = 0;
  uint64_t available_bytes = 0;  // before loading
  kv::BudgetPlan budget;
  SteadyClock clock;
  std::unique_ptr<exec::DeviceMemory> memory;
  std::unique_ptr<exec::DeviceMemory> logged_memory;  // what the engine sees of it where its input is logged; or null
  std::unique_ptr<exec::Executor> executor;
  std::optional<exec::Sampler> sampler;
  std::unique_ptr<FileSystem> files;
  std::unique_ptr<HostMemory> host;                        // null without --host-memory
  std::unique_ptr<tier::DiskStore> store;                  // null without --disk-path
  std::unique_ptr<tier::KvStore> logged_store;             // as logged_memory
  std::unique_ptr<tier::FileSessionArchive> archive;       // null without --session-files
  std::unique_ptr<tier::SessionStore> session_store;       // null without a folder
  std::unique_ptr<tier::DurableSessions> logged_sessions;  // as logged_memory
  std::unique_ptr<tier::SessionArchive> logged_archive;    // likewise
  std::unique_ptr<engine::Engine> engine;
};

// `requests` requests at once, of `choices` sequences each, that grow from their prompts to `total_tokens`.
struct KvNeed {
  uint64_t prompt_tokens = 1;
  uint64_t total_tokens = 0;  // 0: the context
  uint32_t choices = 1;
  uint32_t requests = 1;
};

// Progress goes to standard error when that is a terminal. With `needs` the KV budget is what the largest of them
// takes, in the place of --kv-memory; options.context must hold each.
Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelOptions& options, const engine::EngineOptions& engine,
                                               std::span<const KvNeed> needs = {});

cost::CalibrationKey CalibrationKeyOf(const LoadedModel& model);

// Weights, activation peak, KV budget and what that holds, as a table.
std::string StartTable(const LoadedModel& model);

// Puts the template of a file in the place of the model's own (--chat-template).
Status OverrideChatTemplate(const std::string& path, LoadedModel* model);

}  // namespace cachalot::cli
