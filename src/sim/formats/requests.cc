// Logs of requests as vLLM, SGLang and gateways in front of them write them: an object a line, with the prompt as text,
// as chat messages or as token ids, and the answer or its length. What stands where differs, so members are looked for
// by several names, and in the objects that are known to hold them.
#include <array>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/hash.h"
#include "base/random.h"
#include "sim/formats/fields.h"
#include "sim/formats/log_time.h"
#include "sim/formats/pieces.h"
#include "sim/formats/trace_format.h"

namespace cachalot::sim {
namespace {

constexpr int64_t kMostTokenId = INT32_MAX;

using Names = std::span<const std::string_view>;

constexpr std::string_view kRequestParts[] = {"obj", "body", "request", "params", "sampling_params"};
constexpr std::string_view kAnswerParts[] = {"out", "output", "response", "usage", "meta_info"};
constexpr std::string_view kAnswerInnerParts[] = {"body", "usage", "meta_info"};
constexpr std::string_view kPromptIds[] = {"prompt_token_ids", "input_ids", "prompt_ids"};
constexpr std::string_view kPromptTexts[] = {"prompt", "text", "input"};
constexpr std::string_view kAnswerIds[] = {"output_token_ids", "output_ids", "completion_token_ids", "token_ids"};
constexpr std::string_view kAnswerTexts[] = {"completion", "generated_text", "output_text", "text"};
constexpr std::string_view kPromptCounts[] = {"prompt_tokens", "input_tokens", "input_length", "prompt_len"};
constexpr std::string_view kAnswerCounts[] = {"completion_tokens", "output_tokens", "output_length", "generated_tokens",
                                              "output_len"};
constexpr std::string_view kMostTokens[] = {"max_completion_tokens", "max_tokens", "max_new_tokens",
                                            "max_output_tokens"};
constexpr std::string_view kSessions[] = {"session_id", "conversation_id", "session"};
constexpr std::string_view kTenants[] = {"tenant", "user_id", "user", "organization"};

// The line and all objects in it that are reached through such members, and of those through such inner ones.
std::vector<const Json*> PartsOf(const Json& line, Names outer, Names inner_names) {
  std::vector<const Json*> parts = {&line};
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const std::string_view name : i == 0 ? outer : inner_names) {
      const Json* inner = parts[i]->Find(name);
      if (inner != nullptr && inner->AsObject() != nullptr) parts.push_back(inner);
    }
  }
  return parts;
}

struct Found {
  std::string_view name;
  const Json* value = nullptr;
};

// The first that is there and not null, by the order of the names.
Found Find(std::span<const Json* const> parts, Names names) {
  for (const std::string_view name : names) {
    for (const Json* part : parts) {
      const Json* value = part->Find(name);
      if (value != nullptr && !value->is_null()) return {name, value};
    }
  }
  return {};
}

Result<std::vector<uint32_t>> WordsOfIds(const Found& found) {
  std::vector<uint32_t> words;
  words.reserve(found.value->AsArray()->size());
  for (const Json& id : *found.value->AsArray()) {
    if (id.AsInt() == nullptr) {
      return Invalid(fmt::format("\"{}\"[{}]: expected a token id, got {}; logs that are cut short do not do",
                                 found.name, words.size(), id.TypeName()));
    }
    if (*id.AsInt() < 0 || *id.AsInt() > kMostTokenId) {
      return Invalid(fmt::format("\"{}\"[{}]: expected a token id from 0 to {}, got {}", found.name, words.size(),
                                 kMostTokenId, *id.AsInt()));
    }
    words.push_back(static_cast<uint32_t>(SplitMix64(static_cast<uint64_t>(*id.AsInt()))() >> 32));
  }
  return words;
}

uint64_t NumberOf(const Found& found) { return found.value == nullptr ? 0 : Hash64(found.value->Dump()); }

class RequestsFormat final : public TraceFormat {
 public:
  explicit RequestsFormat(const FormatContext& context)
      : options_(context.options), text_(context.text), times_(context.options.time_unit) {}

  Result<std::optional<TraceRequest>> Read(std::string_view text) override {
    CACHALOT_ASSIGN_OR_RETURN(const Json line, ParseObject(text));
    if (const Json* event = line.Find("event"); event != nullptr && *event == Json("request.received")) {
      return std::optional<TraceRequest>();  // SGLang says it again once the request is finished
    }
    const std::vector<const Json*> asked = PartsOf(line, kRequestParts, kRequestParts);
    const std::vector<const Json*> answered = PartsOf(line, kAnswerParts, kAnswerInnerParts);
    TraceRequest request;
    CACHALOT_ASSIGN_OR_RETURN(request.arrival, times_.ArrivalOf(line, asked, answered));
    CACHALOT_ASSIGN_OR_RETURN(std::vector<uint32_t> words, Prompt(asked));
    CACHALOT_RETURN_IF_ERROR(CheckWhole(words.size(), answered));
    CACHALOT_ASSIGN_OR_RETURN(const std::vector<uint32_t> answer, Answer(answered));
    request.input_tokens = words.size();
    CACHALOT_ASSIGN_OR_RETURN(request.output_tokens, AnswerTokens(answer.size(), asked, answered));
    request.session = NumberOf(Find(asked, kSessions));
    request.tenant = NumberOf(Find(asked, kTenants));
    text_.NameBlocks(words, &request);
    words.insert(words.end(), answer.begin(), answer.end());
    text_.KeepText(words, &request);
    return std::optional(std::move(request));
  }

 private:
  std::vector<uint32_t> WordsOf(std::string_view text) const {
    return options_.words_of_text ? options_.words_of_text(text) : PieceWords(text);
  }
  void Append(std::string_view text, std::vector<uint32_t>* words) const {
    const std::vector<uint32_t> more = WordsOf(text);
    words->insert(words->end(), more.begin(), more.end());
  }

  Result<std::vector<uint32_t>> Prompt(std::span<const Json* const> asked) const {
    const Found ids = Find(asked, kPromptIds);
    if (ids.value != nullptr && ids.value->AsArray() != nullptr) return WordsOfIds(ids);
    constexpr std::string_view kMessages[] = {"messages"};
    const Found messages = Find(asked, kMessages);
    if (messages.value != nullptr) return Conversation(messages);
    const Found text = Find(asked, kPromptTexts);
    if (text.value == nullptr) {
      return Invalid(fmt::format("no prompt: expected one of {}, messages, {}", fmt::join(kPromptIds, ", "),
                                 fmt::join(kPromptTexts, ", ")));
    }
    if (text.value->AsArray() != nullptr) return WordsOfIds(text);
    if (text.value->AsString() != nullptr) return WordsOf(*text.value->AsString());
    return Invalid(fmt::format("\"{}\": expected text or token ids, got {}", text.name, text.value->TypeName()));
  }

  // Each message is its role and its text; then the assistant's turn begins.
  Result<std::vector<uint32_t>> Conversation(const Found& messages) const {
    if (messages.value->AsArray() == nullptr) {
      return Invalid(fmt::format("\"messages\": expected an array, got {}", messages.value->TypeName()));
    }
    std::vector<uint32_t> words;
    for (const Json& message : *messages.value->AsArray()) {
      const Json* role = message.Find("role");
      if (role == nullptr || role->AsString() == nullptr) return Invalid("\"messages\": expected a role in each");
      Append(RoleMark(*role->AsString()), &words);
      const Json* content = message.Find("content");
      if (content != nullptr) AppendContent(*content, &words);
      if (const Json* calls = message.Find("tool_calls"); calls != nullptr) Append(calls->Dump(), &words);
    }
    Append(RoleMark("assistant"), &words);
    return words;
  }
  static std::string RoleMark(std::string_view role) { return fmt::format("\n{}:", role); }
  void AppendContent(const Json& content, std::vector<uint32_t>* words) const {
    if (content.AsString() != nullptr) return Append(*content.AsString(), words);
    if (content.AsArray() == nullptr) return;
    for (const Json& part : *content.AsArray()) {
      const Json* text = part.Find("text");
      Append(text != nullptr && text->AsString() != nullptr ? *text->AsString() : part.Dump(), words);
    }
  }

  // Servers cut what they log; a prompt of which a part is missing would look like another.
  Status CheckWhole(uint64_t found, std::span<const Json* const> answered) const {
    constexpr uint64_t kMostPerWord = 4;
    const Found stated = Find(answered, kPromptCounts);
    if (found == 0) return Invalid("the prompt is empty");
    if (found > options_.limits.most_tokens) {
      return Invalid(fmt::format("the prompt has {} tokens: expected at most {}", found, options_.limits.most_tokens));
    }
    if (stated.value == nullptr) return OkStatus();
    CACHALOT_ASSIGN_OR_RETURN(const uint64_t tokens, TokenCount(*stated.value, stated.name, options_.limits));
    if (tokens / kMostPerWord <= found) return OkStatus();
    return Invalid(fmt::format("\"{}\" is {}, but the prompt has about {}: expected a log that holds all of it",
                               stated.name, tokens, found));
  }

  Result<std::vector<uint32_t>> Answer(std::span<const Json* const> answered) const {
    const std::span inner = answered.subspan(1);  // the line's own "text" is its prompt
    Found ids = Find(answered, std::span(kAnswerIds).first(3));
    if (ids.value == nullptr) ids = Find(inner, kAnswerIds);
    if (ids.value != nullptr && ids.value->AsArray() != nullptr) return WordsOfIds(ids);
    Found text = Find(answered, std::span(kAnswerTexts).first(3));
    if (text.value == nullptr) text = Find(inner, kAnswerTexts);
    if (text.value == nullptr) text = FirstChoice(answered);
    constexpr std::string_view kWhole[] = {"output", "response"};
    if (text.value == nullptr) text = Find(answered.first(1), kWhole);
    if (text.value == nullptr || text.value->AsString() == nullptr) return std::vector<uint32_t>();
    return WordsOf(*text.value->AsString());
  }
  // As OpenAI's API answers.
  static Found FirstChoice(std::span<const Json* const> answered) {
    constexpr std::string_view kChoices[] = {"choices"};
    const Found choices = Find(answered, kChoices);
    const Json::Array* all = choices.value == nullptr ? nullptr : choices.value->AsArray();
    if (all == nullptr || all->empty()) return {};
    const Json* message = all->front().Find("message");
    return {"choices", message == nullptr ? all->front().Find("text") : message->Find("content")};
  }

  Result<uint64_t> AnswerTokens(uint64_t known, std::span<const Json* const> asked,
                                std::span<const Json* const> answered) const {
    if (known > options_.limits.most_tokens) {
      return Invalid(fmt::format("the answer has {} tokens: expected at most {}", known, options_.limits.most_tokens));
    }
    if (known > 0) return known;
    Found count = Find(answered, kAnswerCounts);
    if (count.value == nullptr) count = Find(asked, kMostTokens);
    if (count.value != nullptr) return TokenCount(*count.value, count.name, options_.limits);
    return Invalid(fmt::format("neither an answer nor its length: expected one of {}, {}",
                               fmt::join(kAnswerCounts, ", "), fmt::join(kMostTokens, ", ")));
  }

  const ReadTraceOptions& options_;
  TextKeeper& text_;
  LogTimes times_;
};

}  // namespace

std::unique_ptr<TraceFormat> MakeRequestsFormat(const FormatContext& context) {
  return std::make_unique<RequestsFormat>(context);
}

}  // namespace cachalot::sim
