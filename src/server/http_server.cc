#include "server/http_server.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "base/file_limit.h"
#include "base/log.h"
#include "server/connection.h"

namespace cachalot::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Executor = asio::io_context::executor_type;
using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;
using SteadyTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr Nanos kTick = std::chrono::milliseconds(100);
constexpr int kBacklog = 4096;
// What the kernel may hold unsent for one client: enough to keep it busy, little enough to notice a slow one.
constexpr int kUnsentBytes = 256 * 1024;
constexpr uint64_t kOtherFiles = 256;  // model, log, event loop and the like

void AllowConnections(uint32_t max_connections) {
  const uint64_t wanted = max_connections + kOtherFiles;
  const uint64_t allowed = RaiseFileLimit(wanted);
  if (allowed >= wanted) return;
  LogWarning(fmt::format("the system allows {} open files; {} connections need {}", allowed, max_connections, wanted));
}

}  // namespace

struct HttpServer::State {
  State(const ServerOptions& options, const Clock& clock, HttpHandler& handler)
      : context(options, clock, handler, kTick),
        work(context.io.get_executor()),
        acceptor(context.io.get_executor()),
        ticker(context.io.get_executor()),
        accept_retry([this] { Accept(); }) {}

  Status Listen();
  Status ListenOn(const tcp::endpoint& endpoint);
  void Accept();
  void Admit(Socket socket);
  void Refuse(Socket socket);
  void Tick();
  void CloseAll();

  HttpContext context;
  asio::executor_work_guard<Executor> work;
  Acceptor acceptor;
  SteadyTimer ticker;
  TimerWheel::Timer accept_retry;
  std::thread thread;
};

HttpServer::HttpServer(const ServerOptions& options, const Clock& clock, HttpHandler& handler)
    : state_(std::make_unique<State>(options, clock, handler)) {}

HttpServer::~HttpServer() { Stop(nullptr); }

Status HttpServer::State::ListenOn(const tcp::endpoint& endpoint) {
  boost::system::error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(Acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(kBacklog, ec);
  if (!ec) return OkStatus();
  boost::system::error_code ignored;
  acceptor.close(ignored);
  return Unavailable(ec.message());
}

// A name may stand for several addresses: the first that works is taken, those of IPv4 before others.
Status HttpServer::State::Listen() {
  const std::string where = fmt::format("cannot listen on {}:{}", context.options.host, context.options.port);
  boost::system::error_code ec;
  asio::ip::basic_resolver<tcp, Executor> resolver(context.io.get_executor());
  const auto found = resolver.resolve(context.options.host, std::to_string(context.options.port),
                                      asio::ip::resolver_base::passive, ec);
  if (ec) return Unavailable(ec.message()).Annotate(where);
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  std::stable_partition(endpoints.begin(), endpoints.end(), [](const auto& e) { return e.address().is_v4(); });
  Status status = Unavailable("the name has no address");
  for (const tcp::endpoint& endpoint : endpoints) {
    status = ListenOn(endpoint);
    if (status.ok()) break;
  }
  return status.Annotate(where);
}

Result<uint16_t> HttpServer::Start() {
  State& s = *state_;
  CACHALOT_RETURN_IF_ERROR(s.Listen());
  boost::system::error_code ec;
  const uint16_t port = s.acceptor.local_endpoint(ec).port();
  if (ec) return Unavailable(ec.message());
  AllowConnections(s.context.options.max_connections);
  s.Accept();
  s.Tick();
  s.thread = std::thread([&s] { s.context.io.run(); });
  return port;
}

void HttpServer::State::Accept() {
  if (!acceptor.is_open()) return;
  acceptor.async_accept([this](const boost::system::error_code& ec, Socket socket) {
    if (ec == asio::error::operation_aborted) return;
    if (ec) {
      // Out of file descriptors or the like: more attempts now would only spin.
      LogWarning(fmt::format("cannot accept a connection: {}", ec.message()));
      context.wheel.Schedule(&accept_retry, context.clock.Now() + std::chrono::milliseconds(200));
      return;
    }
    if (context.connections.size() < context.options.max_connections) {
      Admit(std::move(socket));
    } else {
      Refuse(std::move(socket));
    }
    Accept();
  });
}

void HttpServer::State::Admit(Socket socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
  auto connection = std::make_shared<Connection>(context, std::move(socket));
  context.connections.emplace(connection.get(), connection);
  connection->Start();
}

void HttpServer::State::Refuse(Socket socket) {
  const HttpResponse response = ErrorResponse({.status = 503,
                                               .message = "the server has too many open connections",
                                               .type = "server_error",
                                               .code = "overloaded",
                                               .retry_after_seconds = 1});
  HeadOptions options;
  options.content_length = response.body.size();
  options.keep_alive = false;
  const std::string text = FormatHead(response, options) + response.body;
  context.handler.OnResponse(response.status);
  // A fresh connection has room for this much; if not, closing it says the same.
  (void)::send(socket.native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  boost::system::error_code ignored;
  socket.shutdown(Socket::shutdown_both, ignored);
}

void HttpServer::State::Tick() {
  ticker.expires_after(kTick);
  ticker.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    context.wheel.Advance(context.clock.Now());
    context.handler.OnTick();
    Tick();
  });
}

void HttpServer::State::CloseAll() {
  context.on_closed = nullptr;
  while (!context.connections.empty()) {
    const auto connection = context.connections.begin()->second;
    connection->Close();
  }
}

void HttpServer::Post(std::function<void()> task) { asio::post(state_->context.io, std::move(task)); }

void HttpServer::Stop(std::function<void()> last) {
  State& s = *state_;
  if (!s.thread.joinable()) return;
  Post([&s, last = std::move(last)] {
    boost::system::error_code ignored;
    s.acceptor.close(ignored);
    if (last) last();
    s.CloseAll();
    s.context.io.stop();
  });
  s.thread.join();
}

void HttpServer::Drain(std::function<void()> drained) {
  State& s = *state_;
  boost::system::error_code ignored;
  s.acceptor.close(ignored);
  s.context.draining = true;
  std::vector<std::shared_ptr<Connection>> open;
  for (const auto& [raw, connection] : s.context.connections) open.push_back(connection);
  for (const auto& connection : open) connection->Drain();
  if (s.context.connections.empty()) return drained();
  s.context.on_closed = [&s, drained = std::move(drained)] {
    if (s.context.connections.empty()) drained();
  };
}

size_t HttpServer::open_connections() const { return state_->context.connections.size(); }

}  // namespace cachalot::server
