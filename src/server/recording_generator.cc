#include "server/recording_generator.h"

#include <utility>

namespace cachalot::server {

void RecordingGenerator::Start(Sink sink) {
  generator_.Start([this, sink = std::move(sink)](engine::StepOutput output) {
    Take(output);
    sink(std::move(output));
  });
}

void RecordingGenerator::Submit(engine::GenerateRequest request) {
  engine::EndedRequest copy{.submitted = clock_.Now(),
                            .prompt = request.prompt,
                            .outputs = {},
                            .scope = request.scope,
                            .session = request.session,
                            .tenant = request.tenant,
                            .max_tokens = request.max_tokens,
                            .n = request.n,
                            .outcome = {},
                            .first_token = {}};
  {
    MutexLock lock(mutex_);
    open_.emplace(request.id.value, Open{std::move(copy), request.n});
  }
  generator_.Submit(std::move(request));
}

void RecordingGenerator::Take(const engine::StepOutput& output) {
  MutexLock lock(mutex_);
  for (const engine::Rejection& rejection : output.rejections) End(rejection.id, engine::NameOf(rejection.reason));
  for (const engine::TokenEvent& event : output.tokens) {
    engine::EndedRequest& request = open_.at(event.id.value).request;
    if (!request.first_token) request.first_token = clock_.Now();
    request.outputs.resize(request.n);
    request.outputs[event.choice].push_back(event.token.token);
  }
  for (const engine::FinishEvent& event : output.finishes) TakeFinish(event);
}

void RecordingGenerator::TakeFinish(const engine::FinishEvent& event) {
  Open& open = open_.at(event.id.value);
  open.request.cached_tokens = event.cached_tokens;
  open.request.host_tokens = event.host_tokens;
  open.request.disk_tokens = event.disk_tokens;
  if (--open.open_choices == 0) End(event.id, engine::NameOf(event.reason));
}

void RecordingGenerator::End(RequestId id, std::string_view outcome) {
  auto open = open_.extract(id.value);
  engine::EndedRequest& request = open.mapped().request;
  request.outcome = outcome;
  request.ended = clock_.Now();
  record_.Write(std::move(request));
  const uint64_t lost = record_.lost();
  metrics_.Add(Counter::kRecordsLost, lost - std::exchange(told_lost_, lost));
}

}  // namespace cachalot::server
