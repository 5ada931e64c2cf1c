// TierOptions: where KV goes that the hot pool has no room for, and that outlives the process.
// Threads:   plain data.
// Ownership: none.
// Invariant: each setting is declared once (base/options.h).
// Cost:      none.
#pragma once

#include <string>

#include "base/units.h"

namespace cachalot::cli {

struct TierOptions {
  ByteSize host_memory;
  std::string host_eviction = "lru";
  double host_share = 0.8;
  std::string disk_path;
  ByteSize disk_size;
  ByteSize disk_min_free{uint64_t{1} << 30};
  std::string disk_compression = "none";
  std::string disk_io = "auto";
  ByteSize disk_read_rate;
  std::string session_path;
  std::string session_files;
  template <class F>
  void Visit(F&& f) {
    f("host-memory", host_memory,
      "Memory for KV that leaves the device's, the staging and tables of lower tiers included, e.g. 8GiB. With "
      "--device "
      "cpu it would be the same memory. 0: none.");
    f("host-eviction", host_eviction, "Which blocks leave --host-memory first: lru or s3fifo.");
    f("host-share", host_share, "Share of the available memory, 0 to 1, above which --host-memory is refused.");
    f("disk-path", disk_path,
      "Folder that keeps KV of earlier requests, also over restarts; one process at a time. Empty: none.");
    f("disk-size", disk_size, "Most that the files in --disk-path may occupy, e.g. 20GiB.");
    f("disk-min-free", disk_min_free,
      "Room on the disk of --disk-path, and of --session-files, that is left to others.");
    f("disk-compression", disk_compression,
      "none, zstd (KV takes about an eighth less room there, without loss), or auto: zstd where the disk was measured "
      "to be so slow that KV is sooner back that way.");
    f("disk-io", disk_io,
      "How KV is read that lies in several places of a file: auto (by io_uring where it works, else by pread), pread, "
      "or io_uring (also for one place; refused where it does not work).");
    f("disk-read-rate", disk_read_rate,
      "Most KV that is read from disk in a second, e.g. 1MB, as if the disk were that slow: for measurements. 0: no "
      "limit.");
    f("session-files", session_files,
      "Folder in which sessions are saved by name, signed with the key in server.key beside it. Empty: none.");
    f("session-path", session_path,
      "Folder that keeps the histories of sessions over restarts; one process at a time. Empty: a folder in "
      "--disk-path, "
      "if there is one.");
  }
};

}  // namespace cachalot::cli
