// RequestRecord is a file with a line for each request that ended: when, how long, and what it shares with which
// others, and nothing of what it said. docs/replay.md has the format.
// Threads:   Write from any thread; lines are made and written on a thread of its own.
// Ownership: owns the file.
// Invariant: the key under which prefixes are tagged is random and is kept nowhere. Writing never waits: a line for
//            which there is no room, in memory or on disk, is lost and counted.
// Cost:      to the caller, that of a queue; a SHA-256 per token elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/background_file.h"
#include "base/clock.h"
#include "base/entropy.h"
#include "base/file_system.h"
#include "base/status.h"
#include "engine/prefix_tags.h"
#include "engine/request.h"

namespace cachalot::engine {

struct EndedRequest {
  Nanos submitted{0};
  std::vector<TokenId> prompt;
  std::vector<std::vector<TokenId>> outputs;  // by choice; none where it did not run
  PrefixScope scope;
  std::optional<SessionName> session;
  TenantId tenant;
  uint32_t max_tokens = 0;
  uint32_t n = 1;
  std::string_view outcome;    // NameOf
  uint32_t cached_tokens = 0;  // of the prompt, and of them those that came from lower tiers
  uint32_t host_tokens = 0;
  uint32_t disk_tokens = 0;
  std::optional<Nanos> first_token;
  Nanos ended{0};
};

std::string_view NameOf(FinishReason reason);
std::string_view NameOf(RejectReason reason);

class RequestRecord {
 public:
  // kUnavailable where there is such a file already, or none can be made. `begun`: what timestamps count from.
  static Result<std::unique_ptr<RequestRecord>> Create(FileSystem& files, const std::string& path,
                                                       uint32_t block_tokens, Nanos begun,
                                                       const std::function<uint64_t()>& entropy = SystemEntropy);

  void Write(EndedRequest request);
  // Once all is written. The first error, if there was any.
  Status Close() { return file_->Close(); }

  uint64_t written() const { return asked_ - lost(); }  // those that wait to be counted too
  uint64_t lost() const { return refused_ + file_->failed_pieces(); }

 private:
  RequestRecord(std::unique_ptr<BackgroundFile> file, uint32_t block_tokens, Nanos begun, const TagKey& key)
      : file_(std::move(file)), block_tokens_(block_tokens), begun_(begun), key_(key) {}

  const std::unique_ptr<BackgroundFile> file_;
  const uint32_t block_tokens_;
  const Nanos begun_;
  const TagKey key_;
  std::atomic<uint64_t> asked_ = 0;
  std::atomic<uint64_t> refused_ = 0;
};

}  // namespace cachalot::engine
