#include "sim/trace.h"

#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "base/json.h"

namespace cachalot::sim {
namespace {

constexpr double kMaxMilliseconds = 1e12;  // some thirty years
constexpr uint64_t kNone = UINT64_MAX;

Result<const Json*> Member(const Json& line, const char* key) {
  const Json* value = line.Find(key);
  if (value == nullptr) return Invalid(fmt::format("\"{}\" is missing", key));
  return value;
}

Result<uint64_t> TokenCount(const Json& line, const char* key, const TraceLimits& limits) {
  CACHALOT_ASSIGN_OR_RETURN(const Json* value, Member(line, key));
  const int64_t* count = value->AsInt();
  if (count == nullptr) {
    return Invalid(fmt::format("\"{}\": expected a number of tokens, got {}", key, value->TypeName()));
  }
  const auto tokens = static_cast<uint64_t>(*count);
  if (*count < 0 || tokens < limits.least_tokens || tokens > limits.most_tokens) {
    return Invalid(fmt::format("\"{}\": expected a number of tokens from {} to {}, got {}", key, limits.least_tokens,
                               limits.most_tokens, *count));
  }
  return tokens;
}

Result<Nanos> Arrival(const Json& line) {
  CACHALOT_ASSIGN_OR_RETURN(const Json* value, Member(line, "timestamp"));
  const std::optional<double> milliseconds = value->AsNumber();
  if (!milliseconds || !(*milliseconds >= 0 && *milliseconds <= kMaxMilliseconds)) {
    return Invalid(fmt::format("\"timestamp\": expected milliseconds from 0 to {:g}, got {}", kMaxMilliseconds,
                               milliseconds ? value->Dump() : value->TypeName()));
  }
  return Nanos(static_cast<int64_t>(std::llround(*milliseconds * 1e6)));
}

Result<std::vector<uint64_t>> Blocks(const Json& line) {
  CACHALOT_ASSIGN_OR_RETURN(const Json* value, Member(line, "hash_ids"));
  if (value->AsArray() == nullptr) {
    return Invalid(fmt::format("\"hash_ids\": expected an array of integers, got {}", value->TypeName()));
  }
  std::vector<uint64_t> blocks;
  blocks.reserve(value->AsArray()->size());
  for (const Json& id : *value->AsArray()) {
    if (id.AsInt() == nullptr || *id.AsInt() < 0) {
      return Invalid(
          fmt::format("\"hash_ids\"[{}]: expected an integer of at least 0, got {}", blocks.size(), id.Dump()));
    }
    blocks.push_back(static_cast<uint64_t>(*id.AsInt()));
  }
  return blocks;
}

// Reads line by line and remembers which id each one follows.
class Reader {
 public:
  Reader(uint32_t block_tokens, const TraceLimits& limits) : limits_(limits), trace_{block_tokens, {}} {}

  Status Add(std::string_view text) {
    CACHALOT_ASSIGN_OR_RETURN(const Json line, ParseJson(text));
    if (line.AsObject() == nullptr) return Invalid(fmt::format("expected an object, got {}", line.TypeName()));
    TraceRequest request;
    CACHALOT_ASSIGN_OR_RETURN(request.arrival, Arrival(line));
    CACHALOT_ASSIGN_OR_RETURN(request.input_tokens, TokenCount(line, "input_length", limits_));
    CACHALOT_ASSIGN_OR_RETURN(request.output_tokens, TokenCount(line, "output_length", limits_));
    CACHALOT_ASSIGN_OR_RETURN(request.blocks, Blocks(line));
    CACHALOT_RETURN_IF_ERROR(Check(request));
    trace_.requests.push_back(std::move(request));
    return OkStatus();
  }
  Trace Take() && { return std::move(trace_); }

 private:
  Status Check(const TraceRequest& request) {
    if (!trace_.requests.empty() && request.arrival < trace_.requests.back().arrival) {
      return Invalid("\"timestamp\" is before that of the request above it");
    }
    const uint64_t expected = (request.input_tokens + trace_.block_tokens - 1) / trace_.block_tokens;
    if (request.blocks.size() != expected) {
      return Invalid(fmt::format("{} hash_ids for {} input tokens: expected {}, one per block of {}",
                                 request.blocks.size(), request.input_tokens, expected, trace_.block_tokens));
    }
    uint64_t before = kNone;
    for (const uint64_t id : request.blocks) {
      const auto [known, is_new] = before_.emplace(id, before);
      if (!is_new && known->second != before) {
        return Invalid(fmt::format("hash id {} stands in another place than in an earlier request", id));
      }
      before = id;
    }
    return OkStatus();
  }

  const TraceLimits limits_;
  Trace trace_;
  std::unordered_map<uint64_t, uint64_t> before_;
};

}  // namespace

Result<Trace> ParseTrace(std::string_view text, uint32_t block_tokens, const TraceLimits& limits) {
  if (block_tokens == 0) return Invalid("a block must hold at least one token");
  Reader reader(block_tokens, limits);
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (const Status status = reader.Add(content); !status.ok()) return status.Annotate(fmt::format("line {}", line));
  }
  return std::move(reader).Take();
}

std::string FormatTrace(const Trace& trace) {
  std::string out;
  for (const TraceRequest& request : trace.requests) {
    JsonWriter w(&out);
    w.BeginObject();
    w.Key("timestamp");
    constexpr int64_t kNanosPerMilli = 1'000'000;
    if (request.arrival.count() % kNanosPerMilli == 0) {
      w.Int(request.arrival.count() / kNanosPerMilli);
    } else {
      w.Double(static_cast<double>(request.arrival.count()) / kNanosPerMilli);
    }
    w.Key("input_length").UInt(request.input_tokens);
    w.Key("output_length").UInt(request.output_tokens);
    w.Key("hash_ids").BeginArray();
    for (const uint64_t id : request.blocks) w.UInt(id);
    w.EndArray();
    w.EndObject();
    out += '\n';
  }
  return out;
}

}  // namespace cachalot::sim
