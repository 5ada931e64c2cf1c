// ApiError is a refusal as clients of the API see it: a status and the error object of its body.
// Threads:   plain data.
// Ownership: owns its texts.
// Invariant: the body has the shape {"error":{"message","type","param","code"}}.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "server/http_types.h"

namespace cachalot::server {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;                 // path of the offending field; empty: null
  std::string code;                  // empty: null
  uint32_t retry_after_seconds = 0;  // 0: no Retry-After header
};

template <class T>
using ApiResult = std::variant<T, ApiError>;

// 400 about one field of the request's body.
ApiError InvalidField(std::string path, std::string problem);
// 400 without a field.
ApiError InvalidBody(std::string message);
ApiError NotFound(std::string message);
ApiError ShuttingDown();
// 500.
ApiError ServerFault(std::string message);

std::string ErrorBody(const ApiError& error);
HttpResponse ErrorResponse(const ApiError& error);

}  // namespace cachalot::server
