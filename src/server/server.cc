#include "server/server.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/queue.h"
#include "server/api_service.h"
#include "server/http_server.h"
#include "server/public_prefixes.h"
#include "server/text_workers.h"

namespace cachalot::server {
namespace {

// The service, and besides it the clock of a drain: the I/O thread's view of the server.
class Handler final : public HttpHandler {
 public:
  Handler(ApiService& service, const Clock& clock, Metrics& metrics)
      : service_(service), clock_(clock), metrics_(metrics) {}

  void Handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override {
    service_.Handle(std::move(request), std::move(exchange));
  }
  void OnResponse(int status) override { service_.OnResponse(status); }
  void OnTick() override {
    service_.OnTick();
    if (http_ != nullptr) metrics_.Set(Gauge::kOpenConnections, static_cast<double>(http_->open_connections()));
    if (drain_deadline_ && clock_.Now() >= *drain_deadline_) std::exchange(on_drained_, [] {})();
  }

  void Use(const HttpServer* http) { http_ = http; }
  void SetDrainDeadline(Nanos deadline, std::function<void()> on_drained) {
    drain_deadline_ = deadline;
    on_drained_ = std::move(on_drained);
  }

 private:
  ApiService& service_;
  const Clock& clock_;
  Metrics& metrics_;
  const HttpServer* http_ = nullptr;
  std::optional<Nanos> drain_deadline_;
  std::function<void()> on_drained_;
};

ServedModel WithAliases(ServedModel model, const ServerOptions& options) {
  for (std::string& name : SplitNames(options.model_alias)) model.names.push_back(std::move(name));
  return model;
}

}  // namespace

struct Server::State {
  State(const ServerOptions& options_in, ServerDeps deps)
      : options(options_in),
        model(WithAliases(std::move(deps.model), options)),
        generator(deps.generator),
        clock(deps.clock),
        keys(std::move(deps.keys)),
        public_prefixes(model, deps.public_texts, deps.clock.UnixSeconds()),
        settings(std::move(deps.settings)),
        workers(options.text_workers),
        service(options, {.model = model,
                          .generator = deps.generator,
                          .clock = deps.clock,
                          .metrics = deps.metrics,
                          .workers = workers,
                          .post = [this](std::function<void()> task) { http.Post(std::move(task)); },
                          .entropy = deps.entropy,
                          .keys = keys,
                          .public_prefixes = public_prefixes,
                          .settings = settings,
                          .version = std::move(deps.version)}),
        handler(service, deps.clock, deps.metrics),
        http(options, deps.clock, handler) {}

  void MarkEnding() CACHALOT_EXCLUDES(mutex);

  const ServerOptions options;
  const ServedModel model;
  Generator& generator;
  Clock& clock;
  const ApiKeys keys;
  const PublicPrefixes public_prefixes;
  const Json settings;
  TextWorkers workers;
  ApiService service;
  Handler handler;
  HttpServer http;

  Queue<engine::StepOutput> outputs;        // from the generator's thread to the I/O thread
  std::atomic<bool> outputs_posted{false};  // a task that drains them is on its way

  Mutex stop_mutex;  // held while stopping; taken before `mutex`
  Mutex mutex;
  CondVar changed;
  bool ending CACHALOT_GUARDED_BY(mutex) = false;  // Wait has nothing more to wait for
  bool running CACHALOT_GUARDED_BY(stop_mutex) = false;
};

Server::Server(const ServerOptions& options, ServerDeps deps)
    : state_(std::make_unique<State>(options, std::move(deps))) {}

Server::~Server() { Stop(); }

Result<uint16_t> Server::Start() {
  State& s = *state_;
  const std::vector<std::string> problems = Problems(s.options);
  if (!problems.empty()) return Invalid(fmt::format("{}", fmt::join(problems, "; ")));
  MutexLock lock(s.stop_mutex);
  s.handler.Use(&s.http);
  s.generator.Start([&s](engine::StepOutput output) {
    s.outputs.Push(std::move(output));
    // One message is enough for all steps up to the moment when it is handled: an I/O thread that falls behind a
    // fast generator catches up with fewer and larger writes.
    if (s.outputs_posted.exchange(true)) return;
    s.http.Post([&s] {
      s.outputs_posted.store(false);
      s.service.OnSteps(s.outputs.Drain());
    });
  });
  Result<uint16_t> port = s.http.Start();
  s.running = port.ok();
  if (!port.ok()) s.generator.Stop();
  return port;
}

void Server::State::MarkEnding() {
  {
    MutexLock lock(mutex);
    ending = true;
  }
  changed.NotifyAll();
}

void Server::Drain() {
  State& s = *state_;
  s.http.Post([&s] {
    const Nanos limit = std::chrono::seconds(s.options.drain_timeout);
    s.handler.SetDrainDeadline(s.clock.Now() + limit, [&s] {
      LogWarning("some requests did not finish in time; they are dropped");
      s.MarkEnding();
    });
    s.service.Drain();
    s.generator.Drain();
    s.http.Drain([&s] { s.MarkEnding(); });
  });
}

void Server::Stop() {
  State& s = *state_;
  {
    MutexLock lock(s.stop_mutex);
    if (std::exchange(s.running, false)) {
      s.workers.Stop();
      s.generator.Stop();
      s.http.Stop([&s] { s.service.Clear(); });
    }
  }
  s.MarkEnding();
}

void Server::Wait() {
  State& s = *state_;
  {
    MutexLock lock(s.mutex);
    while (!s.ending) s.changed.Wait(s.mutex);
  }
  Stop();
}

}  // namespace cachalot::server
