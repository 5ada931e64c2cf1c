#include "server/request_reader.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include "base/check.h"

namespace cachalot::server {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;

constexpr size_t kChunkHeadLimitBytes = 4096;

// A body that is charged to a budget byte by byte as it arrives: what a client announces reserves nothing.
struct ChargedBody {
  struct value_type {
    std::string text;
    BodyCharge charge;
  };

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields>&, value_type& body) : body_(body) {}

    void init(const boost::optional<uint64_t>&, error_code& ec) { ec = {}; }

    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& ec) {
      const size_t bytes = boost::asio::buffer_size(buffers);
      if (!body_.charge.Grow(bytes)) {
        ec = make_error_code(boost::system::errc::not_enough_memory);
        return 0;
      }
      for (auto it = boost::asio::buffer_sequence_begin(buffers); it != boost::asio::buffer_sequence_end(buffers);
           ++it) {
        const boost::asio::const_buffer piece(*it);
        body_.text.append(static_cast<const char*>(piece.data()), piece.size());
      }
      ec = {};
      return bytes;
    }

    void finish(error_code& ec) { ec = {}; }

   private:
    value_type& body_;
  };
};

Method MethodOf(http::verb verb) {
  switch (verb) {
    case http::verb::get: return Method::kGet;
    case http::verb::head: return Method::kHead;
    case http::verb::post: return Method::kPost;
    case http::verb::delete_: return Method::kDelete;
    case http::verb::options: return Method::kOptions;
    default: return Method::kOther;
  }
}

}  // namespace

// Where a quoted chunk extension has line ends inside, Beast finds its end in another place when it comes in pieces.
// Nobody needs one: all are refused.
struct RequestReader::Parser : http::request_parser<ChargedBody> {
  Parser() { on_chunk_header(refuse_quotes); }

  std::function<void(uint64_t, boost::beast::string_view, error_code&)> refuse_quotes =
      [](uint64_t, boost::beast::string_view extensions, error_code& ec) {
        if (extensions.find('"') != boost::beast::string_view::npos) ec = http::error::bad_chunk_extension;
      };
};

RequestReader::RequestReader(uint64_t body_limit, BodyBudget* budget) : body_limit_(body_limit), budget_(budget) {}
RequestReader::~RequestReader() = default;
RequestReader::RequestReader(RequestReader&&) noexcept = default;

bool RequestReader::in_body() const { return parser_ != nullptr && head_seen_; }

void RequestReader::Feed(std::string_view bytes) {
  buffer_.erase(0, consumed_);
  consumed_ = 0;
  buffer_.append(bytes);
}

RequestReader::Event RequestReader::Next() {
  if (parser_ == nullptr && !StartRequest()) return Event::kNeedMore;
  while (!head_seen_ || !parser_->is_done()) {
    if (buffer_.size() - consumed_ < LeastBytes()) return Event::kNeedMore;
    error_code ec;
    consumed_ += parser_->put(boost::asio::buffer(buffer_.data() + consumed_, buffer_.size() - consumed_), ec);
    const bool stuck = ec == http::error::need_more;
    if (ec && !stuck)
      return ParserError(ec.category() == make_error_code(http::error::need_more).category() ? ec.value() : -1);
    if (!head_seen_ && parser_->is_header_done()) {
      const Event event = AfterHead();
      if (event != Event::kNeedMore) return event;
    } else if (stuck) {
      if (head_seen_ && buffer_.size() - consumed_ > kChunkHeadLimitBytes) {
        return Fail(400, "malformed HTTP request: a chunk's head is too long");
      }
      return Event::kNeedMore;
    }
  }
  request_.body = std::move(parser_->get().body().text);
  request_.charge = std::move(parser_->get().body().charge);
  parser_.reset();
  return Event::kRequest;
}

// False when there is nothing but the empty lines that some clients send between requests.
bool RequestReader::StartRequest() {
  while (consumed_ < buffer_.size() && (buffer_[consumed_] == '\r' || buffer_[consumed_] == '\n')) ++consumed_;
  if (consumed_ == buffer_.size()) {
    buffer_ = std::string();
    consumed_ = 0;
    return false;
  }
  parser_ = std::make_unique<Parser>();
  parser_->header_limit(kHeadLimitBytes);
  parser_->body_limit(body_limit_);
  parser_->get().body().charge = BodyCharge(budget_);
  head_seen_ = false;
  request_ = {};
  return true;
}

// With fewer there is nothing to parse yet. Beast asserts that it has seen five bytes of a last chunk before it is
// asked about it again, which fails when that chunk is the first: so it is shown no first chunk shorter than
// "0\r\n\r\n".
size_t RequestReader::LeastBytes() const {
  return head_seen_ && parser_->chunked() && parser_->get().body().text.empty() ? 5 : 1;
}

// kNeedMore: go on with the body.
RequestReader::Event RequestReader::AfterHead() {
  head_seen_ = true;
  parser_->eager(true);
  keep_alive_ = parser_->keep_alive();
  const auto& head = parser_->get();
  http_1_1_ = head.version() >= 11;
  const auto text = [&head](http::field field) { return std::string(head[field]); };
  request_.method = MethodOf(head.method());
  request_.method_name = std::string(head.method_string());
  request_.target = std::string(head.target());
  request_.authorization = text(http::field::authorization);
  request_.cors_headers = text(http::field::access_control_request_headers);
  request_.session = std::string(head["X-Cachalot-Session"]);
  request_.has_length = parser_->chunked() || parser_->content_length().has_value();
  if (head.count(http::field::transfer_encoding) > 0 && !parser_->chunked()) {
    return Fail(501, "unsupported Transfer-Encoding; only chunked is understood");
  }
  const auto expect = head[http::field::expect];
  if (expect.empty() || parser_->is_done()) return Event::kNeedMore;
  if (!boost::beast::iequals(expect, "100-continue")) return Fail(417, "unsupported Expect header");
  return http_1_1_ ? Event::kWantsBody : Event::kNeedMore;
}

RequestReader::Event RequestReader::ParserError(int value) {
  const auto reason = static_cast<http::error>(value);
  if (value < 0) {
    const Event event = Fail(503, "the server holds too many request bodies at the moment", "overloaded");
    error_.type = "server_error";
    error_.retry_after_seconds = 1;
    return event;
  }
  if (reason == http::error::header_limit) {
    return Fail(431, fmt::format("the head of the request is longer than {} bytes", kHeadLimitBytes));
  }
  if (reason == http::error::body_limit) {
    return Fail(413, fmt::format("the body of the request is longer than the limit of {} bytes", body_limit_),
                "request_too_large");
  }
  if (reason == http::error::bad_version) return Fail(505, "only HTTP/1.0 and HTTP/1.1 are understood");
  return Fail(400, fmt::format("malformed HTTP request: {}", make_error_code(reason).message()));
}

RequestReader::Event RequestReader::Fail(int status, std::string message, std::string code) {
  keep_alive_ = false;
  error_ = {.status = status, .message = std::move(message), .code = std::move(code)};
  parser_.reset();
  buffer_ = std::string();
  consumed_ = 0;
  return Event::kError;
}

}  // namespace cachalot::server
