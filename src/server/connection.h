// Connection serves one client: reads its requests one after the other, sends the answers, notices when it goes.
// Threads:   the I/O thread.
// Ownership: HttpContext::connections holds every open connection; an exchange holds its own until it is answered.
// Invariant: one request is in progress at a time; the next is not read before the answer has been handed to the
//            kernel; what waits to be sent of a stream never exceeds stream_buffer by more than one write.
// Cost:      while it streams: this object and the unsent bytes; no read buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/clock.h"
#include "server/body_budget.h"
#include "server/http_types.h"
#include "server/request_reader.h"
#include "server/response_head.h"
#include "server/server_options.h"
#include "server/timer_wheel.h"

namespace cachalot::server {

using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

class Connection;

// What all connections of a server share; used on the I/O thread.
struct HttpContext {
  HttpContext(const ServerOptions& options, const Clock& clock, HttpHandler& handler, Nanos tick)
      : options(options), clock(clock), handler(handler), wheel(clock.Now(), tick), bodies(options.bodies_limit) {}

  const ServerOptions options;
  const Clock& clock;
  HttpHandler& handler;
  // Before `io`, whose pending operations hold connections that refer to them.
  TimerWheel wheel;
  BodyBudget bodies;
  DateCache dates;
  boost::asio::io_context io;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections;
  std::function<void()> on_closed;  // after a connection left `connections`
  bool draining = false;            // no connection outlives its present request
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(HttpContext& context, Socket socket);

  void Start();
  // Ends the connection now if no request is in progress, else after its answer.
  void Drain();
  void Close();

  // For the exchange of request `serial`; calls of an earlier one do nothing.
  void Respond(uint64_t serial, HttpResponse response);
  void BeginStream(uint64_t serial, HttpResponse head);
  void Write(uint64_t serial, std::string_view bytes);
  void EndStream(uint64_t serial);
  void OnGone(uint64_t serial, std::function<void()> gone);
  void Abandon(uint64_t serial);

 private:
  enum class Phase : uint8_t {
    kReading,    // a request, or waiting for one
    kAnswering,  // the handler has it
    kFlushing,   // the answer is complete but not sent
    kLingering,  // everything is sent; what still arrives is thrown away, so that the client can read the answer
    kClosed,
  };

  // What a connection in Phase::kReading waits for; each has its deadline.
  enum class Awaits : uint8_t { kRequest, kHead, kBody };

  bool Current(uint64_t serial) const { return phase_ == Phase::kAnswering && serial == serial_; }

  void WaitReadable();
  void OnReadable();
  void ReadRequest();
  void PeekForEnd();
  void CheckForEnd();
  void DiscardInput();

  void Drive();
  void Dispatch();
  void RespondError(const ApiError& error);
  HeadOptions MakeHeadOptions();

  using Pieces = std::initializer_list<std::string_view>;
  void Send(Pieces pieces);
  void Queue(Pieces pieces, size_t skip_bytes);
  void FlushQueue();
  void WaitWritable();
  size_t queued_bytes() const { return queue_.size() - queue_sent_; }

  void FinishAnswer();
  void AfterFlush();
  void Linger();
  void SetReadDeadline(uint32_t seconds);
  void NoteProgress();
  void OnReadDeadline();

  HttpContext& context_;
  Socket socket_;
  RequestReader reader_;
  TimerWheel::Timer read_timer_;   // of the present phase
  TimerWheel::Timer write_timer_;  // while bytes wait and the client reads nothing
  TimerWheel::Timer peek_timer_;   // while pipelined bytes hide the end of the input

  Phase phase_ = Phase::kReading;
  Awaits awaits_ = Awaits::kRequest;
  uint64_t serial_ = 0;  // of the request in progress
  std::function<void()> gone_;
  std::string queue_;      // to be sent
  size_t queue_sent_ = 0;  // of it
  Nanos linger_until_{0};
  bool waiting_read_ = false;
  bool waiting_write_ = false;
  bool driving_ = false;
  bool head_only_ = false;  // the request is a HEAD
  bool keep_alive_ = true;  // what the answer's head said
  bool chunked_ = false;    // the answer's body is
};

}  // namespace cachalot::server
