// RecordingGenerator is a Generator that hands everything on to another and records each request once it has ended.
// Threads:   as Generator.
// Ownership: borrows generator, record, clock and metrics, which must outlive it.
// Invariant: as Generator. What clients see is what they would see without it.
// Cost:      a copy of each prompt, held until its request has ended; a look-up per token.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "engine/request_record.h"
#include "server/generator.h"

namespace cachalot::server {

class RecordingGenerator final : public Generator {
 public:
  RecordingGenerator(Generator& generator, engine::RequestRecord& record, Clock& clock, Metrics& metrics)
      : generator_(generator), record_(record), clock_(clock), metrics_(metrics) {}

  void Start(Sink sink) override;
  void Submit(engine::GenerateRequest request) override;
  void Cancel(RequestId id) override { generator_.Cancel(id); }
  void Ask(engine::Inquiry inquiry) override { generator_.Ask(std::move(inquiry)); }
  void Command(engine::SessionCommand command) override { generator_.Command(std::move(command)); }
  void Drain() override { generator_.Drain(); }
  void Stop() override { generator_.Stop(); }

 private:
  struct Open {
    engine::EndedRequest request;
    uint32_t open_choices = 0;
  };

  void Take(const engine::StepOutput& output) CACHALOT_EXCLUDES(mutex_);
  void TakeFinish(const engine::FinishEvent& event) CACHALOT_REQUIRES(mutex_);
  void End(RequestId id, std::string_view outcome) CACHALOT_REQUIRES(mutex_);

  Generator& generator_;
  engine::RequestRecord& record_;
  Clock& clock_;
  Metrics& metrics_;
  Mutex mutex_;
  std::unordered_map<uint64_t, Open> open_ CACHALOT_GUARDED_BY(mutex_);  // by request id
  uint64_t told_lost_ CACHALOT_GUARDED_BY(mutex_) = 0;
};

}  // namespace cachalot::server
