#include <cstdio>
#include <map>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/kv_layout.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/model_identity.h"
#include "exec/numerics.h"
#include "model/fetch.h"
#include "model/fingerprint.h"
#include "model/gguf.h"
#include "model/model_spec.h"
#include "model/weights.h"

namespace cachalot::cli {
namespace {

constexpr size_t kMaxValueText = 100;

std::string Shortened(std::string text) {
  if (text.size() > kMaxValueText) text = text.substr(0, kMaxValueText) + fmt::format("... ({} bytes)", text.size());
  std::string quoted;
  JsonWriter(&quoted).String(text);
  return quoted;
}

struct ValueText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(uint64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return fmt::format("{:g}", v); }
  std::string operator()(std::string_view v) const { return Shortened(std::string(v)); }
  std::string operator()(const model::GgufArray& v) const { return fmt::format("[{} elements]", FormatCount(v.size)); }
};

std::string WindowText(const model::ModelSpec& spec) {
  std::map<uint32_t, uint32_t> layers;  // by window
  for (const model::LayerSpec& layer : spec.layer) ++layers[layer.window];
  std::string out;
  for (const auto& [window, count] : layers) {
    if (!out.empty()) out += ", ";
    out += window == 0 ? fmt::format("{} full", count) : fmt::format("{} sliding over {} tokens", count, window);
  }
  return out;
}

Status PrintSpec(const model::GgufFile& file, const Digest& fingerprint, const Digest& tokenizer) {
  CACHALOT_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::ReadModelSpec(file));
  CACHALOT_RETURN_IF_ERROR([&] {
    const Result<model::Weights> weights = model::BindWeights(file, spec);
    return weights.status();
  }());
  KvShape shape;
  for (const model::LayerSpec& layer : spec.layer) {
    shape.layers.push_back({spec.kv_heads, spec.head_dim, spec.head_dim, layer.window});
  }
  CACHALOT_ASSIGN_OR_RETURN(const KvLayout layout, PlanKvLayout(shape, spec.context_tokens));
  const Digest identity = ModelIdentity(fingerprint, tokenizer, spec, layout, exec::kCpuNumericsId);
  fmt::print("identity       {} (of KV in f16, blocks of {} tokens)\n", HexOf(identity), shape.block_tokens);
  fmt::print("architecture   {}{}{}\n", spec.architecture, spec.name.empty() ? "" : ", ", spec.name);
  fmt::print("layers         {} ({})\n", spec.layers, WindowText(spec));
  fmt::print("width          {}, feed-forward {}\n", spec.width, spec.ffn_width);
  fmt::print("heads          {} query, {} KV, {} wide\n", spec.heads, spec.kv_heads, spec.head_dim);
  fmt::print("vocabulary     {}\n", FormatCount(spec.vocabulary));
  fmt::print("context        {} tokens\n", FormatCount(spec.context_tokens));
  fmt::print("KV per token   {} in f16 while every layer keeps it\n", FormatBytes(KvBytesPerToken(shape)));
  fmt::print("KV of a full-length sequence   {} in f16\n", FormatBytes(KvBytesOfSequence(shape, spec.context_tokens)));
  return OkStatus();
}

void PrintTensors(const model::GgufFile& file, bool each) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> by_type;  // count, bytes
  for (const model::GgufTensor& tensor : file.tensors()) {
    auto& [count, bytes] = by_type[InfoOf(tensor.type).name];
    ++count;
    bytes += tensor.bytes.size();
    if (!each) continue;
    std::string shape;
    for (uint64_t extent : tensor.shape) shape += fmt::format("{}{}", shape.empty() ? "" : " x ", extent);
    fmt::print("  {:<40} {:<5} {}\n", tensor.name, InfoOf(tensor.type).name, shape);
  }
  for (const auto& [type, total] : by_type) {
    fmt::print("tensors        {:>4} of {:<5} {}\n", total.first, type, FormatBytes(total.second));
  }
}

}  // namespace

Status InspectCommand(const Arguments& arguments) {
  std::string name;
  bool metadata = false, tensors = false;
  FlagSet flags("inspect", "Shows what is in a model file.");
  flags.Positional("MODEL", &name, "path or catalogue name", true);
  flags.Add("metadata", metadata, "List all metadata.");
  flags.Add("tensors", tensors, "List all tensors.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  CACHALOT_ASSIGN_OR_RETURN(const std::string path, model::ResolveModel(name, model::DefaultFetchOptions()));
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile file, model::GgufFile::Open(path));
  fmt::print("file           {} ({}, GGUF v{})\n", path, FormatBytes(file.file_bytes()), file.version());
  PrintTensors(file, tensors);
  if (metadata) {
    for (const model::GgufFile::Entry& entry : file.metadata()) {
      fmt::print("  {} = {}\n", entry.key, std::visit(ValueText{}, entry.value));
    }
  }
  const Digest fingerprint = model::ModelFingerprint(file), tokenizer = model::TokenizerFingerprint(file);
  fmt::print("fingerprint    {}\n", HexOf(fingerprint));
  fmt::print("tokenizer      {}\n", HexOf(tokenizer));
  return PrintSpec(file, fingerprint, tokenizer);
}

}  // namespace cachalot::cli
