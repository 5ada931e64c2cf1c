#include "plan/levers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "kv/eviction.h"
#include "kv/geometry.h"
#include "plan/decoding.h"

namespace cachalot::plan {
namespace {

constexpr uint64_t kLeastDiskSlots = 1024;              // below, a disk's files hold hardly a block each
constexpr uint64_t kMostDiskBlock = uint64_t{8} << 20;  // bytes; above, they do not hold a few
constexpr std::string_view kEstimate = "not in this server: an estimate by plan";
constexpr std::string_view kOtherModel = "another model: an estimate by plan";
constexpr std::string_view kNamedLimits = "clients that name a larger limit themselves must name this one";
constexpr std::string_view kNotAsked = "what requests ask for is not known: taken is what their answers have";

// Gathers levers: copies of the present with one change.
class Levers {
 public:
  explicit Levers(const Present& present) : present_(present) {}

  Setting now() const { return present_.setting; }
  const Present& present() const { return present_; }
  // Of output, by one request; 0: not known.
  uint64_t MostAsked() const { return std::max<uint64_t>(present_.traffic.asked_most, present_.setting.max_tokens); }
  void Add(Lever lever) { levers_.push_back(std::move(lever)); }
  std::vector<Lever> Take() && { return std::move(levers_); }

 private:
  const Present& present_;
  std::vector<Lever> levers_;
};

void AddPrefixes(Levers& levers) {
  Setting setting = levers.now();
  if (!setting.prefix_cache) {
    setting.prefix_cache = true;
    levers.Add({.name = "prefix caching", .flags = "--prefix-cache", .setting = setting});
  }
  if (levers.present().traffic.reorder) {
    setting.reordered = true;
    levers.Add(
        {.name = setting.prefix_cache == levers.now().prefix_cache ? "prompt order" : "prefix caching and prompt order",
         .flags = levers.now().prefix_cache ? "" : "--prefix-cache",
         .setting = setting,
         .price = Price::kClients,
         .risk = Risk::kQuality,
         .note = levers.present().traffic.reorder_note});
  }
}

void AddPolicies(Levers& levers) {
  const Setting now = levers.now();
  for (const std::string_view policy : kv::EvictionPolicyNames()) {
    if (policy == now.eviction || !now.prefix_cache) continue;
    Setting setting = now;
    setting.eviction = policy;
    levers.Add({.name = fmt::format("eviction by {}", policy),
                .flags = fmt::format("--eviction {}", policy),
                .setting = setting});
  }
  Setting setting = now;
  setting.thrash_control = !now.thrash_control;
  levers.Add({.name = now.thrash_control ? "no thrash control" : "thrash control",
              .flags = now.thrash_control ? "--no-thrash-control" : "--thrash-control",
              .setting = setting});
  for (const std::string_view admission : {"guaranteed", "expected"}) {
    if (admission == now.admission) continue;
    setting = now;
    setting.admission = admission;
    std::string note = admission == "expected" ? "some requests may be preempted and computed again" : "";
    if (levers.MostAsked() == 0) note += fmt::format("{}{}", note.empty() ? "" : "; ", kNotAsked);
    levers.Add({.name = fmt::format("{} admission", admission),
                .flags = fmt::format("--admission {}", admission),
                .setting = setting,
                .note = std::move(note)});
  }
  for (const double reserve : {0.0, 0.02, 0.1}) {  // vLLM's watermark
    if (now.admission == "guaranteed" || reserve == now.admission_reserve) continue;
    setting = now;
    setting.admission_reserve = reserve;
    levers.Add({.name = fmt::format("{:.0f} % of the pool left free by admission", reserve * 100),
                .flags = fmt::format("--admission-reserve {}", reserve),
                .setting = setting});
  }
}

void AddSteps(Levers& levers) {
  const Setting now = levers.now();
  for (const uint32_t sequences : {now.max_sequences / 2, now.max_sequences * 2, now.max_sequences * 4}) {
    if (sequences == 0) continue;
    Setting setting = now;
    setting.max_sequences = sequences;
    levers.Add({.name = fmt::format("{} sequences at once", sequences),
                .flags = fmt::format("--max-sequences {}", sequences),
                .setting = setting});
  }
  for (const uint32_t rows : {128u, 2048u}) {
    if (rows == now.step_rows) continue;
    Setting setting = now;
    setting.step_rows = std::max(rows, now.max_sequences);
    setting.prefill_chunk = rows;
    levers.Add({.name = fmt::format("steps of {} rows", setting.step_rows),
                .flags = fmt::format("--step-rows {} --prefill-chunk {}", setting.step_rows, rows),
                .setting = setting});
  }
}

// Blocks are of another size now: each tier holds as many bytes of them as before.
void SetSlotBytes(Setting& setting, uint64_t slot_bytes) {
  for (uint64_t* slots : {&setting.slots, &setting.host_slots, &setting.disk_slots}) {
    *slots = *slots * setting.slot_bytes / slot_bytes;
  }
  setting.slot_bytes = slot_bytes;
}

// The same where its KV is of another shape.
void SetKv(Setting& setting, const KvShape& kv) {
  setting.kv = kv;
  const Result<KvLayout> layout = PlanKvLayout(kv, setting.context_tokens);
  if (layout.ok()) SetSlotBytes(setting, layout->slot_bytes);
}

// Blocks of 16 tokens instead of larger ones.
void AddBlocks(Levers& levers) {
  constexpr uint32_t kSmall = 16;
  if (levers.now().kv.block_tokens <= kSmall) return;
  PlanRequest request = levers.present().request;
  request.kv.block_tokens = kSmall;
  const Result<Setting> small = SettingOf(request, levers.present().kv_bytes);
  if (!small.ok()) return;
  Setting setting = levers.now();
  setting.kv = small->kv;
  SetSlotBytes(setting, small->slot_bytes);
  levers.Add({.name = "smaller blocks", .flags = "--block-tokens 16", .setting = setting});
}

std::string SizeOf(uint64_t bytes) { return fmt::format("{}MiB", std::max<uint64_t>(bytes >> 20, 1)); }

void AddTiers(Levers& levers) {
  const Setting now = levers.now();
  if (!now.prefix_cache) return;
  // No more than there is text to keep.
  const uint64_t block = uint64_t{now.kv.block_tokens};
  const uint64_t all = (levers.present().traffic.distinct_tokens + block - 1) / block;
  const auto slots = [&](uint64_t times) { return std::min(now.slots * times, std::max<uint64_t>(all, now.slots)); };
  if (now.host_link && (now.host_slots == 0 || now.host_slots < all)) {
    Setting setting = now;
    setting.host_slots = now.host_slots == 0 ? slots(4) : 2 * now.host_slots;
    levers.Add({.name = now.host_slots == 0 ? "host memory for KV" : "twice the host memory for KV",
                .flags = fmt::format("--host-memory {}", SizeOf(setting.host_slots * now.slot_bytes)),
                .setting = setting,
                .price = Price::kMemory});
  }
  if (now.slot_bytes <= kMostDiskBlock && (now.disk_slots == 0 || now.disk_slots < all)) {
    Setting setting = now;
    setting.disk_slots = now.disk_slots == 0 ? std::max(slots(16), kLeastDiskSlots) : 2 * now.disk_slots;
    levers.Add({.name = now.disk_slots == 0 ? "disk for KV" : "twice the disk for KV",
                .flags = fmt::format("--disk-path DIR --disk-size {}", SizeOf(setting.disk_slots * now.slot_bytes)),
                .setting = setting,
                .price = Price::kMemory,
                .note = DiskRateText(levers.present().request.machine, now)});
  }
}

// Tokens take a share of what they take now, in every tier and on every link.
Setting Shrunk(const Setting& now, double share) {
  Setting setting = now;
  KvShape kv = now.kv;
  for (LayerKvShape& layer : kv.layers) {
    const auto bytes = static_cast<double>(KvBytesPerToken(layer, kv.type)) * share;
    const uint32_t pair = 2 * KvTypeBytes(kv.type);
    layer = {.kv_heads = static_cast<uint32_t>(std::ceil(bytes / pair)), .k_dim = 2, .window = layer.window};
  }
  SetKv(setting, kv);
  setting.reading[2] *= share;
  setting.reading[3] *= share;
  return setting;
}

void AddCodecs(Levers& levers) {
  for (const std::string_view name : {"int8", "int4"}) {
    const Result<Format> format = FindKvFormat(name);
    const double share = format.ok() ? format->bits() / levers.present().request.kv.format.bits() : 1;
    if (share > 0.9) continue;
    levers.Add({.name = fmt::format("KV as {}", name),
                .setting = Shrunk(levers.now(), share),
                .price = Price::kNotHere,
                .risk = Risk::kQuality,
                .note = fmt::format("{:.1f} bits a value; {}", format->bits(), kEstimate)});
  }
}

void AddCaps(Levers& levers) {
  const TrafficFacts& traffic = levers.present().traffic;
  if (traffic.context_p99 < traffic.context_most && traffic.context_p99 < levers.now().context_tokens) {
    Setting setting = levers.now();
    setting.context_tokens = traffic.context_p99;
    levers.Add({.name = fmt::format("context of at most {} tokens", FormatCount(traffic.context_p99)),
                .flags = fmt::format("--context {}", traffic.context_p99),
                .setting = setting,
                .risk = Risk::kRefuses,
                .note = "the longest requests are refused"});
  }
  const uint64_t asked = levers.MostAsked();
  const auto limited = [&](uint64_t tokens) {
    Setting setting = levers.now();
    setting.output_limit = tokens;
    setting.max_tokens = static_cast<uint32_t>(std::min<uint64_t>(setting.max_tokens, tokens));
    return setting;
  };
  if (traffic.output_p90 < traffic.output_most && traffic.output_p90 > 0) {
    levers.Add({.name = fmt::format("answers of at most {} tokens", FormatCount(traffic.output_p90)),
                .flags = fmt::format("--default-max-tokens {}", traffic.output_p90),
                .setting = limited(traffic.output_p90),
                .price = asked > 0 ? Price::kClients : Price::kFlag,
                .risk = Risk::kRefuses,
                .note = fmt::format("a tenth of the answers is cut; {}", kNamedLimits)});
  }
  if (asked > traffic.output_most && traffic.output_most > 0) {
    levers.Add({.name = fmt::format("requests that ask for at most {} tokens", FormatCount(traffic.output_most)),
                .flags = fmt::format("--default-max-tokens {}", traffic.output_most),
                .setting = limited(traffic.output_most),
                .price = Price::kClients,
                .note = fmt::format("the longest answer that there was; {}", kNamedLimits)});
  }
}

// The rest of a setting beside what another model, format or machine changes.
Setting On(const Setting& machine, const Setting& now) {
  Setting setting = now;
  setting.kv = machine.kv;
  setting.slots = machine.slots;
  setting.slot_bytes = machine.slot_bytes;
  setting.curve = machine.curve;
  setting.reading = machine.reading;
  return setting;
}

// What was measured holds for the model and machine as they are.
void AddWeights(Levers& levers) {
  const PlanRequest& request = levers.present().request;
  if (request.machine.measured) return;
  const uint64_t present = WeightBytes(request.weight_format, request.model.weights);
  for (const std::string_view name : {"q8_0", "q4_k"}) {
    const Result<Format> format = FindWeightFormat(name);
    if (!format.ok() || WeightBytes(*format, request.model.weights) * 10 > present * 9) continue;
    PlanRequest changed = request;
    changed.weight_format = *format;
    const Result<Setting> setting = SettingOf(changed, levers.present().kv_bytes);
    if (!setting.ok()) continue;
    levers.Add({.name = fmt::format("weights as {}", name),
                .flags = fmt::format("MODEL: a GGUF of {} weights", name),
                .setting = On(*setting, levers.now()),
                .price = Price::kModel,
                .risk = Risk::kQuality,
                .note = fmt::format("{} instead of {}; sizes and times by plan",
                                    FormatBytes(WeightBytes(*format, request.model.weights)), FormatBytes(present))});
  }
}

void AddShards(Levers& levers) {
  PlanRequest request = levers.present().request;
  if (request.machine.measured) return;
  request.machine.shards.tensor *= 2;
  const Result<Setting> setting = SettingOf(request, levers.present().kv_bytes);
  if (!setting.ok()) return;
  levers.Add({.name = fmt::format("{} devices share the model", request.machine.shards.devices()),
              .setting = On(*setting, levers.now()),
              .price = Price::kNotHere,
              .note = std::string(kEstimate)});
}

// All but each sixth layer see no more than a window. Requires layers that see all.
Setting WithWindows(const Setting& now, uint32_t window, size_t period) {
  Setting setting = now;
  KvShape kv = now.kv;
  double full = 0;
  for (size_t i = 0; i < kv.layers.size(); ++i) {
    if ((i + 1) % period != 0) kv.layers[i].window = window;
    if ((i + 1) % period == 0) ++full;
  }
  full /= static_cast<double>(kv.layers.size());
  for (StepCurve* part : {&setting.curve, &setting.reading}) {
    (*part)[3] = (*part)[2] * (1 - full);
    (*part)[2] *= full;
  }
  SetKv(setting, kv);
  return setting;
}

void AddSliding(Levers& levers) {
  constexpr uint32_t kWindow = 1024;
  constexpr size_t kPeriod = 6;  // as Gemma 3
  const Setting& now = levers.present().setting;
  const bool sees_all = std::ranges::all_of(now.kv.layers, [](const LayerKvShape& l) { return l.window == 0; });
  if (!sees_all || now.kv.layers.size() < kPeriod || now.context_tokens <= kWindow) return;
  levers.Add({.name = "a model with sliding windows",
              .setting = WithWindows(now, kWindow, kPeriod),
              .price = Price::kNotHere,
              .risk = Risk::kQuality,
              .note = fmt::format("five of six layers see {} tokens; {}", FormatCount(kWindow), kOtherModel)});
}

// One vector for all heads, as DeepSeek's: 512 values and 64 that are rotated.
void AddLatent(Levers& levers) {
  constexpr double kLatentValues = 576;
  const std::vector<LayerKvShape>& layers = levers.present().request.model.kv_layers;
  double values = 0;
  for (const LayerKvShape& layer : layers) values += double{1} * layer.kv_heads * (layer.k_dim + layer.v_dim);
  const double share = kLatentValues * static_cast<double>(layers.size()) / values;
  if (layers.empty() || share > 0.9) return;
  levers.Add({.name = "a model with latent attention",
              .setting = Shrunk(levers.now(), share),
              .price = Price::kNotHere,
              .risk = Risk::kQuality,
              .note = fmt::format("{} values a token and layer for all heads; {}", kLatentValues, kOtherModel)});
}

void AddArchitectures(Levers& levers) {
  const Present& present = levers.present();
  Setting evicting = Shrunk(levers.now(), 0.5);
  evicting.prefix_cache = false;  // what is left of a text depends on all of it
  evicting.host_slots = evicting.disk_slots = 0;
  levers.Add(
      {.name = "token eviction",
       .setting = evicting,
       .price = Price::kNotHere,
       .risk = Risk::kQuality,
       .note = fmt::format("half of the positions are kept; their prefixes are no longer shared; {}", kEstimate)});
  constexpr uint32_t kQueriesPerHead = 8;
  const auto fewer = [&](const LayerKvShape& layer) {
    return std::max(present.request.model.query_heads / kQueriesPerHead, 1u) < layer.kv_heads;
  };
  double now = 0, then = 0;
  for (const LayerKvShape& layer : levers.now().kv.layers) {
    const auto bytes = static_cast<double>(KvBytesPerToken(layer, levers.now().kv.type));
    now += bytes;
    const uint32_t heads = std::max(present.request.model.query_heads / kQueriesPerHead, 1u);
    then += fewer(layer) ? bytes * heads / layer.kv_heads : bytes;
  }
  if (now == 0 || then > 0.9 * now) return;
  levers.Add({.name = "a model with grouped queries",
              .setting = Shrunk(levers.now(), then / now),
              .price = Price::kNotHere,
              .risk = Risk::kQuality,
              .note = fmt::format("a KV head for {} query heads; {}", kQueriesPerHead, kOtherModel)});
}

void AddMemory(Levers& levers) {
  Setting setting = levers.now();
  setting.slots *= 2;
  levers.Add({.name = "twice the KV memory",
              .flags = fmt::format("--kv-memory {}", SizeOf(setting.slots * setting.slot_bytes)),
              .setting = setting,
              .price = Price::kMemory});
}

}  // namespace

std::string_view NameOf(Price price) {
  constexpr std::array<std::string_view, 5> kNames = {"a flag", "changes at clients", "memory or disk", "another model",
                                                      "not in this server"};
  return kNames[static_cast<size_t>(price)];
}

std::string_view NameOf(Risk risk) {
  constexpr std::array<std::string_view, 3> kNames = {"none", "some are refused or cut", "other answers"};
  return kNames[static_cast<size_t>(risk)];
}

std::vector<Lever> CreditsOf(const Present& present) {
  Levers credits(present);
  const Setting& now = present.setting;
  kv::KvGeometry geometry{.block_tokens = now.kv.block_tokens, .windows = {0}, .slots = 0};
  if (const Result<KvLayout> layout = PlanKvLayout(now.kv, now.context_tokens); layout.ok()) {
    geometry = kv::GeometryOf(*layout, 0);
  }
  const uint64_t whole = now.slots / std::max<uint64_t>(kv::SlotsHeld(geometry, now.context_tokens), 1);
  if (whole < now.max_sequences) {
    Setting setting = now;
    setting.max_sequences = static_cast<uint32_t>(std::max<uint64_t>(whole, 1));
    credits.Add({.name = "paging",
                 .setting = setting,
                 .note = fmt::format("against room for the whole context of {} tokens for each: {} at once",
                                     FormatCount(now.context_tokens), setting.max_sequences)});
  }
  if (now.prefix_cache) {
    Setting setting = now;
    setting.prefix_cache = false;
    setting.host_slots = setting.disk_slots = 0;
    credits.Add({.name = "prefix caching", .flags = "--prefix-cache", .setting = setting});
  }
  return std::move(credits).Take();
}

std::vector<Lever> LeversOf(const Present& present) {
  Levers levers(present);
  AddPrefixes(levers);
  AddPolicies(levers);
  AddSteps(levers);
  AddBlocks(levers);
  AddTiers(levers);
  AddCaps(levers);
  AddMemory(levers);
  AddCodecs(levers);
  AddWeights(levers);
  AddShards(levers);
  AddArchitectures(levers);
  AddSliding(levers);
  AddLatent(levers);
  return std::move(levers).Take();
}

}  // namespace cachalot::plan
