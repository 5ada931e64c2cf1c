// ServerOptions are the settings of the HTTP server and its API, each declared once.
// Threads:   plain data.
// Ownership: none.
// Invariant: Problems() lists everything that is out of range at once.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cachalot::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint32_t port = 8080;
  std::string model_alias;
  std::string cors_origin;
  uint32_t text_workers = 2;
  uint32_t default_max_tokens = 2048;
  uint32_t max_connections = 10000;
  uint64_t body_limit = uint64_t{32} << 20;
  uint64_t bodies_limit = uint64_t{512} << 20;
  uint64_t stream_buffer = uint64_t{1} << 20;
  uint32_t header_timeout = 10;
  uint32_t body_timeout = 60;
  uint32_t keep_alive = 75;
  uint32_t write_timeout = 30;
  uint32_t heartbeat = 15;
  uint32_t drain_timeout = 60;

  template <class F>
  void Visit(F&& f) {
    f("host", host, "Address or name to listen on; 0.0.0.0 for every interface.");
    f("port", port, "Port to listen on; 0 picks a free one.");
    f("model-alias", model_alias, "Further names under which clients may ask for the model, separated by commas.");
    f("cors-origin", cors_origin, "Value of Access-Control-Allow-Origin, such as *; empty sends none.");
    f("text-workers", text_workers, "Threads that parse, render and tokenize requests.");
    f("default-max-tokens", default_max_tokens,
      "Most output tokens of a chat request that names no limit itself; 0 leaves it to the model's context.");
    f("max-connections", max_connections, "Open connections; one more is answered 503.");
    f("body-limit", body_limit, "Bytes of one request body; a longer one is answered 413.");
    f("bodies-limit", bodies_limit, "Bytes of all request bodies in memory; a request beyond it is answered 503.");
    f("stream-buffer", stream_buffer, "Bytes that wait for a client that reads too slowly; past it, it is dropped.");
    f("header-timeout", header_timeout, "Seconds that a client has to send the head of a request.");
    f("body-timeout", body_timeout, "Seconds that a client has to send the body of a request.");
    f("keep-alive", keep_alive, "Seconds for which a connection without a request stays open.");
    f("write-timeout", write_timeout, "Seconds after which a client that reads nothing is dropped.");
    f("heartbeat", heartbeat, "Seconds of silence after which a stream gets a comment line, to keep it open.");
    f("drain-timeout", drain_timeout, "Seconds that running requests have to finish when the server is stopped.");
  }
};

// Each names the option, its value and what is allowed. Empty: valid.
std::vector<std::string> Problems(const ServerOptions& options);

// The names in `model_alias`.
std::vector<std::string> SplitNames(std::string_view comma_separated);

}  // namespace cachalot::server
