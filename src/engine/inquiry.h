// Inquiry is a question about the KV, or the order to let go of all that nobody uses. It enters a step as requests do
// and is answered in the step's output, after the step ran.
// Threads:   plain data.
// Ownership: owns what it holds.
// Invariant: an inquiry has exactly one answer, with its id and kind. Only kClear changes what later requests find.
// Cost:      kOverview is linear in the pool's slots; kProbe as admitting the request; kClear linear in what goes;
//            kDecisions in what is told.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/kv_ledger.h"
#include "base/status.h"
#include "engine/request.h"

namespace cachalot::engine {

using InquiryId = Id<struct InquiryTag, uint64_t>;

enum class InquiryKind : uint8_t { kOverview = 0, kProbe = 1, kClear = 2, kDecisions = 3 };

struct Inquiry {
  InquiryId id;
  InquiryKind kind = InquiryKind::kOverview;
  std::vector<GenerateRequest> requests;  // of kProbe: what would be submitted; ids are not looked at
};

// Why no more of a prompt would be found.
enum class HitLimit : uint8_t {
  kLastToken = 0,    // all was found but the last token, which always runs
  kScored = 1,       // its logprobs are asked for, so that all of it runs
  kOff = 2,          // there is no prefix cache
  kAwaited = 3,      // a running request is computing more of it
  kResumePoint = 4,  // full attention has more, but sliding attention cannot go on from there
  kNotResident = 5,  // what follows was not computed by one who shares with this request, or has left
};

struct PrefixProbe {
  uint64_t prompt_tokens = 0;
  uint64_t hit_tokens = 0;      // that would not be computed
  uint64_t awaited_tokens = 0;  // that would not be once the running requests have come that far; >= hit_tokens
  uint64_t disk_tokens = 0;     // leading ones that could be loaded from the disk tier if nothing were resident
  uint64_t public_tokens = 0;   // that everybody shares
  HitLimit limit = HitLimit::kNotResident;
  std::optional<Digest> key;  // of the last whole block that would be found: kv/identity.h
};

struct KvOverview {
  Digest identity{};
  KvLedger ledger;
  uint32_t block_tokens = 0;
  uint32_t layer_groups = 0;
  uint32_t sequences = 0;        // that hold KV
  uint64_t sequence_tokens = 0;  // of them together; a token that two share counts twice
  uint64_t indexed_tokens = 0;   // that can be found in at least one layer group; each counts once
  uint64_t index_nodes = 0;
};

struct Answer {
  InquiryId id;
  InquiryKind kind = InquiryKind::kOverview;
  KvOverview overview;              // of kOverview; StepOutput::stats belongs to it
  std::vector<PrefixProbe> probes;  // of kProbe, one per request
  uint32_t evicted_slots = 0;       // of kClear
  Status cleared;                   // of kClear: whether lower tiers are
  Json decisions, decisions_down;   // of kDecisions: arrays, the newest last
};

}  // namespace cachalot::engine
