#include "cli/loaded_model.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "cli/calibration.h"
#include "cli/compatibility.h"
#include "cli/disk_files.h"
#include "cli/disk_packing.h"
#include "cli/disk_shares.h"
#include "cli/model_identity.h"
#include "cli/terminal.h"
#include "engine/input_log.h"
#include "exec/cpu/cpu_executor.h"
#include "kernels/kernel_table.h"
#include "model/catalogue.h"
#include "model/fetch.h"
#include "model/fingerprint.h"
#include "model/gguf.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kMaxTemplateBytes = 1 << 20;
constexpr uint32_t kMaxThreads = 1024;

Result<exec::CpuModelOptions> CpuOptionsOf(const ModelOptions& options) {
  exec::CpuModelOptions cpu;
  CACHALOT_ASSIGN_OR_RETURN(cpu.kv_type, ParseKvType(options.kv_type));
  cpu.reference = options.reference;
  cpu.block_tokens = options.block_tokens;
  cpu.context_tokens = options.context;
  return cpu;
}

// One per model path and form, made anew when the model changes.
Result<std::string> PanelFileFor(const ModelOptions& options, const std::string& model_path) {
  if (options.weight_cache.empty()) return std::string();
  std::error_code error;
  std::filesystem::create_directories(options.weight_cache, error);
  if (error) return Invalid(fmt::format("--weight-cache {}: {}", options.weight_cache, error.message()));
  const std::filesystem::path path = std::filesystem::absolute(model_path);
  return fmt::format("{}/{}-{:016x}{}.panels", options.weight_cache, path.stem().string(), Hash64(path.string()),
                     options.reference ? ".f32" : "");
}

// Refuses before reading what cannot fit anyway; the exact sum is checked once the weights are packed.
Status CheckFits(const model::GgufFile& file, bool reference, uint64_t available_bytes) {
  uint64_t bytes = 0;
  for (const model::GgufTensor& tensor : file.tensors()) {
    const TensorTypeInfo& info = InfoOf(tensor.type);
    bytes +=
        reference ? tensor.bytes.size() / info.block_bytes * info.block_values * sizeof(float) : tensor.bytes.size();
  }
  if (bytes <= available_bytes) return OkStatus();
  return Invalid(fmt::format("the weights need {}, but only {} of memory are available", FormatBytes(bytes),
                             FormatBytes(available_bytes)));
}

Status ReadChatTemplate(const model::GgufFile& file, LoadedModel* model) {
  CACHALOT_ASSIGN_OR_RETURN(const auto source, file.FindString("tokenizer.chat_template"));
  if (!source) return OkStatus();
  Result<text::ChatTemplate> parsed = text::ChatTemplate::Parse(*source);
  if (parsed.ok()) {
    model->chat_template.emplace(std::move(parsed).value());
  } else {
    model->template_problem = parsed.status().message();
    LogWarning(fmt::format("the model's chat template cannot be used: {}", model->template_problem));
  }
  return OkStatus();
}

Status LoadWeights(const model::GgufFile& file, const ModelOptions& options, LoadedModel* model) {
  CACHALOT_ASSIGN_OR_RETURN(exec::CpuModelOptions cpu, CpuOptionsOf(options));
  CACHALOT_ASSIGN_OR_RETURN(cpu.panel_file, PanelFileFor(options, model->path));
  ProgressBar bar("loading weights");
  CACHALOT_ASSIGN_OR_RETURN(model->weights,
                            exec::CpuModel::Load(file, cpu, *model->pool, [&](double share) { bar.Show(share); }));
  return OkStatus();
}

// All that comes out of the file, which is closed again before KV and activations are claimed.
Status LoadFile(const ModelOptions& options, LoadedModel* model) {
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile file, model::GgufFile::Open(model->path));
  CACHALOT_RETURN_IF_ERROR(CheckFits(file, options.reference, model->available_bytes));
  CACHALOT_ASSIGN_OR_RETURN(model->tokenizer, text::Tokenizer::Create(file));
  CACHALOT_RETURN_IF_ERROR(ReadChatTemplate(file, model));
  CACHALOT_RETURN_IF_ERROR(LoadWeights(file, options, model));
  const exec::CpuModel& weights = *model->weights;
  model->tokenizer_fingerprint = model::TokenizerFingerprint(file);
  model->identity = ModelIdentity(weights.fingerprint(), model->tokenizer_fingerprint, weights.spec(), weights.layout(),
                                  weights.numerics_id());
  return OkStatus();
}

uint64_t SlotsOf(std::span<const KvNeed> needs, const kv::KvGeometry& geometry, uint64_t context_tokens,
                 uint32_t step_tokens) {
  uint64_t most = 0;
  for (const KvNeed& need : needs) {
    const uint64_t total = need.total_tokens == 0 ? context_tokens : need.total_tokens;
    const uint64_t slots = kv::SlotsToPromise(geometry, need.prompt_tokens, total, need.choices, step_tokens).both();
    // A pool holds one sequence however its steps are cut.
    most = std::max({most, slots * need.requests, kv::SlotsToPromise(geometry, total, total, 1, step_tokens).both()});
  }
  return most;
}

Status PlanMemory(const ModelOptions& options, const engine::EngineOptions& engine, std::span<const KvNeed> needs,
                  LoadedModel* model) {
  const exec::CpuModel& weights = *model->weights;
  model->limits = {engine.step_rows, std::max(engine.max_sequences, 1u)};
  model->activation_bytes = exec::CpuWorkspaceBytes(weights, model->limits);
  kv::BudgetInputs inputs;
  inputs.available_bytes = model->available_bytes;
  inputs.weight_bytes = weights.weight_bytes();
  inputs.activation_bytes = model->activation_bytes;
  inputs.kv_bytes = options.kv_memory.bytes;
  inputs.slot_bytes = weights.layout().slot_bytes;
  inputs.geometry = kv::GeometryOf(weights.layout(), 0);
  inputs.context_tokens = weights.context_tokens();
  inputs.step_tokens = std::min(engine.step_rows, engine.prefill_chunk);
  if (!needs.empty()) {
    inputs.kv_bytes = SlotsOf(needs, inputs.geometry, inputs.context_tokens, inputs.step_tokens) * inputs.slot_bytes;
  }
  CACHALOT_ASSIGN_OR_RETURN(model->budget, kv::PlanBudget(inputs));
  return OkStatus();
}

Status OpenStore(const TierOptions& options, uint64_t limit_bytes, const TierRateTable& measured, LoadedModel* model) {
  if (options.disk_path.empty()) return OkStatus();
  const KvLayout& layout = model->weights->layout();
  const uint64_t block_bytes = layout.slot_bytes * layout.groups.size();
  CACHALOT_RETURN_IF_ERROR(CheckSizes(options, {.block_bytes = block_bytes}));
  tier::DiskTierOptions disk;
  disk.folder = options.disk_path;
  disk.limit_bytes = limit_bytes;
  disk.min_free_bytes = options.disk_min_free.bytes;
  CACHALOT_ASSIGN_OR_RETURN(disk.packed_element_bytes,
                            PackedElementBytes(options, layout.shape.type, measured, model->clock));
  Result<std::unique_ptr<tier::DiskStore>> store =
      tier::DiskStore::Open(*model->files, model->clock, std::move(disk), block_bytes, measured);
  if (!store.ok()) return store.status().Annotate("--disk-path");
  model->store = std::move(*store);
  model->store->SlowReads(options.disk_read_rate.bytes);
  const tier::DiskTierStats& found = model->store->stats().disk;
  if (found.discarded_segments + found.damaged_records > 0) {
    LogWarning(
        fmt::format("--disk-path {}: {} segments were removed, as they are unreadable or what was deleted from "
                    "them is not known, and {} damaged records skipped",
                    options.disk_path, found.discarded_segments, found.damaged_records));
  }
  const Result<DiskRoom> room = model->files->Room(options.disk_path);
  if (room.ok() && room->free_bytes <= options.disk_min_free.bytes) {
    LogWarning(fmt::format("--disk-path: {} are free on that disk and --disk-min-free is {}: nothing will be written",
                           FormatBytes(room->free_bytes), FormatBytes(options.disk_min_free.bytes)));
  }
  return OkStatus();
}

// `limit_bytes`: of their files; 0: none.
Status OpenSessions(const std::string& folder, uint64_t limit_bytes, LoadedModel* model) {
  if (folder.empty()) return OkStatus();
  tier::SessionStoreOptions sessions{.folder = folder};
  if (limit_bytes > 0) sessions.limit_bytes = limit_bytes;
  Result<std::unique_ptr<tier::SessionStore>> store = tier::SessionStore::Open(*model->files, model->clock, sessions);
  if (!store.ok()) return store.status().Annotate("--session-path");
  model->session_store = std::move(*store);
  const tier::SessionRecovery& found = model->session_store->recovery();
  if (found.lost_records + found.bad_bytes + found.headless_files > 0) {
    LogWarning(fmt::format(
        "sessions in {}: {} changes are lost, {} bytes damaged and {} files without a readable header; what "
        "they were about is as before, or gone",
        folder, found.lost_records, found.bad_bytes, found.headless_files));
  }
  return OkStatus();
}

Status OpenArchive(const TierOptions& options, LoadedModel* model) {
  if (options.session_files.empty()) return OkStatus();
  Result<std::unique_ptr<tier::FileSessionArchive>> archive =
      tier::FileSessionArchive::Open(*model->files, model->clock,
                                     {.folder = options.session_files,
                                      .key_file = FolderAbove(options.session_files) + "/server.key",
                                      .min_free_bytes = options.disk_min_free.bytes});
  if (!archive.ok()) return archive.status().Annotate("--session-files");
  model->archive = std::move(*archive);
  return OkStatus();
}

Status MakeEngine(const ModelOptions& options, engine::EngineOptions engine_options, LoadedModel* model) {
  const uint64_t slot_bytes = model->weights->layout().slot_bytes;
  if (options.device == "cpu") {
    CACHALOT_ASSIGN_OR_RETURN(model->memory, exec::MakeCpuMemory(slot_bytes, model->budget.slots));
  } else if (options.device == "simlink") {
    CACHALOT_ASSIGN_OR_RETURN(model->memory,
                              exec::MakeSimLinkMemory(slot_bytes, model->budget.slots, {}, model->clock));
  } else {
    return Invalid(fmt::format("--device: expected cpu or simlink, got \"{}\"", options.device));
  }
  model->executor =
      exec::MakeCpuExecutor(*model->weights, *model->memory, model->limits, *model->kernels, *model->pool);
  model->sampler.emplace(*model->kernels);
  const cost::CalibrationKey key = CalibrationKeyOf(*model);
  std::optional<cost::CalibrationProfile> calibration;
  if (options.calibration.empty()) {
    calibration = FindCalibration(key);
  } else {
    CACHALOT_ASSIGN_OR_RETURN(calibration, ReadCalibration(options.calibration, key));
  }
  engine::SessionOptions& sessions = engine_options.sessions;
  CACHALOT_ASSIGN_OR_RETURN(const DiskShares disk,
                            ShareDisk(options.tiers, sessions.most == 0 ? 0 : sessions.memory.bytes));
  sessions.memory.bytes = disk.session_memory;
  CACHALOT_RETURN_IF_ERROR(
      OpenStore(options.tiers, disk.kv_bytes, calibration ? calibration->tiers : TierRateTable{}, model));
  if (sessions.most > 0) {
    CACHALOT_RETURN_IF_ERROR(OpenSessions(SessionFolder(options.tiers), disk.session_bytes, model));
  }
  CACHALOT_RETURN_IF_ERROR(OpenArchive(options.tiers, model));
  CACHALOT_ASSIGN_OR_RETURN(model->host, ClaimHostMemory(options.tiers, model->weights->layout(),
                                                         model->store == nullptr ? 0 : model->store->staging_bytes()));
  engine::ModelFacts facts{.identity = model->identity,
                           .step_curve = {},
                           .store = model->store.get(),
                           .host = model->host == nullptr ? nullptr : model->host->tier.get(),
                           .session_store = model->session_store.get(),
                           .archive = model->archive.get()};
  if (calibration) facts.step_curve = calibration->curve;
  if (engine_options.input_log != nullptr) {
    engine::InputFacts logged = engine::FactsOf(engine_options, facts, *model->executor, *model->memory);
    if (model->host != nullptr) logged.host = {model->host->arena.bytes().size(), options.tiers.host_eviction};
    engine_options.input_log->Begin(logged);
    model->logged_memory = engine::MakeLoggedMemory(*model->memory, *engine_options.input_log);
    if (model->store != nullptr) {
      model->logged_store = engine::MakeLoggedStore(*model->store, *engine_options.input_log);
      facts.store = model->logged_store.get();
    }
    if (model->session_store != nullptr) {
      model->logged_sessions = engine::MakeLoggedSessions(*model->session_store, *engine_options.input_log);
      facts.session_store = model->logged_sessions.get();
    }
    if (model->archive != nullptr) {
      model->logged_archive = engine::MakeLoggedArchive(*model->archive, *engine_options.input_log);
      facts.archive = model->logged_archive.get();
    }
  }
  exec::DeviceMemory& memory = model->logged_memory == nullptr ? *model->memory : *model->logged_memory;
  model->engine = std::make_unique<engine::Engine>(engine_options, *model->executor, memory, *model->sampler, facts);
  return OkStatus();
}

Status CheckOptions(const ModelOptions& model, const engine::EngineOptions& options) {
  if (model.threads > kMaxThreads) {
    return Invalid(fmt::format("--threads is {}, expected at most {}", model.threads, kMaxThreads));
  }
  if (const auto refused = Found({.model = model, .engine = options}, Verdict::kRefused); !refused.empty()) {
    return Invalid(fmt::format("{}", fmt::join(refused, "; ")));
  }
  if (const auto problems = engine::Problems(options); !problems.empty()) {
    return Invalid(fmt::format("--{}", fmt::join(problems, "; --")));
  }
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelOptions& options, const engine::EngineOptions& engine,
                                               std::span<const KvNeed> needs) {
  CACHALOT_RETURN_IF_ERROR(CheckOptions(options, engine));
  auto model = std::make_unique<LoadedModel>();
  CACHALOT_ASSIGN_OR_RETURN(model->files, FilesFor(options.tiers));
  CACHALOT_ASSIGN_OR_RETURN(model->kernels, kernels::SelectTable(options.isa));
  CACHALOT_ASSIGN_OR_RETURN(model->path, model::ResolveModel(options.model, model::DefaultFetchOptions()));
  model->name = model::FindCatalogueEntry(options.model) != nullptr
                    ? options.model
                    : std::filesystem::path(model->path).stem().string();
  CACHALOT_ASSIGN_OR_RETURN(const MemoryInfo memory, ReadMemoryInfo());
  model->available_bytes = memory.available_bytes;
  model->pool = std::make_unique<ThreadPool>(options.threads == 0 ? UsableCpus() : options.threads);
  CACHALOT_RETURN_IF_ERROR(LoadFile(options, model.get()));
  CACHALOT_RETURN_IF_ERROR(PlanMemory(options, engine, needs, model.get()));
  CACHALOT_RETURN_IF_ERROR(MakeEngine(options, engine, model.get()));
  return model;
}

cost::CalibrationKey CalibrationKeyOf(const LoadedModel& model) {
  return {.model = HexOf(model.weights->fingerprint()),
          .numerics = model.weights->numerics_id(),
          .isa = std::string(model.kernels->isa),
          .threads = static_cast<uint32_t>(model.pool->thread_count()),
          .kv_type = KvTypeName(model.weights->layout().shape.type)};
}

std::string StartTable(const LoadedModel& model) {
  const KvLayout& layout = model.weights->layout();
  std::string out;
  const auto row = [&](std::string_view what, const std::string& amount, const std::string& note) {
    out += fmt::format("  {:<12} {:>10}   {}\n", what, amount, note);
  };
  out += fmt::format("{} ({}, kernels {}, {} thread(s))\n", model.name, model.weights->spec().architecture,
                     model.kernels->isa, model.pool->thread_count());
  row("available", FormatBytes(model.available_bytes), "before loading");
  row("weights", FormatBytes(model.weights->weight_bytes()), "packed");
  row("activations", FormatBytes(model.activation_bytes),
      fmt::format("peak, at {} rows a step", FormatCount(model.limits.rows)));
  row("KV budget", FormatBytes(model.budget.kv_bytes),
      fmt::format("{} blocks of {} tokens, {} on {}", FormatCount(model.budget.slots), layout.shape.block_tokens,
                  KvTypeName(layout.shape.type), model.memory->name()));
  row("holds", FormatCount(model.budget.tokens),
      fmt::format("tokens = {:.1f} sequences of {} tokens", model.budget.full_length_sequences,
                  FormatCount(model.weights->context_tokens())));
  row("host memory", FormatBytes(model.host == nullptr ? 0 : model.host->tier->ledger().limit_bytes),
      NoteOn(model.host.get(), model.budget.slots, model.memory->name()));
  if (model.store != nullptr) {
    const tier::DiskTierStats& disk = model.store->stats().disk;
    row("on disk", FormatBytes(disk.live_bytes),
        fmt::format("KV of {} blocks found; read by {}", FormatCount(disk.live_blocks), model.files->ReadsBy()));
  }
  return out;
}

Status OverrideChatTemplate(const std::string& path, LoadedModel* model) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string source, ReadFile(path, kMaxTemplateBytes));
  Result<text::ChatTemplate> parsed = text::ChatTemplate::Parse(source);
  if (!parsed.ok()) return parsed.status().Annotate(path);
  model->chat_template.emplace(std::move(parsed).value());
  return OkStatus();
}

}  // namespace cachalot::cli
