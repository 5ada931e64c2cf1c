#include "engine/request_record.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/json.h"

namespace cachalot::engine {
namespace {

std::string TextOf(std::span<const uint32_t> tags) {
  std::vector<uint8_t> bytes;
  bytes.reserve(4 * tags.size());
  for (const uint32_t tag : tags) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(tag >> (8 * i)));
  }
  return FormatBase64(bytes);
}

int64_t Milliseconds(Nanos time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time).count(); }

uint64_t BytesOf(const EndedRequest& request) {
  uint64_t tokens = request.prompt.size();
  for (const std::vector<TokenId>& output : request.outputs) tokens += output.size();
  return sizeof(EndedRequest) + tokens * sizeof(TokenId);
}

std::string LineOf(const EndedRequest& request, const TagKey& key, uint32_t block_tokens, Nanos begun) {
  PrefixTags prompt(key, request.scope, block_tokens);
  const std::string prompt_tags = TextOf(prompt.Push(request.prompt));
  size_t longest = 0;
  for (const std::vector<TokenId>& output : request.outputs) longest = std::max(longest, output.size());

  std::string line;
  JsonWriter json(&line);
  json.BeginObject().Key("timestamp").Int(Milliseconds(request.submitted - begun));
  json.Key("input_length").UInt(request.prompt.size()).Key("output_length").UInt(longest);
  json.Key("hash_ids").BeginArray();
  for (const uint64_t name : prompt.BlockNames()) json.UInt(name);
  json.EndArray().Key("tags").String(prompt_tags).Key("output_tags").BeginArray();
  for (const std::vector<TokenId>& output : request.outputs) json.String(TextOf(PrefixTags(prompt).Push(output)));
  json.EndArray();
  if (request.session) {
    const SessionName& session = *request.session;
    const std::string name = fmt::format("{}:{}{}", session.owner.size(), session.owner, session.id);
    json.Key("session").UInt(TagOf(key, "session", name));
  }
  json.Key("tenant").UInt(TagOf(key, "tenant", fmt::format("{}", request.tenant.value)));
  json.Key("outcome").String(request.outcome).Key("cached_tokens").UInt(request.cached_tokens);
  json.Key("host_tokens").UInt(request.host_tokens).Key("disk_tokens").UInt(request.disk_tokens);
  if (request.first_token) json.Key("ttft_seconds").Double(ToSeconds(*request.first_token - request.submitted));
  json.Key("e2e_seconds").Double(ToSeconds(request.ended - request.submitted));
  json.Key("max_tokens").UInt(request.max_tokens).Key("n").UInt(request.n).EndObject();
  return line + '\n';
}

}  // namespace

std::string_view NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kCancelled: return "cancelled";
    case FinishReason::kError: return "error";
  }
  return "";
}

std::string_view NameOf(RejectReason reason) {
  switch (reason) {
    case RejectReason::kContextLength: return "context_length";
    case RejectReason::kTooLarge: return "too_large";
    case RejectReason::kQueueFull: return "queue_full";
    case RejectReason::kShuttingDown: return "shutting_down";
    case RejectReason::kPoisoned: return "poisoned";
    case RejectReason::kInvalid: return "invalid";
  }
  return "";
}

Result<std::unique_ptr<RequestRecord>> RequestRecord::Create(FileSystem& files, const std::string& path,
                                                             uint32_t block_tokens, Nanos begun,
                                                             const std::function<uint64_t()>& entropy) {
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<BackgroundFile> file,
                            BackgroundFile::Create(files, path, BackgroundFile::Gaps::kGaps));
  TagKey key;
  for (size_t i = 0; i < key.size(); i += 8) {
    const uint64_t random = entropy();
    for (size_t k = 0; k < 8; ++k) key[i + k] = static_cast<uint8_t>(random >> (8 * k));
  }
  file->Append(fmt::format("{{\"cachalot_record\":1,\"block_tokens\":{},\"tag_bits\":32}}\n", block_tokens));
  return std::unique_ptr<RequestRecord>(new RequestRecord(std::move(file), block_tokens, begun, key));
}

void RequestRecord::Write(EndedRequest request) {
  ++asked_;
  const uint64_t bytes = BytesOf(request);
  const bool taken = file_->TryAppend(
      bytes, [this, request = std::move(request)] { return LineOf(request, key_, block_tokens_, begun_); });
  if (!taken) ++refused_;
}

}  // namespace cachalot::engine
