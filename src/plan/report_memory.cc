#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/report_tables.h"
#include "plan/waste.h"

namespace cachalot::plan {
namespace {

constexpr std::array<uint64_t, 6> kContexts = {1024, 4096, 8192, 32'768, 131'072, 1'048'576};
constexpr std::array<uint64_t, 6> kConcurrencies = {1, 8, 32, 128, 512, 2048};

// Those of a usual list that the model allows, and the request's own.
std::set<uint64_t> ContextsOf(const PlanRequest& request) {
  std::set<uint64_t> contexts = {request.context_tokens};
  const uint64_t limit = request.model.context_tokens == 0 ? kMaxTokens : request.model.context_tokens;
  for (const uint64_t tokens : kContexts) {
    if (tokens <= limit) contexts.insert(tokens);
  }
  return contexts;
}

Table ModelTable(const Plan& plan) {
  const ModelShape& model = plan.request.model;
  Table table{.key = "model", .title = "Model", .columns = {{"what", "what"}, {"value", "value"}}};
  table.rows = {{Text("architecture"), Text(model.architecture)},
                {Text("layers"), Count(model.layers)},
                {Text("of them keep KV"), Count(model.kv_layers.size())},
                {Text("of them read the KV of another layer"), Count(model.attention_layers - model.kv_layers.size())},
                {Text("weights"), Count(model.weights.stored())},
                {Text("weights that one token is multiplied with"), Count(model.weights.used())}};
  table.rows.push_back(model.context_tokens == 0 ? std::vector<Cell>{Text("context"), Text("no limit")}
                                                 : std::vector<Cell>{Text("context"), Tokens(model.context_tokens)});
  table.notes = {fmt::format("From {}. Norms and biases are not counted.", model.source)};
  return table;
}

// What the tokens cost if each query head had its own KV.
uint64_t UngroupedBytes(const Plan& plan) {
  ModelShape model = plan.request.model;
  for (LayerKvShape& layer : model.kv_layers) {
    if (layer.v_dim == layer.k_dim) layer.kv_heads = std::max(layer.kv_heads, model.query_heads);
  }
  return BytesIn(plan.sizes.format, KvBytesPerToken(KvShapeOf(model, plan.sizes.geometry.block_tokens)) / 2);
}

Table KvTable(const Plan& plan) {
  const KvSizes& sizes = plan.sizes;
  const uint64_t tokens = plan.request.context_tokens;
  Table table{.key = "kv",
              .title = fmt::format("KV in {}, blocks of {} tokens, a session of {} tokens", sizes.format.name,
                                   sizes.geometry.block_tokens, FormatCount(tokens)),
              .columns = {{"what", "what"}, {"bytes", "bytes"}}};
  table.rows = {{Text("per token, while every layer keeps it"), Bytes(sizes.token_bytes)},
                {Text("per token, if every query head had its own"), Bytes(UngroupedBytes(plan))},
                {Text("per block of all layer groups"), Bytes(sizes.block_bytes())},
                {Text("recurrent state of a session"), Bytes(sizes.state_bytes)},
                {Text("a session"), Bytes(LiveBytes(sizes, tokens))},
                {Text("a session in whole blocks"), Bytes(PagedBytes(sizes, tokens))},
                {Text("what is set aside to admit it"), Bytes(ReservedBytes(sizes, tokens))}};
  table.notes = {fmt::format("{} layer group(s); steps of at most {} rows; windows keep only what is visible.",
                             sizes.geometry.windows.size(), sizes.step_tokens)};
  return table;
}

Table KvFormatTable(const Plan& plan) {
  Table table{.key = "kv_formats",
              .title = "KV formats",
              .columns = {{"format", "format"},
                          {"bits", "per value"},
                          {"token", "per token"},
                          {"session", "a session"},
                          {"note", "note"}}};
  for (const Format& format : KvFormats()) {
    KvSizes sizes = plan.sizes;
    sizes.format = format;
    const uint64_t token = BytesIn(format, KvBytesPerToken(sizes.shape) / sizeof(uint16_t));
    table.rows.push_back({Text(format.name), Bits(format.bits()), Bytes(token),
                          Bytes(LiveBytes(sizes, plan.request.context_tokens)), Text(format.note)});
  }
  return table;
}

Table WeightTable(const Plan& plan) {
  Table table{.key = "weights",
              .title = "Weights by format",
              .columns = {{"format", "format"}, {"bits", "per packed weight"}, {"bytes", "bytes"}, {"note", "note"}}};
  const WeightCounts& weights = plan.request.model.weights;
  const auto add = [&](const Format& format) {
    table.rows.push_back(
        {Text(format.name), Bits(format.bits()), Bytes(WeightBytes(format, weights)), Text(format.note)});
  };
  if (plan.request.model.file_bytes) add(PublishedFormat(plan.request.model));
  for (const Format& format : WeightFormats()) {
    if (format.packs != Packs::kExperts || weights.experts > 0) add(format);
  }
  table.notes = {"Below 16 bits, embeddings and output stay in 16 bits; whole-file figures are exact."};
  return table;
}

Table MemoryTable(const Plan& plan) {
  const DeviceMemory& memory = plan.group.memory;
  const Machine& machine = plan.request.machine;
  Table table{.key = "memory",
              .title = fmt::format("Memory of one {} of {}", machine.device.title, plan.group.shards.devices()),
              .columns = {{"what", "what"}, {"bytes", "bytes"}}};
  table.rows = {{Text("memory"), Bytes(machine.device.memory_bytes)},
                {Text("used of it"), Bytes(memory.usable_bytes)},
                {Text(fmt::format("weights in {}", plan.request.weight_format.name)), Bytes(memory.weight_bytes)},
                {Text("activations"), Bytes(memory.activation_bytes)},
                {Text("left for KV"), Bytes(memory.pool_bytes)}};
  if (!memory.weights_fit) table.notes.push_back("The weights do not fit: nothing is left for KV.");
  const uint32_t rows = plan.request.kv.step_tokens;
  if (plan.request.activation_bytes == 0) {
    table.notes.push_back(
        fmt::format("Activations are an estimate for steps of {} rows, in 16 bits, as devices keep them.", rows));
  } else if (!plan.request.activations_by.empty()) {
    table.notes.push_back(
        fmt::format("Activations are those of {}, for steps of {} rows.", plan.request.activations_by, rows));
  }
  return table;
}

Table FitsByContext(const Plan& plan) {
  Table table{.key = "fits_by_context",
              .title = "Sequences that fit, by context",
              .columns = {{"context", "context"},
                          {"sequence", "one sequence sets aside"},
                          {"sequences", "that fit"},
                          {"ends_at", "memory ends at"}}};
  const DeviceGroup& group = plan.group;
  for (const uint64_t tokens : ContextsOf(plan.request)) {
    const uint64_t own = ShardTokens(tokens, group.shards);
    const uint64_t fit = SequencesThatFit(group.sizes, group.memory.pool_bytes, own);
    table.rows.push_back({Tokens(tokens), Bytes(ReservedBytes(group.sizes, own) * group.shards.devices()),
                          Sequences(fit), Sequences(fit + 1)});
  }
  return table;
}

Table FitsByConcurrency(const Plan& plan) {
  Table table{.key = "fits_by_concurrency",
              .title = "Context that fits, by sequences at once",
              .columns = {{"sequences", "sequences"}, {"context", "longest of each"}, {"limit", "bound by"}}};
  std::set<uint64_t> concurrencies(kConcurrencies.begin(), kConcurrencies.end());
  if (plan.request.users > 0) concurrencies.insert(plan.request.users);
  const DeviceGroup& group = plan.group;
  const uint64_t limit = plan.request.model.context_tokens == 0 ? kMaxTokens : plan.request.model.context_tokens;
  for (const uint64_t sequences : concurrencies) {
    const uint64_t own =
        TokensThatFit(group.sizes, group.memory.pool_bytes, sequences, ShardTokens(limit, group.shards));
    const uint64_t tokens = std::min(own * group.shards.context, limit);
    table.rows.push_back({Sequences(sequences), Tokens(tokens), Text(tokens == limit ? "the model" : "memory")});
  }
  return table;
}

Table ShardTable(const Plan& plan) {
  Table table{.key = "tensor_shards",
              .title = "Tensor shards",
              .columns = {{"shards", "devices"},
                          {"weights", "weights on each"},
                          {"kv_token", "KV of a token on each"},
                          {"kv_all", "on all"},
                          {"replicas", "times each KV head"},
                          {"sequences", "sequences that fit"}}};
  const uint32_t context = plan.group.shards.context;
  for (uint32_t tensor = 1; tensor <= 64; tensor *= 2) {
    const Result<DeviceGroup> group = MakeGroup(plan.request, {tensor, context});
    if (!group.ok()) {
      table.notes.push_back(group.status().message() + ".");
      break;
    }
    table.rows.push_back({DeviceCount(group->shards.devices()), Bytes(group->memory.weight_bytes),
                          Bytes(group->sizes.token_bytes), Bytes(group->sizes.token_bytes * tensor),
                          Count(group->shard.kv_replicas), Sequences(group->sequences)});
  }
  return table;
}

Table ContextShardTable(const Plan& plan) {
  Table table{
      .key = "context_shards",
      .title = "Context shards",
      .columns = {
          {"shards", "devices"}, {"kv_session", "KV of a session on each"}, {"sequences", "sequences that fit"}}};
  const uint32_t tensor = plan.group.shards.tensor;
  for (const uint32_t context : {1u, 2u, 4u, 8u}) {
    const Result<DeviceGroup> group = MakeGroup(plan.request, {tensor, context});
    if (!group.ok()) break;
    const uint64_t own = ShardTokens(plan.request.context_tokens, group->shards);
    table.rows.push_back(
        {DeviceCount(group->shards.devices()), Bytes(PagedBytes(group->sizes, own)), Sequences(group->sequences)});
  }
  table.notes = {fmt::format("Each holds the weights of {} tensor shard(s) and its part of the positions.", tensor)};
  return table;
}

Table TierTable(const Plan& plan) {
  Table table{.key = "tiers",
              .title = fmt::format("Sessions of {} tokens that tiers hold", FormatCount(plan.request.context_tokens)),
              .columns = {{"tier", "tier"}, {"bytes", "for KV"}, {"sessions", "sessions"}}};
  const uint64_t session = PagedBytes(plan.sizes, plan.request.context_tokens);
  const auto add = [&](std::string_view tier, uint64_t bytes, uint64_t sessions) {
    table.rows.push_back({Text(tier), Bytes(bytes), Sequences(sessions)});
  };
  add("device memory", plan.group.pool_bytes(), plan.group.sequences);
  if (session == 0) return table;
  if (plan.request.host_bytes > 0) add("host memory", plan.request.host_bytes, plan.request.host_bytes / session);
  if (plan.request.disk_bytes > 0) add("disk", plan.request.disk_bytes, plan.request.disk_bytes / session);
  return table;
}

Table WasteTable(const Plan& plan) {
  const uint64_t tokens = plan.request.context_tokens;
  const uint64_t most = plan.request.model.context_tokens == 0 ? tokens : plan.request.model.context_tokens;
  Table table{
      .key = "waste",
      .title = fmt::format("A session of {} tokens, where {} are allowed", FormatCount(tokens), FormatCount(most)),
      .columns = {{"way", "allocation"}, {"bytes", "takes"}, {"waste", "of it wasted"}, {"note", "note"}}};
  for (const Allocation& way : CompareAllocations(plan.sizes, tokens, most)) {
    table.rows.push_back({Text(way.way), Bytes(way.allocated_bytes), Share(way.waste), Text(way.note)});
  }
  return table;
}

}  // namespace

std::vector<Table> MemoryTables(const Plan& plan) {
  return {ModelTable(plan),        KvTable(plan),       KvFormatTable(plan),     WeightTable(plan),
          MemoryTable(plan),       FitsByContext(plan), FitsByConcurrency(plan), ShardTable(plan),
          ContextShardTable(plan), TierTable(plan),     WasteTable(plan)};
}

}  // namespace cachalot::plan
