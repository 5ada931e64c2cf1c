#include "load/response_reader.h"

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace cachalot::load {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

constexpr int kMaxInterimResponses = 8;  // "100 Continue" and its like

std::string_view View(string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct ResponseReader::Parser final : http::basic_parser<false> {
  explicit Parser(ResponseSink* sink) : sink(sink) {
    eager(true);
    header_limit(kMaxHeadBytes);
    body_limit(kMaxBodyBytes);
  }

  bool interim() const { return head.status < 200; }

  Status Deliver(string_view body, error_code& ec) {
    if (interim()) return OkStatus();
    Status status = sink->OnBody(View(body));
    if (!status.ok()) ec = make_error_code(boost::system::errc::operation_canceled);
    return status;
  }

  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int code, string_view, int, error_code& ec) override {
    head.status = code;
    ec = {};
  }
  void on_field_impl(http::field field, string_view, string_view value, error_code& ec) override {
    if (field == http::field::content_type) head.content_type = View(value);
    ec = {};
  }
  void on_header_impl(error_code& ec) override {
    if (!interim()) sink->OnHead(head);
    ec = {};
  }
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code& ec) override { ec = {}; }
  size_t on_body_impl(string_view body, error_code& ec) override {
    sink_status = Deliver(body, ec);
    return body.size();
  }
  void on_chunk_header_impl(uint64_t, string_view, error_code& ec) override { ec = {}; }
  size_t on_chunk_body_impl(uint64_t, string_view body, error_code& ec) override {
    sink_status = Deliver(body, ec);
    return body.size();
  }
  void on_finish_impl(error_code& ec) override { ec = {}; }

  ResponseSink* const sink;
  ResponseHead head;
  Status sink_status;
};

ResponseReader::ResponseReader(ResponseSink* sink) : sink_(sink) { BeginMessage(); }
ResponseReader::~ResponseReader() = default;

void ResponseReader::BeginMessage() { parser_ = std::make_unique<Parser>(sink_); }

bool ResponseReader::done() const { return parser_->is_done() && !parser_->interim(); }
bool ResponseReader::keep_alive() const { return parser_->keep_alive() && buffer_.empty(); }

Status ResponseReader::Feed(std::string_view bytes) {
  buffer_.append(bytes);
  size_t used = 0;
  while (used < buffer_.size() && !done()) {
    error_code ec;
    used += parser_->put(boost::asio::const_buffer(buffer_.data() + used, buffer_.size() - used), ec);
    if (ec == http::error::need_more) break;
    if (!parser_->sink_status.ok()) return parser_->sink_status;
    if (ec) return Invalid(fmt::format("not an HTTP response: {}", ec.message()));
    if (!parser_->is_done() || !parser_->interim()) continue;
    if (++interim_responses_ > kMaxInterimResponses) return Invalid("too many responses with a status below 200");
    BeginMessage();
  }
  buffer_.erase(0, used);
  if (buffer_.size() > kMaxLineBytes) return Invalid(fmt::format("a line of more than {} bytes", kMaxLineBytes));
  return OkStatus();
}

Status ResponseReader::End() {
  if (done()) return OkStatus();
  error_code ec;
  if (parser_->got_some() && buffer_.empty()) {
    parser_->put_eof(ec);
    if (!ec && done()) return OkStatus();
  }
  return Unavailable("the connection ended before the response did");
}

}  // namespace cachalot::load
