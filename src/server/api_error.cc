#include "server/api_error.h"

#include <utility>

#include "base/json.h"

namespace cachalot::server {
namespace {

void StringOrNull(JsonWriter& writer, const std::string& text) {
  if (text.empty()) {
    writer.Null();
  } else {
    writer.String(text);
  }
}

}  // namespace

ApiError InvalidField(std::string path, std::string problem) {
  ApiError error;
  error.message = path + ": " + problem;
  error.param = std::move(path);
  return error;
}

ApiError InvalidBody(std::string message) { return {.status = 400, .message = std::move(message)}; }

ApiError NotFound(std::string message) { return {.status = 404, .message = std::move(message), .code = "not_found"}; }

ApiError ShuttingDown() {
  return {.status = 503,
          .message = "the server is shutting down",
          .type = "server_error",
          .code = "shutting_down",
          .retry_after_seconds = 5};
}

ApiError ServerFault(std::string message) {
  return {.status = 500, .message = std::move(message), .type = "server_error", .code = "internal_error"};
}

std::string ErrorBody(const ApiError& error) {
  std::string body;
  JsonWriter writer(&body);
  writer.BeginObject().Key("error").BeginObject();
  writer.Key("message").String(error.message);
  writer.Key("type").String(error.type);
  writer.Key("param");
  StringOrNull(writer, error.param);
  writer.Key("code");
  StringOrNull(writer, error.code);
  writer.EndObject().EndObject();
  return body;
}

HttpResponse ErrorResponse(const ApiError& error) {
  HttpResponse response;
  response.status = error.status;
  response.body = ErrorBody(error);
  if (error.retry_after_seconds > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after_seconds));
  }
  return response;
}

}  // namespace cachalot::server
