// AdviseOptions say which model `cachalot advise` is about, on which machine, and which server it may ask instead.
// Threads:   plain data.
// Ownership: none.
// Invariant: each setting is declared once (base/options.h).
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "cli/plan_options.h"

namespace cachalot::cli {

struct AdviseOptions {
  std::string url;
  std::string api_key;
  std::string admin_key;
  double seconds = 10;
  std::string model;
  std::string device = "h100";
  uint32_t tensor = 1;
  std::string weights;
  std::string kv_format = "f16";
  uint32_t kv_block_tokens = 16;
  uint64_t context = 0;
  std::string profile;
  std::string step_curve;
  ByteSize kv_memory;
  ByteSize device_memory;
  double memory_share = PlanOptions{}.memory_share;
  double compute_share = PlanOptions{}.compute_share;
  double link_share = PlanOptions{}.link_share;
  ByteSize host_memory;
  ByteSize disk_size;
  uint32_t max_tokens = 0;
  double rate = 1;
  uint32_t simulate = 2000;
  uint32_t threads = 0;
  bool json = false;
  template <class F>
  void Visit(F&& f) {
    f("url", url,
      "A running Cachalot, http://HOST:PORT, whose model, pool, settings and cost of steps are taken; flags given here "
      "win. With its record as TRACE both are compared; without TRACE its metrics alone are judged.");
    f("api-key", api_key, "Key of its clients, to learn the model's name; or set CACHALOT_API_KEY.");
    f("admin-key", admin_key,
      "Key of its administration, to learn its settings, else those of serve's defaults; or set CACHALOT_ADMIN_KEY.");
    f("seconds", seconds, "Without TRACE: between two readings of its metrics.");
    f("model", model, "Model, as `cachalot plan` takes it: config.json, GGUF, or a known name.");
    f("device", device, "Device that it runs on, by name (plan --list-devices).");
    f("tensor", tensor, "Devices that share it.");
    f("weights", weights, "Format of weights: bf16, fp8, q4_k, ...; as published where not given.");
    f("kv-format", kv_format, "Format of KV: f16, fp8, int8, int4, ...");
    f("kv-block-tokens", kv_block_tokens, "Tokens per block of the KV pool.");
    f("context", context, "Most tokens of a sequence; 0: the model's context.");
    f("profile", profile, "Instead of --device, what `cachalot calibrate` measured. Needs --kv-memory.");
    f("step-curve", step_curve, "The same as numbers, as `cachalot replay` takes them. Needs --kv-memory.");
    f("kv-memory", kv_memory, "KV pool; 0: what the device has left beside weights and activations.");
    f("device-memory", device_memory, "Memory of a device, instead of its sheet's.");
    f("memory-share", memory_share, "Of a device's memory that is used.");
    f("compute-share", compute_share, "Of the stated arithmetic that computing a prompt reaches.");
    f("link-share", link_share, "Of the stated rate of links and memory that is reached.");
    f("host-memory", host_memory, "Host memory for KV that there is now.");
    f("disk-size", disk_size, "Disk for KV that there is now.");
    f("max-tokens", max_tokens, "Tokens that each request asks for; 0: as many as its answer has.");
    f("rate", rate, "Requests come so much faster than the trace says.");
    f("simulate", simulate, "Requests that are simulated, from the first on; 0: all.");
    f("threads", threads, "Simulations at once; 0: as many as there are processors.");
    f("json", json, "Print JSON.");
  }
};

}  // namespace cachalot::cli
