// ServedFake is the real server over its sockets, with the real engine over a fake model.
// Threads:   those of a server.
// Ownership: owns all parts.
// Invariant: it listens from the constructor to Stop or the destructor.
// Cost:      some milliseconds to start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/engine.h"
#include "engine/request_record.h"
#include "exec/device_memory.h"
#include "exec/sampler.h"
#include "exec/testing/fake_executor.h"
#include "server/engine_generator.h"
#include "server/recording_generator.h"
#include "server/server.h"
#include "server/testing/fake_tokenizer.h"

namespace cachalot::cli::testing {

class ServedFake {
 public:
  struct Options {
    engine::EngineOptions engine;
    uint32_t slots = 1000;
    server::ApiKeys keys;
    Json settings;
    engine::RequestRecord* record = nullptr;  // gets a line per request; must outlive the server
  };

  explicit ServedFake(Options options)
      : memory_(exec::MakeCpuMemory(exec::FakeExecutor::LayoutFor(kModel).slot_bytes, options.slots).value()),
        executor_(kModel, *memory_),
        sampler_(exec::FakeSampler()),
        engine_(options.engine, executor_, *memory_, sampler_),
        generator_(engine_, clock_) {
    metrics_.Set(Gauge::kKvBytes, static_cast<double>(memory_->slot_bytes() * memory_->slots()));
    server::Generator* front = &generator_;
    if (options.record != nullptr) front = &recorder_.emplace(generator_, *options.record, clock_, metrics_);
    server::ServerOptions server_options;
    server_options.port = 0;
    server_.emplace(server_options, server::ServerDeps{.model = {.names = {"fake"},
                                                                 .fingerprint = "fp",
                                                                 .context_tokens = 4096,
                                                                 .pool_tokens = 4096,
                                                                 .tokenizer = &tokenizer_},
                                                       .generator = *front,
                                                       .clock = clock_,
                                                       .metrics = metrics_,
                                                       .entropy = 1,
                                                       .keys = std::move(options.keys),
                                                       .settings = std::move(options.settings)});
    port_ = server_->Start().value();
  }
  uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  const exec::FakeExecutor& executor() const { return executor_; }
  void Stop() { server_->Stop(); }

  static inline const exec::FakeOptions kModel{.vocabulary = server::FakeTokenizer::kVocabulary};

 private:
  SteadyClock clock_;
  Metrics metrics_;
  server::FakeTokenizer tokenizer_;
  std::unique_ptr<exec::DeviceMemory> memory_;
  exec::FakeExecutor executor_;
  exec::Sampler sampler_;
  engine::Engine engine_;
  server::EngineGenerator generator_;
  std::optional<server::RecordingGenerator> recorder_;
  std::optional<server::Server> server_;
  uint16_t port_ = 0;
};

}  // namespace cachalot::cli::testing
