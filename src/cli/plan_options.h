// PlanOptions say which model runs on which machine, and for whom.
// Threads:   plain data; RequestOf reads files.
// Ownership: none.
// Invariant: each setting is declared once (base/options.h).
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "cli/option_rules.h"
#include "plan/plan.h"

namespace cachalot::cli {

struct PlanOptions {
  std::string device = "h100";
  uint32_t tensor = 0;
  uint32_t context_shards = 1;
  uint64_t users = 0;
  uint64_t context = 0;
  std::string kv_format = "f16";
  std::string weights;
  uint32_t block_tokens = 16;
  uint32_t step_rows = 512;
  ByteSize device_memory;
  ByteSize activations;
  ByteSize host_memory;
  ByteSize disk_size;
  double memory_share = 0.9;
  double compute_share = 0.5;
  double link_share = 0.8;
  std::string profile;
  uint64_t mean = 0, p50 = 0, p99 = 0, peak = 0;
  std::string concurrency;
  double device_price = 0;
  double storage_price = 0;
  double keep_hours = 1;
  template <class F>
  void Visit(F&& f) {
    f("device", device, "Device, by name (--list-devices).");
    f("tensor", tensor, "Devices that share the heads and matrices of one model; 0: the fewest that hold --users.");
    f("context-shards", context_shards, "Devices that share the positions of each sequence.");
    f("users", users, "Sequences at once; 0: as many as fit.");
    f("context", context, "Tokens of each sequence; 0: the model's context, at most 8192.");
    f("kv-format", kv_format, "Format of KV: f16, fp8, int8, int4, ...");
    f("weights", weights, "Format of weights: bf16, fp8, q4_k, ...; as published where not given.");
    f("block-tokens", block_tokens, "Tokens per KV block.");
    f("step-rows", step_rows, "Most rows of one sequence in a step.");
    f("device-memory", device_memory, "Memory of a device, instead of its sheet's.");
    f("activations", activations, "Activations of a device; estimated where not given.");
    f("host-memory", host_memory, "Host memory for KV.");
    f("disk-size", disk_size, "Disk for KV.");
    f("memory-share", memory_share, "Of a device's memory that is used.");
    f("compute-share", compute_share, "Of the stated arithmetic that computing a prompt reaches.");
    f("link-share", link_share, "Of the stated rate of links and memory that is reached.");
    f("profile", profile, "What `cachalot calibrate` measured: how fast this machine computes and loads KV.");
    f("concurrency-mean", mean, "Sequences at once on average.");
    f("concurrency-p50", p50, "Sequences at once that half of the time is not above.");
    f("concurrency-p99", p99, "Sequences at once that 99 % of the time is not above.");
    f("concurrency-peak", peak, "Most sequences at once.");
    f("concurrency", concurrency, "File of samples instead: one number of sequences per line.");
    f("price-device-hour", device_price, "Dollars for an hour of one device.");
    f("price-storage", storage_price, "Dollars for a GiB of kept KV and month.");
    f("keep-hours", keep_hours, "Hours that KV is kept before it is used again.");
  }
};

// Which of them count together.
std::vector<OptionRule> PlanRules();

// `model`: what LoadShape found by that name. kInvalid, naming the flag, for what is not known or cannot be read.
Result<plan::PlanRequest> RequestOf(const PlanOptions& options, const std::string& name, const plan::ModelShape& model);

}  // namespace cachalot::cli
