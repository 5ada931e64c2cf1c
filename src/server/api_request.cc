#include "server/api_request.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "server/field_reader.h"
#include "server/retention_fields.h"

namespace cachalot::server {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();

// Fields that would change the answer and that this server does not know how to honour.
constexpr std::string_view kUnsupported[] = {
    "audio",
    "bad_words",
    "continue_final_message",
    "function_call",
    "functions",
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "json_schema",
    "min_tokens",
    "include_stop_str_in_output",
    "prompt_logprobs",
    "structured_outputs",
    "suffix",
    "use_beam_search",
    "web_search_options",
    "truncate_prompt_tokens",
};

// false, 0, "", [], {} ask for nothing.
bool AsksForNothing(const Json& value) {
  if (const bool* flag = value.AsBool()) return !*flag;
  if (const auto number = value.AsNumber()) return *number == 0;
  if (const std::string* text = value.AsString()) return text->empty() || *text == "none";
  if (const Json::Array* array = value.AsArray()) return array->empty();
  if (const Json::Object* object = value.AsObject()) return object->empty();
  return true;
}

void RefuseUnsupported(FieldReader& reader) {
  for (const std::string_view key : kUnsupported) {
    const Json* value = reader.Find(key);
    if (value != nullptr && !AsksForNothing(*value)) reader.Fail(std::string(key), "is not supported by this server");
  }
  bool skip_special = true;
  reader.Bool("skip_special_tokens", &skip_special);
  if (!skip_special) reader.Fail("skip_special_tokens", "only true is supported by this server");
  if (const Json* format = reader.Find("response_format")) {
    const Json* type = format->Find("type");
    const std::string* name = type == nullptr ? nullptr : type->AsString();
    if (name == nullptr) {
      reader.Fail("response_format.type", "expected string");
    } else if (*name != "text") {
      reader.Fail("response_format.type",
                  fmt::format("{} is not supported by this server; only \"text\"", Excerpt(*name)));
    }
  }
  if (const Json* modalities = reader.Find("modalities")) {
    if (*modalities != Json(Json::Array{Json("text")})) {
      reader.Fail("modalities", "only [\"text\"] is supported by this server");
    }
  }
}

void ReadStop(FieldReader& reader, ApiRequest* request) {
  const Json* stop = reader.Find("stop");
  if (stop == nullptr) return;
  const std::string path = reader.PathOf("stop");
  const auto add = [&](const Json& value, const std::string& where) {
    const std::string* text = value.AsString();
    if (text == nullptr) return reader.WrongType(where, "string", value);
    if (text->empty()) return reader.Fail(where, "is empty");
    if (text->size() > kMaxStopBytes) {
      return reader.Fail(where, fmt::format("has {} bytes; at most {} are allowed", text->size(), kMaxStopBytes));
    }
    request->stop.push_back(*text);
  };
  const Json::Array* array = stop->AsArray();
  if (array == nullptr) {
    if (stop->AsString() == nullptr) return reader.WrongType(path, "string or array", *stop);
    return add(*stop, path);
  }
  if (array->size() > kMaxStopStrings) {
    return reader.Fail(path, fmt::format("has {} strings; at most {} are allowed", array->size(), kMaxStopStrings));
  }
  for (size_t i = 0; i < array->size() && reader.ok(); ++i) add((*array)[i], ElementPath(path, i));
}

// Appends the array's token ids. Whether the vocabulary has them is checked later.
void ReadTokenIds(FieldReader& reader, const Json::Array& array, const std::string& path, std::vector<TokenId>* out) {
  out->reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) {
    const int64_t* id = array[i].AsInt();
    if (id == nullptr) return reader.WrongType(ElementPath(path, i), "integer", array[i]);
    if (*id < 0 || *id > kMaxInt) return reader.Fail(ElementPath(path, i), fmt::format("{} is no token id", *id));
    out->push_back(static_cast<TokenId>(*id));
  }
}

void ReadStopTokens(FieldReader& reader, ApiRequest* request) {
  const Json* ids = reader.Find("stop_token_ids");
  if (ids == nullptr) return;
  const Json::Array* array = ids->AsArray();
  if (array == nullptr) return reader.WrongType("stop_token_ids", "array", *ids);
  if (array->size() > kMaxStopTokens) {
    return reader.Fail("stop_token_ids",
                       fmt::format("has {} ids; at most {} are allowed", array->size(), kMaxStopTokens));
  }
  ReadTokenIds(reader, *array, "stop_token_ids", &request->stop_token_ids);
}

void ReadLogitBias(FieldReader& reader, ApiRequest* request) {
  const Json* bias = reader.Find("logit_bias");
  if (bias == nullptr) return;
  const Json::Object* object = bias->AsObject();
  if (object == nullptr) return reader.WrongType("logit_bias", "object", *bias);
  if (object->size() > kMaxLogitBiases) {
    return reader.Fail("logit_bias",
                       fmt::format("has {} entries; at most {} are allowed", object->size(), kMaxLogitBiases));
  }
  auto& out = request->sampling.logit_bias;
  for (const auto& [key, value] : *object) {
    TokenId token = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size()) {
      return reader.Fail("logit_bias", fmt::format("key {} is no token id", Excerpt(key)));
    }
    const std::optional<double> number = value.AsNumber();
    if (!number) return reader.WrongType(fmt::format("logit_bias.{}", token), "number", value);
    out.emplace_back(token, static_cast<float>(*number));
  }
  std::sort(out.begin(), out.end());
}

void ReadCacheSalt(FieldReader& reader, ApiRequest* request) {
  const Json* salt = reader.Find("cache_salt");
  if (salt == nullptr) return;
  reader.String("cache_salt", &request->cache_salt);
  const size_t bytes = request->cache_salt.size();
  if (bytes == 0 || bytes > kMaxCacheSaltBytes) {
    reader.Fail("cache_salt", fmt::format("has {} bytes; 1 to {} are allowed", bytes, kMaxCacheSaltBytes));
  }
}

void ReadStreamOptions(FieldReader& reader, ApiRequest* request) {
  reader.Bool("stream", &request->stream);
  const Json* options = reader.Find("stream_options");
  if (options == nullptr) return;
  if (options->AsObject() == nullptr) return reader.WrongType("stream_options", "object", *options);
  if (!request->stream) return reader.Fail("stream_options", "is only allowed with \"stream\": true");
  FieldReader inner(*options, "stream_options");
  inner.Bool("include_usage", &request->include_usage);
  reader.Adopt(inner.error());
}

void ReadTools(FieldReader& reader, ApiRequest* request) {
  if (const Json* tools = reader.Find("tools")) {
    const Json::Array* array = tools->AsArray();
    if (array == nullptr) return reader.WrongType("tools", "array", *tools);
    for (size_t i = 0; i < array->size(); ++i) {
      if ((*array)[i].AsObject() == nullptr) return reader.WrongType(ElementPath("tools", i), "object", (*array)[i]);
    }
    if (!array->empty()) request->tools = *tools;
  }
  const Json* choice = reader.Find("tool_choice");
  if (choice == nullptr) return;
  const std::string* name = choice->AsString();
  if (name != nullptr && *name == "none") {
    request->tools = Json();
  } else if (name == nullptr || *name != "auto") {
    reader.Fail("tool_choice", "only \"none\" and \"auto\" are supported by this server");
  }
}

void ReadChatLogprobs(FieldReader& reader, ApiRequest* request) {
  bool wanted = false;
  int32_t top = -1;
  reader.Bool("logprobs", &wanted);
  reader.Int("top_logprobs", 0, 20, &top);
  if (top > 0 && !wanted) reader.Fail("top_logprobs", "is only allowed with \"logprobs\": true");
  if (wanted) request->sampling.logprobs = std::max(top, 0);
}

// An array of prompts; `first` is its first element.
void ReadPromptArray(FieldReader& reader, const Json::Array& array, ApiRequest* request) {
  if (array.empty()) return reader.Fail("prompt", "is empty");
  if (array[0].AsInt() != nullptr) {
    return ReadTokenIds(reader, array, "prompt", &request->prompts.emplace_back().emplace<1>());
  }
  if (array.size() > kMaxPrompts) {
    return reader.Fail("prompt", fmt::format("has {} prompts; at most {} are allowed", array.size(), kMaxPrompts));
  }
  for (size_t i = 0; i < array.size() && reader.ok(); ++i) {
    const std::string path = ElementPath("prompt", i);
    if (const std::string* text = array[i].AsString()) {
      if (text->empty()) return reader.Fail(path, "is empty");
      request->prompts.emplace_back(*text);
    } else if (const Json::Array* ids = array[i].AsArray()) {
      if (ids->empty()) return reader.Fail(path, "is empty");
      ReadTokenIds(reader, *ids, path, &request->prompts.emplace_back().emplace<1>());
    } else {
      return reader.WrongType(path, i == 0 ? "string, integer or array" : "string or array", array[i]);
    }
  }
}

void ReadPrompt(FieldReader& reader, ApiRequest* request) {
  const Json* prompt = reader.Find("prompt");
  if (prompt == nullptr) return reader.Fail("prompt", "is missing");
  if (const std::string* text = prompt->AsString()) {
    if (text->empty()) return reader.Fail("prompt", "is empty");
    request->prompts.emplace_back(*text);
  } else if (const Json::Array* array = prompt->AsArray()) {
    ReadPromptArray(reader, *array, request);
  } else {
    reader.WrongType("prompt", "string or array", *prompt);
  }
}

void ReadBestOf(FieldReader& reader, const ApiRequest& request) {
  uint32_t best_of = request.n;
  reader.Int("best_of", 1, kMaxChoices, &best_of);
  if (best_of != request.n)
    reader.Fail("best_of", fmt::format("is {}; only the value of n, {}, is supported", best_of, request.n));
}

ApiResult<ApiRequest> Finish(const FieldReader& reader, ApiRequest request) {
  if (!reader.ok()) return *reader.error();
  return request;
}

std::optional<ApiError> NotAnObject(const Json& body) {
  if (body.AsObject() != nullptr) return std::nullopt;
  return InvalidBody(fmt::format("the body must be a JSON object, got {}", body.TypeName()));
}

}  // namespace

void ReadCommonFields(FieldReader& reader, ApiRequest* request) {
  SamplingParams& sampling = request->sampling;
  reader.String("model", &request->model);
  reader.Int("n", 1, kMaxChoices, &request->n);
  ReadStreamOptions(reader, request);
  reader.Bool("ignore_eos", &request->ignore_eos);
  reader.Float("temperature", &sampling.temperature);
  reader.Float("top_p", &sampling.top_p);
  reader.Float("min_p", &sampling.min_p);
  reader.Float("repetition_penalty", &sampling.repetition_penalty);
  reader.Float("presence_penalty", &sampling.presence_penalty);
  reader.Float("frequency_penalty", &sampling.frequency_penalty);
  int64_t top_k = 0;
  reader.Int("top_k", -1, kMaxInt, &top_k);  // -1 means all, as 0 does
  sampling.top_k = static_cast<uint32_t>(std::max<int64_t>(top_k, 0));
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  request->has_seed = reader.Find("seed") != nullptr;
  reader.Int("seed", kLowest, kHighest, &sampling.seed);
  ReadLogitBias(reader, request);
  ReadStop(reader, request);
  ReadStopTokens(reader, request);
  ReadCacheSalt(reader, request);
  request->retention = ReadRetention(reader);
  request->session = ReadSession(reader);
  RefuseUnsupported(reader);
}

ApiResult<ApiRequest> ParseChatRequest(const Json& body) {
  if (auto error = NotAnObject(body)) return *error;
  FieldReader reader(body, "");
  ApiRequest request;
  request.endpoint = Endpoint::kChat;
  ReadCommonFields(reader, &request);
  uint32_t max_tokens = 0;
  reader.Int("max_tokens", 1, kMaxInt, &max_tokens);
  reader.Int("max_completion_tokens", 1, kMaxInt, &max_tokens);
  if (max_tokens > 0) request.max_tokens = max_tokens;
  ReadChatLogprobs(reader, &request);
  ReadTools(reader, &request);
  reader.Bool("add_generation_prompt", &request.add_generation_prompt);
  if (const Json* variables = reader.Find("chat_template_kwargs")) {
    if (variables->AsObject() == nullptr) reader.WrongType("chat_template_kwargs", "object", *variables);
    request.template_variables = *variables;
  }
  const Json* echo = reader.Find("echo");
  if (echo != nullptr && !AsksForNothing(*echo)) reader.Fail("echo", "is only supported by /v1/completions");
  if (!reader.ok()) return *reader.error();
  const Json* messages = reader.Find("messages");
  if (messages == nullptr) return InvalidField("messages", "is missing");
  ApiResult<Json> parsed = ParseMessages(*messages, "messages");
  if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  request.messages = std::get<Json>(std::move(parsed));
  return request;
}

ApiResult<ApiRequest> ParseCompletionRequest(const Json& body) {
  if (auto error = NotAnObject(body)) return *error;
  FieldReader reader(body, "");
  ApiRequest request;
  request.endpoint = Endpoint::kCompletion;
  ReadCommonFields(reader, &request);
  int64_t max_tokens = -1;
  reader.Int("max_tokens", 0, kMaxInt, &max_tokens);
  if (max_tokens >= 0) request.max_tokens = static_cast<uint32_t>(max_tokens);
  reader.Int("logprobs", 0, 20, &request.sampling.logprobs);
  reader.Bool("echo", &request.echo);
  ReadBestOf(reader, request);
  ReadPrompt(reader, &request);
  return Finish(reader, std::move(request));
}

}  // namespace cachalot::server
