#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/kv_layout.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/inspect_disk.h"
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

KvShape ShapeOf(const model::ModelSpec& spec) {
  KvShape shape;
  for (const model::LayerSpec& layer : spec.layer) {
    shape.layers.push_back({spec.kv_heads, spec.head_dim, spec.head_dim, layer.window});
  }
  return shape;
}

struct Fingerprints {
  Digest model{};
  Digest tokenizer{};
};

// Reads every byte of the file.
Fingerprints FingerprintsOf(const model::GgufFile& file) {
  return {model::ModelFingerprint(file), model::TokenizerFingerprint(file)};
}

Result<Digest> IdentityOf(const Fingerprints& fingerprints, const model::ModelSpec& spec) {
  CACHALOT_ASSIGN_OR_RETURN(const KvLayout layout, PlanKvLayout(ShapeOf(spec), spec.context_tokens));
  return ModelIdentity(fingerprints.model, fingerprints.tokenizer, spec, layout, exec::kCpuNumericsId);
}

Status PrintSpec(const model::GgufFile& file, const Fingerprints& fingerprints) {
  CACHALOT_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::ReadModelSpec(file));
  CACHALOT_RETURN_IF_ERROR([&] {
    const Result<model::Weights> weights = model::BindWeights(file, spec);
    return weights.status();
  }());
  const KvShape shape = ShapeOf(spec);
  CACHALOT_ASSIGN_OR_RETURN(const Digest identity, IdentityOf(fingerprints, spec));
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

struct ModelDetails {
  bool metadata = false;
  bool tensors = false;
};

Status InspectModel(const std::string& name, const ModelDetails& details) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string path, model::ResolveModel(name, model::DefaultFetchOptions()));
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile file, model::GgufFile::Open(path));
  fmt::print("file           {} ({}, GGUF v{})\n", path, FormatBytes(file.file_bytes()), file.version());
  PrintTensors(file, details.tensors);
  if (details.metadata) {
    for (const model::GgufFile::Entry& entry : file.metadata()) {
      fmt::print("  {} = {}\n", entry.key, std::visit(ValueText{}, entry.value));
    }
  }
  const Fingerprints fingerprints = FingerprintsOf(file);
  fmt::print("fingerprint    {}\n", HexOf(fingerprints.model));
  fmt::print("tokenizer      {}\n", HexOf(fingerprints.tokenizer));
  return PrintSpec(file, fingerprints);
}

Result<Digest> IdentityOfModel(const std::string& name) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string path, model::ResolveModel(name, model::DefaultFetchOptions()));
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile file, model::GgufFile::Open(path));
  CACHALOT_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::ReadModelSpec(file));
  return IdentityOf(FingerprintsOf(file), spec);
}

}  // namespace

Status InspectCommand(const Arguments& arguments) {
  std::string name, reusing_model;
  ModelDetails details;
  InspectDiskOptions disk;
  FlagSet flags("inspect", "Shows what is in a model file, or in a folder of the disk tier.");
  flags.Positional("WHAT", &name, "path or catalogue name of a model, or a folder", true);
  flags.Add("metadata", details.metadata, "Model: list all metadata.");
  flags.Add("tensors", details.tensors, "Model: list all tensors.");
  flags.Add("check", disk.check_payloads, "Folder: compare every payload with its checksum.");
  flags.Add("model", reusing_model, "Folder: mark what this model could reuse.");
  flags.Add("json", disk.json, "Folder: print JSON.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  std::error_code missing;  // then it is a name
  if (!std::filesystem::is_directory(name, missing)) return InspectModel(name, details);
  if (!reusing_model.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(disk.reusable_by, IdentityOfModel(reusing_model));
  }
  return InspectDisk(name, disk);
}

}  // namespace cachalot::cli
