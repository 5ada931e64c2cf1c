#include "load/http_client.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

namespace cachalot::load {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, Executor>;

constexpr int kReadsPerWakeup = 8;     // then others have their turn
constexpr int kHandlersPerRun = 1024;  // then the caller has its turn
constexpr Nanos kSweepPeriod = std::chrono::milliseconds(50);

}  // namespace

struct HttpClient::State {
  explicit State(const Clock& clock) : clock(clock), work(io.get_executor()) {}

  void Begin(std::shared_ptr<Connection> connection);
  std::shared_ptr<Connection> TakeIdle();
  void Sweep();

  const Clock& clock;
  asio::io_context io;
  asio::executor_work_guard<Executor> work;
  std::vector<tcp::endpoint> endpoints;
  std::unordered_set<std::shared_ptr<Connection>> busy;
  std::vector<std::shared_ptr<Connection>> idle;
  std::array<char, 64 * 1024> bytes;  // what one read brings
  Nanos next_sweep{0};
};

// One socket; busy with one request from Begin to End.
class HttpClient::Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(State& state) : state_(state), socket_(state.io.get_executor()) {}

  void Begin(std::string text, Nanos deadline, HttpObserver* observer);
  void End(HttpEnd end, const std::string& why);
  // Whether the kept connection still stands and is silent.
  bool usable();
  Nanos deadline() const { return deadline_; }

 private:
  void Connect(size_t endpoint);
  void OnConnected(size_t endpoint, const error_code& ec);
  void Exchange();
  void WaitReadable();
  void OnReadable();
  void OnClosed();
  void Close();

  State& state_;
  Socket socket_;
  std::string text_;
  Nanos deadline_{0};
  HttpObserver* observer_ = nullptr;  // null: not busy
  std::unique_ptr<ResponseReader> reader_;
  bool kept_ = false;      // it has served a request before this one
  bool answered_ = false;  // bytes of the response have arrived
  bool written_ = false;   // all of the request is with the kernel
};

void HttpClient::Connection::Begin(std::string text, Nanos deadline, HttpObserver* observer) {
  text_ = std::move(text);
  deadline_ = deadline;
  observer_ = observer;
  if (socket_.is_open()) return Exchange();
  Connect(0);
}

void HttpClient::Connection::Connect(size_t endpoint) {
  error_code ec;
  socket_.open(state_.endpoints[endpoint].protocol(), ec);
  if (ec) return OnConnected(endpoint, ec);
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.async_connect(state_.endpoints[endpoint], [self = shared_from_this(), endpoint](const error_code& result) {
    if (self->observer_ != nullptr) self->OnConnected(endpoint, result);
  });
}

void HttpClient::Connection::OnConnected(size_t endpoint, const error_code& ec) {
  if (!ec) return Exchange();
  Close();
  if (endpoint + 1 < state_.endpoints.size()) return Connect(endpoint + 1);
  End(HttpEnd::kConnect, ec.message());
}

void HttpClient::Connection::Exchange() {
  reader_ = std::make_unique<ResponseReader>(observer_);
  answered_ = written_ = false;
  // A server may refuse a request before it has read it all: what it says decides, not whether all could be sent.
  asio::async_write(socket_, asio::buffer(text_),
                    [self = shared_from_this()](const error_code& ec, size_t) { self->written_ = !ec; });
  WaitReadable();
}

void HttpClient::Connection::WaitReadable() {
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& ec) {
    if (self->observer_ == nullptr) return;
    if (ec) return self->End(HttpEnd::kClosed, ec.message());
    self->OnReadable();
  });
}

void HttpClient::Connection::OnReadable() {
  for (int i = 0; i < kReadsPerWakeup; ++i) {
    const ssize_t n = ::recv(socket_.native_handle(), state_.bytes.data(), state_.bytes.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) break;
    if (n <= 0) return OnClosed();
    answered_ = true;
    const Status status = reader_->Feed({state_.bytes.data(), static_cast<size_t>(n)});
    if (!status.ok()) return End(HttpEnd::kMalformed, status.message());
    if (reader_->done()) return End(HttpEnd::kComplete, "");
    if (static_cast<size_t>(n) < state_.bytes.size()) break;
  }
  WaitReadable();
}

void HttpClient::Connection::OnClosed() {
  if (kept_ && !answered_) {
    Close();
    kept_ = false;
    return Connect(0);
  }
  const Status status = reader_->End();
  Close();
  End(status.ok() ? HttpEnd::kComplete : HttpEnd::kClosed, status.message());
}

void HttpClient::Connection::End(HttpEnd end, const std::string& why) {
  if (observer_ == nullptr) return;
  const auto self = shared_from_this();
  HttpObserver* const observer = std::exchange(observer_, nullptr);
  state_.busy.erase(self);
  const bool keep = end == HttpEnd::kComplete && socket_.is_open() && written_ && reader_->keep_alive();
  if (keep) {
    kept_ = true;
    state_.idle.push_back(self);
  } else {
    Close();
  }
  observer->OnEnd(end, why);
}

void HttpClient::Connection::Close() {
  error_code ignored;
  socket_.close(ignored);
}

bool HttpClient::Connection::usable() {
  char byte;
  return ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

std::shared_ptr<HttpClient::Connection> HttpClient::State::TakeIdle() {
  while (!idle.empty()) {
    const auto connection = std::move(idle.back());
    idle.pop_back();
    if (connection->usable()) return connection;
  }
  return std::make_shared<Connection>(*this);
}

// Ends what is past its deadline.
void HttpClient::State::Sweep() {
  const Nanos now = clock.Now();
  if (now < next_sweep) return;
  next_sweep = now + kSweepPeriod;
  std::vector<std::shared_ptr<Connection>> late;
  for (const auto& connection : busy) {
    if (connection->deadline() <= now) late.push_back(connection);
  }
  for (const auto& connection : late) connection->End(HttpEnd::kTimeout, "no complete answer in time");
}

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::~HttpClient() { AbortAll(); }

Result<std::unique_ptr<HttpClient>> HttpClient::Create(const Url& url, const Clock& clock) {
  auto state = std::make_unique<State>(clock);
  error_code ec;
  asio::ip::basic_resolver<tcp, Executor> resolver(state->io.get_executor());
  const auto found = resolver.resolve(url.host, url.port, ec);
  if (ec) return Unavailable(fmt::format("cannot find {}: {}", url.Authority(), ec.message()));
  for (const auto& entry : found) state->endpoints.push_back(entry.endpoint());
  if (state->endpoints.empty()) return Unavailable(fmt::format("{} has no address", url.Authority()));
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(state)));
}

void HttpClient::Send(std::string text, Nanos deadline, HttpObserver* observer) {
  const auto connection = state_->TakeIdle();
  state_->busy.insert(connection);
  connection->Begin(std::move(text), deadline, observer);
}

void HttpClient::Run(Nanos at_most) {
  state_->io.run_one_for(std::clamp(at_most, Nanos(0), kSweepPeriod));
  for (int i = 1; i < kHandlersPerRun && state_->io.poll_one() > 0; ++i) {
  }
  state_->Sweep();
}

void HttpClient::AbortAll() {
  while (!state_->busy.empty()) {
    const auto connection = *state_->busy.begin();
    connection->End(HttpEnd::kAborted, "the run was ended");
  }
}

std::string FormatRequest(const Url& url, const std::string& api_key, const std::string& target,
                          const std::string* body) {
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\n", body == nullptr ? "GET" : "POST",
                                 url.path, target, url.Authority());
  if (!api_key.empty()) text += fmt::format("Authorization: Bearer {}\r\n", api_key);
  if (body == nullptr) return text + "\r\n";
  return text + fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body->size()) + *body;
}

}  // namespace cachalot::load
