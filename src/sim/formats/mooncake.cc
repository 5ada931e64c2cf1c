// The Mooncake project's traces: an object a line of timestamp (ms), input_length, output_length and hash_ids, one per
// block. Other members are ignored.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/formats/fields.h"
#include "sim/formats/trace_format.h"

namespace cachalot::sim {
namespace {

Result<std::vector<uint64_t>> Blocks(const Json& line) {
  CACHALOT_ASSIGN_OR_RETURN(const Json* value, Member(line, "hash_ids"));
  if (value->AsArray() == nullptr) {
    return Invalid(fmt::format("\"hash_ids\": expected an array of integers, got {}", value->TypeName()));
  }
  std::vector<uint64_t> blocks;
  blocks.reserve(value->AsArray()->size());
  for (const Json& id : *value->AsArray()) {
    if (id.AsInt() == nullptr || *id.AsInt() < 0) {
      return Invalid(fmt::format("\"hash_ids\"[{}]: expected an integer of at least 0, got {}", blocks.size(),
                                 id.AsInt() == nullptr ? id.TypeName() : id.Dump()));
    }
    blocks.push_back(static_cast<uint64_t>(*id.AsInt()));
  }
  return blocks;
}

class MooncakeFormat final : public TraceFormat {
 public:
  explicit MooncakeFormat(const FormatContext& context)
      : limits_(context.options.limits), block_tokens_(context.trace.block_tokens) {}

  Result<std::optional<TraceRequest>> Read(std::string_view text) override {
    CACHALOT_ASSIGN_OR_RETURN(const Json line, ParseObject(text));
    TraceRequest request;
    CACHALOT_ASSIGN_OR_RETURN(request.arrival, MillisecondMember(line, "timestamp"));
    CACHALOT_ASSIGN_OR_RETURN(request.input_tokens, TokenMember(line, "input_length", limits_));
    CACHALOT_ASSIGN_OR_RETURN(request.output_tokens, TokenMember(line, "output_length", limits_));
    CACHALOT_ASSIGN_OR_RETURN(request.blocks, Blocks(line));
    CACHALOT_RETURN_IF_ERROR(Check(request));
    return std::optional(std::move(request));
  }

 private:
  Status Check(const TraceRequest& request) const {
    const uint64_t expected = (request.input_tokens + block_tokens_ - 1) / block_tokens_;
    if (request.blocks.size() != expected) {
      return Invalid(fmt::format("{} hash_ids for {} input tokens: expected {}, one per block of {}",
                                 request.blocks.size(), request.input_tokens, expected, block_tokens_));
    }
    std::vector<uint64_t> sorted = request.blocks;
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice == sorted.end()) return OkStatus();
    return Invalid(fmt::format("hash id {} stands in several places: expected it in one", *twice));
  }

  const TraceLimits limits_;
  const uint32_t block_tokens_;
};

}  // namespace

std::unique_ptr<TraceFormat> MakeMooncakeFormat(const FormatContext& context) {
  return std::make_unique<MooncakeFormat>(context);
}

}  // namespace cachalot::sim
