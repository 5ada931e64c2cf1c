#include "server/testing/fake_generator.h"

#include <algorithm>
#include <utility>

#include "server/testing/fake_tokenizer.h"

namespace cachalot::server {
namespace {

std::vector<TokenId> Bytes(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

SampledToken Sample(TokenId token, int32_t logprobs) {
  SampledToken sampled{.token = token};
  if (logprobs < 0) return sampled;
  sampled.logprob = -0.25f;
  for (int32_t i = 0; i < logprobs; ++i) {
    sampled.top.push_back(
        {(token + static_cast<TokenId>(i)) % FakeTokenizer::kVocabulary, -0.25f * static_cast<float>(i + 1)});
  }
  return sampled;
}

// Of a pool of 5,000 bytes; all of a prompt but its last token is found; two slots are cleared.
engine::Answer AnswerTo(const engine::Inquiry& inquiry) {
  engine::Answer answer{.id = inquiry.id, .kind = inquiry.kind};
  answer.overview = {.ledger = {.total_bytes = 5000, .live_bytes = 3000, .shared_bytes = 1000, .free_bytes = 2000},
                     .block_tokens = 16,
                     .layer_groups = 2,
                     .sequences = 3,
                     .sequence_tokens = 40,
                     .indexed_tokens = 90,
                     .index_nodes = 7};
  for (const engine::GenerateRequest& request : inquiry.requests) {
    const uint64_t tokens = request.prompt.size();
    const bool scored = request.prompt_logprobs >= 0;
    const uint64_t hit = scored ? 0 : tokens - 1;
    answer.probes.push_back({.prompt_tokens = tokens,
                             .hit_tokens = hit,
                             .awaited_tokens = hit,
                             .public_tokens = request.scope.public_tokens,
                             .limit = scored ? engine::HitLimit::kScored : engine::HitLimit::kLastToken});
  }
  answer.evicted_slots = 2;
  answer.decisions = Json::Array{Json::Object{{"way", "load"}}};
  answer.decisions_down = Json::Array{Json::Object{{"way", "drop"}}};
  return answer;
}

}  // namespace

FakeGenerator::Options FakeGenerator::Saying(std::string text) {
  return {.answer = [text](const engine::GenerateRequest&, uint32_t) { return Bytes(text); }};
}

FakeGenerator::Options FakeGenerator::Repeating(std::string text) {
  return {.answer = [text](const engine::GenerateRequest& request, uint32_t) {
    std::vector<TokenId> ids;
    while (ids.size() < request.max_tokens) {
      for (const TokenId id : Bytes(text)) ids.push_back(id);
    }
    return ids;
  }};
}

FakeGenerator::FakeGenerator(Options options) : options_(std::move(options)) {}
FakeGenerator::~FakeGenerator() { Stop(); }

void FakeGenerator::Start(Sink sink) {
  MutexLock lock(mutex_);
  sink_ = std::move(sink);
  if (!options_.automatic) return;
  thread_ = std::thread([this] {
    for (;;) {
      {
        MutexLock inner(mutex_);
        while (!stopping_ && arrivals_.empty() && running_.empty() && inquiries_.empty()) changed_.Wait(mutex_);
        if (stopping_) return;
      }
      Step();
    }
  });
}

void FakeGenerator::Submit(engine::GenerateRequest request) {
  {
    MutexLock lock(mutex_);
    submits_.push_back(request);
    arrivals_.push_back(std::move(request));
  }
  changed_.NotifyAll();
}

void FakeGenerator::Cancel(RequestId id) {
  {
    MutexLock lock(mutex_);
    cancels_.push_back(id);
    std::erase_if(running_, [id](const Running& running) { return running.request.id == id; });
    std::erase_if(arrivals_, [id](const engine::GenerateRequest& request) { return request.id == id; });
  }
  changed_.NotifyAll();
}

void FakeGenerator::Ask(engine::Inquiry inquiry) {
  {
    MutexLock lock(mutex_);
    asked_.push_back(inquiry);
    inquiries_.push_back(std::move(inquiry));
  }
  changed_.NotifyAll();
}

void FakeGenerator::Command(engine::SessionCommand command) {
  {
    MutexLock lock(mutex_);
    commands_.push_back(std::move(command));
  }
  changed_.NotifyAll();
}

void FakeGenerator::Drain() {
  MutexLock lock(mutex_);
  draining_ = true;
}

void FakeGenerator::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    sink_ = nullptr;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void FakeGenerator::RejectWith(engine::Rejection rejection) {
  MutexLock lock(mutex_);
  rejecting_ = true;
  rejection_ = std::move(rejection);
}

bool FakeGenerator::Step() {
  engine::StepOutput out;
  Sink sink;
  {
    MutexLock lock(mutex_);
    if (arrivals_.empty() && running_.empty() && inquiries_.empty()) return false;
    for (const engine::Inquiry& inquiry : std::exchange(inquiries_, {})) out.answers.push_back(AnswerTo(inquiry));
    for (const engine::GenerateRequest& request : std::exchange(arrivals_, {})) Admit(request, &out);
    for (Running& running : running_) Advance(running, &out);
    std::erase_if(running_, [](const Running& running) {
      return std::none_of(running.choices.begin(), running.choices.end(), [](const Choice& c) { return c.open; });
    });
    ++stats_.steps;
    stats_.running_sequences = static_cast<uint32_t>(running_.size());
    out.stats = stats_;
    sink = sink_;
  }
  if (sink) sink(std::move(out));
  return true;
}

void FakeGenerator::Emit(engine::StepOutput output) {
  Sink sink;
  {
    MutexLock lock(mutex_);
    sink = sink_;
  }
  if (sink) sink(std::move(output));
}

void FakeGenerator::Admit(const engine::GenerateRequest& request, engine::StepOutput* out) {
  if (draining_ || rejecting_) {
    engine::Rejection rejection = rejection_;
    if (draining_) rejection.reason = engine::RejectReason::kShuttingDown;
    rejection.id = request.id;
    out->rejections.push_back(std::move(rejection));
    return;
  }
  Running running{.request = request};
  for (uint32_t i = 0; i < request.n; ++i) {
    Choice& choice = running.choices.emplace_back();
    choice.answer = options_.answer(request, i);
    choice.answer.push_back(FakeTokenizer::kEos);
    if (request.stop) choice.stop = request.stop();
  }
  running_.push_back(std::move(running));
}

void FakeGenerator::Advance(Running& running, engine::StepOutput* out) {
  const engine::GenerateRequest& request = running.request;
  if (request.prompt_logprobs >= 0 && !running.prompt_told && request.prompt.size() > 1) {
    engine::PromptEvent event{.id = request.id, .first = 1};
    for (size_t i = 1; i < request.prompt.size(); ++i) {
      event.tokens.push_back(Sample(request.prompt[i], request.prompt_logprobs));
    }
    out->prompts.push_back(std::move(event));
  }
  running.prompt_told = true;
  for (uint32_t i = 0; i < running.choices.size(); ++i) {
    if (running.choices[i].open) AdvanceChoice(running, i, out);
  }
}

void FakeGenerator::AdvanceChoice(Running& running, uint32_t index, engine::StepOutput* out) {
  const engine::GenerateRequest& request = running.request;
  Choice& choice = running.choices[index];
  engine::FinishEvent finish{.id = request.id, .choice = index};
  finish.prompt_tokens = static_cast<uint32_t>(request.prompt.size());
  if (request.max_tokens > 0) {
    const TokenId token = choice.answer[std::min<size_t>(choice.made, choice.answer.size() - 1)];
    ++choice.made;
    ++stats_.tokens_generated;
    out->tokens.push_back({request.id, index, Sample(token, request.sampling.logprobs)});
    const auto& ends = request.end_tokens;
    const bool ended = std::binary_search(ends.begin(), ends.end(), token) || (choice.stop && choice.stop->Push(token));
    if (!options_.error.ok()) {
      finish.reason = engine::FinishReason::kError;
      finish.error = options_.error;
    } else if (!ended && choice.made < request.max_tokens) {
      return;
    } else {
      finish.reason = ended ? engine::FinishReason::kStop : engine::FinishReason::kLength;
    }
  } else {
    finish.reason = engine::FinishReason::kLength;
  }
  finish.output_tokens = choice.made;
  if (request.session) finish.session = options_.session;
  choice.open = false;
  out->finishes.push_back(std::move(finish));
}

std::vector<engine::GenerateRequest> FakeGenerator::WaitForSubmits(size_t count) {
  MutexLock lock(mutex_);
  while (submits_.size() < count) changed_.Wait(mutex_);
  return submits_;
}

std::vector<RequestId> FakeGenerator::WaitForCancels(size_t count) {
  MutexLock lock(mutex_);
  while (cancels_.size() < count) changed_.Wait(mutex_);
  return cancels_;
}

std::vector<engine::Inquiry> FakeGenerator::WaitForInquiries(size_t count) {
  MutexLock lock(mutex_);
  while (asked_.size() < count) changed_.Wait(mutex_);
  return asked_;
}

std::vector<engine::SessionCommand> FakeGenerator::WaitForCommands(size_t count) {
  MutexLock lock(mutex_);
  while (commands_.size() < count) changed_.Wait(mutex_);
  return commands_;
}

size_t FakeGenerator::cancels() {
  MutexLock lock(mutex_);
  return cancels_.size();
}

size_t FakeGenerator::running() {
  MutexLock lock(mutex_);
  return running_.size() + arrivals_.size();
}

}  // namespace cachalot::server
