#include "load/url.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace cachalot::load {
namespace {

constexpr size_t kMaxUrlBytes = 2048;

bool IsPort(std::string_view text) {
  uint32_t port = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
  return ec == std::errc() && end == text.data() + text.size() && port > 0 && port < 65536;
}

bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '?' && c != '#' && c != '@'; });
}

// Splits "host", "host:port" or "[address]:port".
Status ReadAuthority(std::string_view authority, Url* url) {
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return Invalid("\"[\" without \"]\"");
    url->host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    const size_t colon = authority.find(':');
    url->host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
  }
  if (url->host.empty()) return Invalid("no host");
  if (port.empty()) return OkStatus();
  if (!port.starts_with(':') || !IsPort(port.substr(1))) return Invalid("expected a port of 1 to 65535 after the host");
  url->port = port.substr(1);
  return OkStatus();
}

}  // namespace

std::string Url::Authority() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Result<Url> ParseUrl(std::string_view text) {
  if (text.size() > kMaxUrlBytes) return Invalid(fmt::format("the URL has more than {} bytes", kMaxUrlBytes));
  const std::string where = fmt::format("URL \"{}\"", text);
  if (text.starts_with("https://")) {
    return Invalid(where + ": https is not supported; put the server's plain http address here");
  }
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) return Invalid(where + ": expected http://HOST[:PORT][/PATH]");
  if (!IsPlain(text)) {
    return Invalid(
        "the URL holds a space, a control character, \"?\", \"#\" or \"@\": expected http://HOST[:PORT][/PATH]");
  }
  text.remove_prefix(kScheme.size());
  const size_t slash = std::min(text.find('/'), text.size());
  Url url;
  CACHALOT_RETURN_IF_ERROR(ReadAuthority(text.substr(0, slash), &url).Annotate(where));
  std::string_view path = text.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  url.path = path.empty() ? "/v1" : path;
  return url;
}

}  // namespace cachalot::load
