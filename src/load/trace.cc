#include "load/trace.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"

namespace cachalot::load {
namespace {

constexpr int64_t kMostMilliseconds = int64_t{1} << 40;
constexpr int64_t kMostTokens = 4'000'000;

Result<int64_t> IntIn(const Json& row, std::string_view key, int64_t least, int64_t most) {
  const Json* value = row.Find(key);
  const int64_t* number = value == nullptr ? nullptr : value->AsInt();
  if (number != nullptr && *number >= least && *number <= most) return *number;
  return Invalid(fmt::format("{}: expected an integer of {} to {}", key, least, most));
}

Result<TraceRow> ParseRow(std::string_view line) {
  CACHALOT_ASSIGN_OR_RETURN(const Json row, ParseJson(line));
  CACHALOT_ASSIGN_OR_RETURN(const int64_t time, IntIn(row, "timestamp", 0, kMostMilliseconds));
  CACHALOT_ASSIGN_OR_RETURN(const int64_t prompt_tokens, IntIn(row, "input_length", 1, kMostTokens));
  CACHALOT_ASSIGN_OR_RETURN(const int64_t output_tokens, IntIn(row, "output_length", 1, kMostTokens));
  TraceRow out{.time = std::chrono::milliseconds(time),
               .prompt_tokens = static_cast<uint32_t>(prompt_tokens),
               .output_tokens = static_cast<uint32_t>(output_tokens),
               .block_ids = {}};
  const Json* ids = row.Find("hash_ids");
  if (ids == nullptr || ids->AsArray() == nullptr) return Invalid("hash_ids: expected an array of integers");
  for (const Json& id : *ids->AsArray()) {
    if (id.AsInt() == nullptr) return Invalid("hash_ids: expected an array of integers");
    out.block_ids.push_back(static_cast<uint64_t>(*id.AsInt()));
  }
  const size_t blocks = (out.prompt_tokens + kTraceBlockTokens - 1) / kTraceBlockTokens;
  if (out.block_ids.size() != blocks) {
    return Invalid(fmt::format("hash_ids: {} for {} tokens; expected {}, one for each {}", out.block_ids.size(),
                               out.prompt_tokens, blocks, kTraceBlockTokens));
  }
  return out;
}

}  // namespace

Result<std::vector<TraceRow>> ParseTrace(std::string_view text) {
  std::vector<TraceRow> rows;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<TraceRow> row = ParseRow(line);
    if (!row.ok()) return row.status().Annotate(fmt::format("line {}", number));
    rows.push_back(std::move(row).value());
  }
  if (rows.empty()) return Invalid("the trace has no requests");
  std::ranges::stable_sort(rows, {}, &TraceRow::time);
  return rows;
}

}  // namespace cachalot::load
