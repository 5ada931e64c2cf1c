// HttpServer listens on one port and serves HTTP/1.1 on one thread of its own.
// Threads:   Start, Stop and Post from any thread; the rest, and every call of the handler, on the I/O thread.
// Ownership: owns the thread, the listener and all connections; borrows clock and handler.
// Invariant: no client can block the thread, hold memory beyond the options' bounds, or slow another.
// Cost:      some microseconds per request or written event; about 1.5 KB per open connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "server/http_types.h"
#include "server/server_options.h"

namespace cachalot::server {

class HttpServer {
 public:
  HttpServer(const ServerOptions& options, const Clock& clock, HttpHandler& handler);
  ~HttpServer();  // Stop()

  // Listens and starts the thread. The port that is listened on, or why not. Call once.
  Result<uint16_t> Start();

  // Runs `task` on the I/O thread, in the order of the calls. Dropped once the server has stopped.
  void Post(std::function<void()> task);

  // Ends all connections at once and joins the thread. `last` runs on the I/O thread before the connections close;
  // when the server never started it does not run. Not from the I/O thread.
  void Stop(std::function<void()> last);

  // No new connections; those that are idle end now, the others after their answer. `drained` is called when none is
  // left.
  void Drain(std::function<void()> drained);
  size_t open_connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachalot::server
