// Settings of `cachalot replay`.
// Threads:   plain data.
// Ownership: none.
// Invariant: each setting is declared once (base/options.h).
// Cost:      none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "kv/eviction.h"
#include "sim/block_replay.h"
#include "sim/sim_tiers.h"

namespace cachalot::cli {

struct ReplayOptions {
  std::string policy{kv::EvictionPolicyNames().front()};
  uint64_t capacity_blocks = 0;
  uint64_t ghosts_per_block = sim::BlockReplayOptions{}.ghosts_per_block;
  uint64_t warm_up_requests = 0;
  double positions_per_row = 0;
  bool leaves_only = true;
  std::vector<uint32_t> curve;
  double sampled = 1;
  std::string sweep;
  uint32_t threads = 0;
  bool print_trace = false;
  std::string html;
  bool json = false;
  template <class F>
  void Visit(F&& f) {
    f("policy", policy,
      fmt::format("Eviction policy: {}, or {}, which looks ahead.", fmt::join(kv::EvictionPolicyNames(), ", "),
                  sim::kOptimumPolicy));
    f("capacity-blocks", capacity_blocks, "Blocks that the cache holds.");
    f("ghosts-per-block", ghosts_per_block, "Evicted blocks that are remembered, per block of capacity.");
    f("warm-up-requests", warm_up_requests, "Requests at the beginning that are not counted.");
    f("positions-per-row", positions_per_row,
      "Positions to which attention costs as much as the rest of a row; 0: all blocks cost alike.");
    f("leaves-only", leaves_only, "A block goes only when none that follows it is there, as in the server.");
    f("curve", curve,
      "Instead of one capacity, those listed (e.g. 1000,10000): hit rates of lru, from one pass, and of the optimum.");
    f("sampled", sampled, "Share of the blocks that --curve looks at for lru.");
    f("sweep", sweep,
      "Replays once for each combination of these settings, e.g. \"policy=lru,cost; capacity-blocks=1000,10000\".");
    f("threads", threads, "Replays that run at once in a sweep; 0: as many as there are processors.");
    f("print-trace", print_trace, "Print the trace instead of replaying it.");
    f("html", html, "File that gets a report with plots, which needs no other file.");
    f("json", json, "Print JSON.");
  }
};

inline constexpr uint64_t kUsualContext = 131'072;  // of a model that names none
inline constexpr uint32_t kMostKvBlocks = 1u << 26;

// With the engine itself, in virtual time.
struct EngineReplayOptions {
  bool engine = false;
  std::string profile;
  std::string step_curve;
  uint32_t kv_blocks = 0;
  ByteSize kv_memory;
  uint32_t kv_block_tokens = 16;
  std::string kv_model;
  std::string kv_format;
  uint64_t kv_bytes_per_token = 131'072;
  std::optional<uint64_t> context;
  ByteSize host_link;
  double host_latency = 10e-6;
  uint32_t host_blocks = 0;
  std::string host_eviction = sim::SimTierOptions{}.host_eviction;
  uint64_t disk_blocks = 0;
  ByteSize disk_read;
  ByteSize disk_write;
  std::optional<double> disk_latency;
  uint32_t max_tokens = 0;
  double rate = 1;
  bool tenants = true;
  bool sessions = false;
  std::string request_log;
  std::string series;
  double series_every = 0;
  template <class F>
  void Visit(F&& f) {
    f("engine", engine,
      "Run the server's engine in virtual time; the settings that follow, and those of serve, count.");
    f("profile", profile, "What `cachalot calibrate` measured: how long steps take.");
    f("step-curve", step_curve,
      "Instead, seconds per step, row, visible position of full and of sliding attention, and row with logits, e.g. "
      "\"0.01,5e-5,4e-9,0,2e-5\".");
    f("kv-blocks", kv_blocks, "Blocks of the KV pool.");
    f("kv-memory", kv_memory,
      "Instead, bytes of the KV pool, e.g. 4GiB: as many blocks as fit, of the size that --kv-model, --kv-format and "
      "--kv-block-tokens give one.");
    f("kv-block-tokens", kv_block_tokens, "Tokens per block of the KV pool.");
    f("kv-model", kv_model,
      "Model whose layers, windows, context and KV sizes count: what `cachalot plan` takes for one, e.g. llama-3.1-8b. "
      "Empty: one layer of full attention.");
    f("kv-format", kv_format,
      "Format of its KV, as `cachalot plan` has them: f16, int8, int4, ...; f16 where not given.");
    f("kv-bytes-per-token", kv_bytes_per_token,
      "Without --kv-model: what the KV of a token takes; it is what links and disks move.");
    f("context", context,
      fmt::format("Most tokens of a sequence; where not given, those of --kv-model, or {}.", kUsualContext));
    f("host-link", host_link,
      "Bytes per second between the pool and host memory, each way, e.g. 25GB. 0: as --profile measured it; where it "
      "did not, copies take no time, as on a CPU.");
    f("host-latency", host_latency, "Seconds that each copy takes beside.");
    f("host-blocks", host_blocks, "Blocks that host memory has room for. 0: there is none.");
    f("host-eviction", host_eviction,
      fmt::format("Which blocks leave host memory first: {}.", fmt::join(tier::CellEvictionNames(), " or ")));
    f("disk-blocks", disk_blocks, "Blocks that a disk has room for, what describes them included. 0: there is none.");
    f("disk-read", disk_read, "Bytes per second that come from the disk. 0: as --profile measured it, else 3 GB/s.");
    f("disk-write", disk_write, "Bytes per second that go there. 0: as --profile measured it, else 1.5 GB/s.");
    f("disk-latency", disk_latency,
      "Seconds that each read or write takes beside; as --profile measured it where not given, else 100 us.");
    f("max-tokens", max_tokens, "Tokens that each request asks for; 0: as many as its answer has.");
    f("rate", rate, "Requests come so much faster than the trace says.");
    f("tenants", tenants, "Tenants that the trace tells apart take turns, as in serve with keys of the same terms.");
    f("sessions", sessions, "Requests name the sessions that the trace knows of them, as kv.session does.");
    f("request-log", request_log, "File that gets a line of JSON per request.");
    f("series", series, "File that gets the engine's state over time, as CSV.");
    f("series-every", series_every, "Seconds between its lines; 0: so that there are 300 while requests come.");
  }
};

}  // namespace cachalot::cli
