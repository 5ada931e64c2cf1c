#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/loaded_model.h"
#include "cli/terminal.h"
#include "model/catalogue.h"
#include "text/stream_decoder.h"

namespace cachalot::cli {
namespace {

struct RunOptions {
  std::string prompt;
  std::string system;
  std::string chat_template;
  bool raw = false;
  uint32_t max_tokens = 512;
  float temperature = 0.0f;
  uint32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  uint64_t seed = 0;
  template <class F>
  void Visit(F&& f) {
    f("prompt", prompt, "Answer this once and end.");
    f("system", system, "System message of the chat.");
    f("chat-template", chat_template, "File with a Jinja chat template to use instead of the model's own.");
    f("raw", raw, "Continue the prompt as it is, without a chat template.");
    f("max-tokens", max_tokens, "Most tokens of one answer.");
    f("temperature", temperature, "0: always the likeliest token.");
    f("top-k", top_k, "Choose among this many of the likeliest tokens; 0: all.");
    f("top-p", top_p, "Choose among the likeliest tokens that together have this probability.");
    f("min-p", min_p, "Choose among tokens with at least this share of the likeliest one's probability.");
    f("repetition-penalty", repetition_penalty, "Above 1 makes tokens seen before less likely.");
    f("seed", seed, "Seed of the random choice.");
  }
};

SamplingParams SamplingOf(const RunOptions& options) {
  SamplingParams params;
  params.temperature = options.temperature;
  params.top_k = options.top_k;
  params.top_p = options.top_p;
  params.min_p = options.min_p;
  params.repetition_penalty = options.repetition_penalty;
  params.seed = options.seed;
  return params;
}

// One conversation in the terminal.
class Chat {
 public:
  Chat(const RunOptions& options, LoadedModel& model) : options_(options), model_(model) {
    if (!options.system.empty()) AddMessage("system", options.system);
  }

  // Prints the answer as it comes; an interrupt ends it.
  Status Answer(const std::string& text) {
    std::string prompt = text;
    if (!options_.raw) {
      AddMessage("user", text);
      CACHALOT_ASSIGN_OR_RETURN(prompt, Render());
    }
    // A template writes the token that begins a text itself.
    const text::EncodeOptions encode{.add_bos = options_.raw, .parse_special = !options_.raw};
    engine::GenerateRequest request;
    request.id = RequestId(next_id_++);
    request.prompt = model_.tokenizer->Encode(prompt, encode);
    request.sampling = SamplingOf(options_);
    const auto ends = model_.tokenizer->end_tokens();
    request.end_tokens.assign(ends.begin(), ends.end());
    const uint64_t room = model_.executor->context_tokens() -
                          std::min<uint64_t>(request.prompt.size(), model_.executor->context_tokens());
    request.max_tokens = static_cast<uint32_t>(std::min<uint64_t>(options_.max_tokens, room));
    if (room == 0) {
      return Invalid(fmt::format("the conversation has {} tokens, the model's context {}", request.prompt.size(),
                                 model_.executor->context_tokens()));
    }
    CACHALOT_ASSIGN_OR_RETURN(const std::string answer, Generate(std::move(request)));
    if (!options_.raw) AddMessage("assistant", answer);
    return OkStatus();
  }

 private:
  void AddMessage(const char* role, const std::string& content) {
    messages_.push_back(Json::Object{{"role", role}, {"content", content}});
  }

  Result<std::string> Render() const {
    text::ChatInput input;
    input.messages = messages_;
    const auto spelling = [&](std::optional<TokenId> id) {
      return id ? std::string(model_.tokenizer->Spelling(*id)) : std::string();
    };
    input.bos_token = spelling(model_.tokenizer->bos());
    input.eos_token = spelling(model_.tokenizer->eos());
    input.unix_seconds = model_.clock.UnixSeconds();
    return model_.chat_template->Render(input);
  }

  Result<std::string> Generate(engine::GenerateRequest request) {
    const RequestId id = request.id;
    const std::vector<TokenId> ends = request.end_tokens;
    text::StreamDecoder decoder(*model_.tokenizer, false, text::DecodeFrom::kContinuation);
    std::string answer;
    const auto show = [&](const std::string& piece) {
      answer += piece;
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    };
    engine::StepInput input;
    input.arrivals.push_back(std::move(request));
    for (;;) {
      if (Interrupted()) input.cancels.push_back(id);
      const Nanos begin = input.now = model_.clock.Now();
      const engine::StepOutput output = model_.engine->Step(std::exchange(input, {}));
      input.last_duration = model_.clock.Now() - begin;
      if (!output.rejections.empty()) return Invalid(output.rejections.front().message);
      for (const engine::TokenEvent& event : output.tokens) {
        if (!std::ranges::binary_search(ends, event.token.token)) show(decoder.Push(event.token.token));
      }
      if (output.finishes.empty()) continue;
      if (!output.finishes.front().error.ok()) return output.finishes.front().error;
      show(decoder.Finish());
      std::fputc('\n', stdout);
      return answer;
    }
  }

  const RunOptions& options_;
  LoadedModel& model_;
  Json::Array messages_;
  uint64_t next_id_ = 1;
};

Status Converse(Chat& chat) {
  const bool terminal = isatty(STDIN_FILENO) == 1;
  std::string line;
  for (;;) {
    if (terminal) std::fputs("> ", stdout);
    std::fflush(stdout);
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    CACHALOT_RETURN_IF_ERROR(chat.Answer(ReplaceInvalidUtf8(line)));
    ClearInterrupt();
  }
  if (terminal) std::fputc('\n', stdout);
  return OkStatus();
}

}  // namespace

Status RunCommand(const Arguments& arguments) {
  ModelOptions model_options;
  model_options.model = model::kDefaultModel;
  engine::EngineOptions engine_options;
  RunOptions options;
  FlagSet flags("run",
                "Chats with MODEL in the terminal; with -p answers once. Ctrl-C ends an answer, Ctrl-D the chat.");
  flags.Positional("MODEL", &model_options.model, "path or catalogue name", false);
  flags.Letter("prompt", 'p');
  flags.AddAll(options);
  flags.AddAll(model_options);
  flags.AddAll(engine_options);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  engine_options.max_sequences = 1;
  std::vector<KvNeed> needs;
  if (model_options.kv_memory.bytes == 0) needs.push_back({});  // one sequence, as long as the context
  CACHALOT_ASSIGN_OR_RETURN(const auto model, LoadModel(model_options, engine_options, needs));
  if (!options.chat_template.empty()) {
    CACHALOT_RETURN_IF_ERROR(OverrideChatTemplate(options.chat_template, model.get()));
  }
  if (!options.raw && !model->chat_template) {
    if (!options.system.empty()) return Invalid("--system needs a chat template, and this model has none");
    std::fputs("this model has no chat template: prompts are continued as they are (--raw)\n", stderr);
    options.raw = true;
  }
  CatchInterrupts();
  Chat chat(options, *model);
  return options.prompt.empty() ? Converse(chat) : chat.Answer(ReplaceInvalidUtf8(options.prompt));
}

}  // namespace cachalot::cli
