// Url is the address of a server as people type it: http://HOST[:PORT][/PATH].
// Threads:   plain values.
// Ownership: owns its strings.
// Invariant: host, port and path hold no character that could end a line or a field of an HTTP request.
// Cost:      one pass over the text.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace cachalot::load {

struct Url {
  std::string host;  // without the brackets of an IPv6 address
  std::string port = "80";
  std::string path;  // "/v1" when the text has none; no slash at its end

  // For the Host field: "localhost:8080", "[::1]:8080".
  std::string Authority() const;
};

// kInvalid for anything but plain HTTP, and for user names, queries and fragments.
Result<Url> ParseUrl(std::string_view text);

}  // namespace cachalot::load
