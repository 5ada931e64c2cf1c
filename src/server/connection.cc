#include "server/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

namespace cachalot::server {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
constexpr int kReadsPerWakeup = 8;  // then others have their turn
constexpr size_t kMaxPieces = 4;
constexpr Nanos kPeekPeriod = std::chrono::milliseconds(250);
constexpr Nanos kLingerLimit = std::chrono::seconds(30);
constexpr Nanos kLingerSilence = std::chrono::seconds(5);
constexpr Nanos kLingerWhileDraining = std::chrono::milliseconds(500);

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// The answer to one request, good until it is complete.
class ConnectionExchange final : public Exchange {
 public:
  ConnectionExchange(std::shared_ptr<Connection> connection, uint64_t serial)
      : connection_(std::move(connection)), serial_(serial) {}
  ~ConnectionExchange() override { connection_->Abandon(serial_); }

  void Respond(HttpResponse response) override { connection_->Respond(serial_, std::move(response)); }
  void BeginStream(HttpResponse head) override { connection_->BeginStream(serial_, std::move(head)); }
  void Write(std::string_view bytes) override { connection_->Write(serial_, bytes); }
  void EndStream() override { connection_->EndStream(serial_); }
  void OnGone(std::function<void()> gone) override { connection_->OnGone(serial_, std::move(gone)); }

 private:
  const std::shared_ptr<Connection> connection_;
  const uint64_t serial_;
};

}  // namespace

Connection::Connection(HttpContext& context, Socket socket)
    : context_(context),
      socket_(std::move(socket)),
      reader_(context.options.body_limit, &context.bodies),
      read_timer_([this] {
        const auto self = shared_from_this();
        OnReadDeadline();
      }),
      write_timer_([this] {
        const auto self = shared_from_this();
        Close();
      }),
      peek_timer_([this] {
        const auto self = shared_from_this();
        CheckForEnd();
      }) {}

void Connection::Start() {
  SetReadDeadline(context_.options.header_timeout);
  WaitReadable();
}

void Connection::Drain() {
  if (phase_ == Phase::kReading && reader_.idle()) Close();
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  read_timer_.Cancel();
  write_timer_.Cancel();
  peek_timer_.Cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
  queue_ = std::string();
  queue_sent_ = 0;
  if (gone_) boost::asio::post(context_.io, std::exchange(gone_, nullptr));
  const auto self = shared_from_this();
  context_.connections.erase(this);
  if (context_.on_closed) context_.on_closed();
}

void Connection::WaitReadable() {
  if (waiting_read_ || phase_ == Phase::kClosed) return;
  waiting_read_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const boost::system::error_code& ec) {
    self->waiting_read_ = false;
    if (!ec) self->OnReadable();
  });
}

void Connection::OnReadable() {
  switch (phase_) {
    case Phase::kReading: return ReadRequest();
    case Phase::kAnswering:
    case Phase::kFlushing: return PeekForEnd();
    case Phase::kLingering: return DiscardInput();
    case Phase::kClosed: return;
  }
}

void Connection::ReadRequest() {
  std::array<char, kReadBytes> bytes;
  for (int i = 0; i < kReadsPerWakeup && phase_ == Phase::kReading; ++i) {
    const ssize_t n = ::recv(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && !WouldBlock(errno))) return Close();
    if (n < 0) break;
    reader_.Feed({bytes.data(), static_cast<size_t>(n)});
    Drive();
    if (static_cast<size_t>(n) < bytes.size()) break;
  }
  WaitReadable();
}

// An answer is under way: input is a pipelined request, which waits in the kernel, or the client's end.
void Connection::PeekForEnd() {
  char byte;
  const ssize_t n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n == 0 || (n < 0 && !WouldBlock(errno))) return Close();
  if (n < 0) return WaitReadable();
  context_.wheel.Schedule(&peek_timer_, context_.clock.Now() + kPeekPeriod);
}

void Connection::CheckForEnd() {
  if (phase_ != Phase::kAnswering && phase_ != Phase::kFlushing) return;
  pollfd state{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  if (::poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return Close();
  context_.wheel.Schedule(&peek_timer_, context_.clock.Now() + kPeekPeriod);
}

void Connection::DiscardInput() {
  std::array<char, kReadBytes> bytes;
  for (int i = 0; i < kReadsPerWakeup; ++i) {
    const ssize_t n = ::recv(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && !WouldBlock(errno))) return Close();
    if (n < 0) break;
  }
  if (!context_.draining) {
    context_.wheel.Schedule(&read_timer_, std::min(linger_until_, context_.clock.Now() + kLingerSilence));
  }
  WaitReadable();
}

// Handles the requests that have arrived. An answer that is complete at once comes back here through AfterFlush:
// the loop goes on, the stack does not grow.
void Connection::Drive() {
  if (driving_) return;
  driving_ = true;
  while (phase_ == Phase::kReading) {
    const RequestReader::Event event = reader_.Next();
    if (event == RequestReader::Event::kNeedMore) break;
    switch (event) {
      case RequestReader::Event::kWantsBody: Send({"HTTP/1.1 100 Continue\r\n\r\n"}); break;
      case RequestReader::Event::kRequest: Dispatch(); break;
      default: RespondError(reader_.error());
    }
  }
  driving_ = false;
  NoteProgress();
}

void Connection::Dispatch() {
  read_timer_.Cancel();
  phase_ = Phase::kAnswering;
  ++serial_;
  keep_alive_ = reader_.keep_alive();
  HttpRequest request = reader_.TakeRequest();
  head_only_ = request.method == Method::kHead;
  context_.handler.Handle(std::move(request), std::make_shared<ConnectionExchange>(shared_from_this(), serial_));
}

void Connection::SetReadDeadline(uint32_t seconds) {
  context_.wheel.Schedule(&read_timer_, context_.clock.Now() + std::chrono::seconds(seconds));
}

// Head and body have one deadline each, however their bytes trickle in.
void Connection::NoteProgress() {
  if (phase_ != Phase::kReading) return;
  if (awaits_ == Awaits::kRequest && !reader_.idle()) {
    awaits_ = Awaits::kHead;
    SetReadDeadline(context_.options.header_timeout);
  }
  if (awaits_ == Awaits::kHead && reader_.in_body()) {
    awaits_ = Awaits::kBody;
    SetReadDeadline(context_.options.body_timeout);
  }
}

void Connection::OnReadDeadline() {
  if (phase_ == Phase::kReading && awaits_ != Awaits::kRequest) {
    const bool head = awaits_ == Awaits::kHead;
    return RespondError(
        {.status = 408,
         .message = fmt::format("the {} of the request did not arrive within {} seconds", head ? "head" : "body",
                                head ? context_.options.header_timeout : context_.options.body_timeout),
         .code = "request_timeout"});
  }
  Close();
}

// The answer to what is no request; it ends the connection.
void Connection::RespondError(const ApiError& error) {
  phase_ = Phase::kAnswering;
  ++serial_;
  keep_alive_ = false;
  head_only_ = false;
  Respond(serial_, ErrorResponse(error));
}

HeadOptions Connection::MakeHeadOptions() {
  keep_alive_ = keep_alive_ && !context_.draining;
  HeadOptions options;
  options.http_1_1 = reader_.http_1_1();
  options.keep_alive = keep_alive_;
  options.date = context_.dates.At(context_.clock.UnixSeconds());
  options.cors_origin = context_.options.cors_origin;
  return options;
}

void Connection::Respond(uint64_t serial, HttpResponse response) {
  if (!Current(serial)) return;
  HeadOptions options = MakeHeadOptions();
  options.content_length = response.body.size();
  context_.handler.OnResponse(response.status);
  Send({FormatHead(response, options), head_only_ ? std::string_view() : std::string_view(response.body)});
  FinishAnswer();
}

void Connection::BeginStream(uint64_t serial, HttpResponse head) {
  if (!Current(serial)) return;
  chunked_ = reader_.http_1_1();
  keep_alive_ = keep_alive_ && chunked_;
  HeadOptions options = MakeHeadOptions();
  options.chunked = chunked_;
  context_.handler.OnResponse(head.status);
  Send({FormatHead(head, options)});
  Write(serial, head.body);
}

void Connection::Write(uint64_t serial, std::string_view bytes) {
  if (!Current(serial) || bytes.empty()) return;
  // Checked before, not after: one write may be large without the client being slow.
  if (queued_bytes() > context_.options.stream_buffer) return Close();
  if (chunked_) {
    Send({fmt::format("{:x}\r\n", bytes.size()), bytes, "\r\n"});
  } else {
    Send({bytes});
  }
}

void Connection::EndStream(uint64_t serial) {
  if (!Current(serial)) return;
  if (chunked_) Send({"0\r\n\r\n"});
  FinishAnswer();
}

void Connection::OnGone(uint64_t serial, std::function<void()> gone) {
  if (Current(serial)) gone_ = std::move(gone);
}

void Connection::Abandon(uint64_t serial) {
  if (Current(serial)) Close();
}

void Connection::FinishAnswer() {
  if (phase_ != Phase::kAnswering) return;
  gone_ = nullptr;
  phase_ = Phase::kFlushing;
  if (queued_bytes() == 0) AfterFlush();
}

void Connection::AfterFlush() {
  if (!keep_alive_ || context_.draining) return Linger();
  phase_ = Phase::kReading;
  awaits_ = Awaits::kRequest;
  peek_timer_.Cancel();
  SetReadDeadline(context_.options.keep_alive);
  Drive();
  WaitReadable();
}

void Connection::Linger() {
  phase_ = Phase::kLingering;
  peek_timer_.Cancel();
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  const Nanos now = context_.clock.Now();
  linger_until_ = now + kLingerLimit;
  context_.wheel.Schedule(&read_timer_, now + (context_.draining ? kLingerWhileDraining : kLingerSilence));
  WaitReadable();
}

void Connection::Send(Pieces pieces) {
  if (phase_ == Phase::kClosed) return;
  size_t sent_bytes = 0;
  if (queued_bytes() == 0) {
    std::array<iovec, kMaxPieces> parts;
    msghdr message{};
    message.msg_iov = parts.data();
    for (const std::string_view piece : pieces) {
      parts[message.msg_iovlen++] = {const_cast<char*>(piece.data()), piece.size()};
    }
    const ssize_t n = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && !WouldBlock(errno)) return Close();
    sent_bytes = static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
  Queue(pieces, sent_bytes);
}

void Connection::Queue(Pieces pieces, size_t skip_bytes) {
  for (std::string_view piece : pieces) {
    const size_t skipped = std::min(skip_bytes, piece.size());
    queue_.append(piece.substr(skipped));
    skip_bytes -= skipped;
  }
  if (queued_bytes() == 0) return;
  if (!write_timer_.scheduled()) {
    const auto limit = std::chrono::seconds(context_.options.write_timeout);
    context_.wheel.Schedule(&write_timer_, context_.clock.Now() + limit);
  }
  WaitWritable();
}

void Connection::WaitWritable() {
  if (waiting_write_ || phase_ == Phase::kClosed) return;
  waiting_write_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const boost::system::error_code& ec) {
    self->waiting_write_ = false;
    if (!ec) self->FlushQueue();
  });
}

void Connection::FlushQueue() {
  if (phase_ == Phase::kClosed) return;
  const ssize_t n =
      ::send(socket_.native_handle(), queue_.data() + queue_sent_, queued_bytes(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && !WouldBlock(errno)) return Close();
  if (n > 0) {
    write_timer_.Cancel();
    queue_sent_ += static_cast<size_t>(n);
  }
  if (queued_bytes() > 0) {
    if (queue_sent_ > queue_.size() / 2) {
      queue_.erase(0, queue_sent_);
      queue_sent_ = 0;
    }
    return Queue({}, 0);
  }
  queue_ = std::string();
  queue_sent_ = 0;
  if (phase_ == Phase::kFlushing) AfterFlush();
}

}  // namespace cachalot::server
