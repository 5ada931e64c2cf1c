// Server is the whole HTTP API over one model: listener, text workers, requests in progress.
// Threads:   Start, Drain, Stop and Wait may be called from any thread.
// Ownership: owns its threads; borrows what ServerDeps refers to, all of which must outlive it. It starts and stops the
//            generator.
// Invariant: after Stop or Wait returned no thread of the server or the generator runs.
// Cost:      one I/O thread and the text workers.
//
//   engine::Engine engine(...);
//   server::EngineGenerator generator(engine, clock);
//   server::Server server(options, {.model = {...}, .generator = generator, .clock = clock, .metrics = metrics, ...});
//   Result<uint16_t> port = server.Start();  // from now on clients are served
//   server.Wait();                           // returns once a signal handler's thread called Drain() or Stop()
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"
#include "base/status.h"
#include "server/api_keys.h"
#include "server/generator.h"
#include "server/served_model.h"
#include "server/server_options.h"

namespace cachalot::server {

struct ServerDeps {
  ServedModel model;  // the aliases of the options are added to its names
  Generator& generator;
  Clock& clock;
  Metrics& metrics;
  uint64_t entropy = 0;  // unpredictable: ids of answers and the seeds of requests that name none derive from it
  ApiKeys keys;          // that clients of /v1 must send as bearer tokens, if there are any
  std::vector<std::string> public_texts;  // see PublicPrefixes
  std::string version;                    // of the program, for /version
  Json settings;                          // that it was started with, without secrets; for the administration
};

class Server {
 public:
  Server(const ServerOptions& options, ServerDeps deps);
  ~Server();  // Stop()

  // Listens and serves. The port, or all that is wrong with the options, or why the port cannot be had. Call once.
  Result<uint16_t> Start();

  // Graceful end: no new connection or generation is accepted, those in progress finish (for at most drain_timeout),
  // then the server is ready for Wait to stop it. Returns at once.
  void Drain();

  // Ends everything now; requests in progress get no answer. Returns when it is done.
  void Stop();

  // Blocks until a drain is complete or Stop was called, and then stops.
  void Wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachalot::server
