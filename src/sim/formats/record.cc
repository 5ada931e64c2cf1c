// What `cachalot serve --record` writes: Mooncake's members, and a chained tag of 32 bits per token of prompt and
// answer, which are equal where the texts before and there are. A heading comes first; requests stand in the order in
// which they ended. Of several choices the longest counts.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/base64.h"
#include "sim/formats/fields.h"
#include "sim/formats/trace_format.h"

namespace cachalot::sim {
namespace {

constexpr std::string_view kVersionKey = "cachalot_record";
constexpr int64_t kVersion = 1, kTagBits = 32, kMostBlockTokens = 1 << 20;
constexpr int64_t kTile = 16;  // no server has other blocks
// Requests that ended so would have been nothing to any server.
constexpr std::string_view kNeverAsked[] = {"invalid", "shutting_down", "poisoned"};

Result<std::vector<uint32_t>> Tags(const Json& value, std::string_view key) {
  const std::string* text = value.AsString();
  std::optional<std::vector<uint8_t>> bytes;
  if (text != nullptr) bytes = ParseBase64(*text);
  if (!bytes || bytes->size() % 4 != 0) {
    return Invalid(fmt::format("\"{}\": expected base64 of 4 bytes per token", key));
  }
  std::vector<uint32_t> tags(bytes->size() / 4);
  for (size_t i = 0; i < bytes->size(); ++i) tags[i / 4] |= uint32_t{(*bytes)[i]} << (8 * (i % 4));
  return tags;
}

// Of the longest choice.
Result<std::vector<uint32_t>> AnswerTags(const Json& line) {
  constexpr std::string_view kKey = "output_tags";
  CACHALOT_ASSIGN_OR_RETURN(const Json* choices, Member(line, kKey));
  if (choices->AsArray() == nullptr) {
    return Invalid(
        fmt::format("\"{}\": expected an array with one text per choice, got {}", kKey, choices->TypeName()));
  }
  std::vector<uint32_t> longest;
  for (const Json& choice : *choices->AsArray()) {
    CACHALOT_ASSIGN_OR_RETURN(std::vector<uint32_t> tags, Tags(choice, kKey));
    if (tags.size() > longest.size()) longest = std::move(tags);
  }
  return longest;
}

Status CheckCount(std::string_view key, uint64_t tags, std::string_view length_key, uint64_t length) {
  if (tags == length) return OkStatus();
  return Invalid(fmt::format("\"{}\": {} tags for {} tokens of \"{}\"", key, tags, length, length_key));
}

class RecordFormat final : public TraceFormat {
 public:
  explicit RecordFormat(const FormatContext& context)
      : options_(context.options), trace_(context.trace), text_(context.text) {
    trace_.chained = true;
  }

  Result<std::optional<TraceRequest>> Read(std::string_view text) override {
    CACHALOT_ASSIGN_OR_RETURN(const Json line, ParseObject(text));
    if (line.Find(kVersionKey) != nullptr) {
      CACHALOT_RETURN_IF_ERROR(ReadHeading(line));
      return std::optional<TraceRequest>();
    }
    if (!headed_) return Invalid(fmt::format("expected the heading of a record, with \"{}\"", kVersionKey));
    return ReadRequest(line);
  }

 private:
  Status ReadHeading(const Json& line) {
    if (headed_) return Invalid("another record begins here, whose times are counted anew: expected one record");
    const Json* version = line.Find(kVersionKey);
    const Json* bits = line.Find("tag_bits");
    if (version->AsInt() == nullptr || *version->AsInt() != kVersion) {
      return Invalid(fmt::format("\"{}\": expected version {}, got {}", kVersionKey, kVersion, version->Dump()));
    }
    if (bits == nullptr || bits->AsInt() == nullptr || *bits->AsInt() != kTagBits) {
      return Invalid(fmt::format("\"tag_bits\": expected {}", kTagBits));
    }
    const Json* block = line.Find("block_tokens");
    if (block == nullptr || block->AsInt() == nullptr || *block->AsInt() < kTile || *block->AsInt() % kTile != 0 ||
        *block->AsInt() > kMostBlockTokens) {
      return Invalid(fmt::format("\"block_tokens\": expected a multiple of {} up to {}, got {}", kTile,
                                 kMostBlockTokens, block == nullptr ? "nothing" : block->Dump()));
    }
    if (options_.block_tokens == 0) trace_.block_tokens = static_cast<uint32_t>(*block->AsInt());
    headed_ = true;
    return OkStatus();
  }

  Result<std::optional<TraceRequest>> ReadRequest(const Json& line) {
    TraceRequest request;
    CACHALOT_ASSIGN_OR_RETURN(request.arrival, MillisecondMember(line, "timestamp"));
    CACHALOT_ASSIGN_OR_RETURN(request.input_tokens, TokenMember(line, "input_length", options_.limits));
    CACHALOT_ASSIGN_OR_RETURN(request.output_tokens, TokenMember(line, "output_length", options_.limits));
    CACHALOT_ASSIGN_OR_RETURN(request.session, OptionalId(line, "session"));
    CACHALOT_ASSIGN_OR_RETURN(request.tenant, OptionalId(line, "tenant"));
    if (const Json* most = line.Find("max_tokens"); most != nullptr) {
      CACHALOT_ASSIGN_OR_RETURN(request.asked_tokens, TokenCount(*most, "max_tokens", options_.limits));
    }
    CACHALOT_ASSIGN_OR_RETURN(const Json* tags, Member(line, "tags"));
    CACHALOT_ASSIGN_OR_RETURN(std::vector<uint32_t> words, Tags(*tags, "tags"));
    CACHALOT_ASSIGN_OR_RETURN(const std::vector<uint32_t> answer, AnswerTags(line));
    CACHALOT_RETURN_IF_ERROR(CheckCount("tags", words.size(), "input_length", request.input_tokens));
    CACHALOT_RETURN_IF_ERROR(CheckCount("output_tags", answer.size(), "output_length", request.output_tokens));
    const Json* outcome = line.Find("outcome");
    if (outcome != nullptr && outcome->AsString() != nullptr &&
        std::ranges::find(kNeverAsked, *outcome->AsString()) != std::end(kNeverAsked)) {
      return std::optional<TraceRequest>();
    }
    text_.NameBlocks(words, &request);
    words.insert(words.end(), answer.begin(), answer.end());
    text_.KeepText(words, &request);
    return std::optional(std::move(request));
  }

  const ReadTraceOptions& options_;
  Trace& trace_;
  TextKeeper& text_;
  bool headed_ = false;
};

}  // namespace

std::unique_ptr<TraceFormat> MakeRecordFormat(const FormatContext& context) {
  return std::make_unique<RecordFormat>(context);
}

}  // namespace cachalot::sim
