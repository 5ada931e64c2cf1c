#include "server/server_options.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachalot::server {
namespace {

void CheckRange(std::vector<std::string>* problems, const char* name, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return;
  problems->push_back(fmt::format("{} is {}; it must be between {} and {}", name, value, low, high));
}

}  // namespace

std::vector<std::string> Problems(const ServerOptions& options) {
  constexpr uint64_t kDaySeconds = 24 * 3600;
  std::vector<std::string> problems;
  if (options.host.empty()) problems.push_back("host is empty; name an address such as 127.0.0.1");
  CheckRange(&problems, "port", options.port, 0, 65535);
  CheckRange(&problems, "text-workers", options.text_workers, 1, 256);
  CheckRange(&problems, "max-connections", options.max_connections, 1, 1'000'000);
  CheckRange(&problems, "body-limit", options.body_limit, 1024, uint64_t{1} << 30);
  CheckRange(&problems, "bodies-limit", options.bodies_limit, options.body_limit, uint64_t{1} << 40);
  CheckRange(&problems, "stream-buffer", options.stream_buffer, 4096, uint64_t{1} << 30);
  CheckRange(&problems, "header-timeout", options.header_timeout, 1, kDaySeconds);
  CheckRange(&problems, "body-timeout", options.body_timeout, 1, kDaySeconds);
  CheckRange(&problems, "keep-alive", options.keep_alive, 1, kDaySeconds);
  CheckRange(&problems, "write-timeout", options.write_timeout, 1, kDaySeconds);
  CheckRange(&problems, "heartbeat", options.heartbeat, 1, kDaySeconds);
  CheckRange(&problems, "drain-timeout", options.drain_timeout, 0, kDaySeconds);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(options.cors_origin.begin(), options.cors_origin.end(), is_control)) {
    problems.push_back("cors-origin contains a control character");
  }
  return problems;
}

std::vector<std::string> SplitNames(std::string_view comma_separated) {
  std::vector<std::string> names;
  while (!comma_separated.empty()) {
    const size_t comma = std::min(comma_separated.find(','), comma_separated.size());
    if (comma > 0) names.emplace_back(comma_separated.substr(0, comma));
    comma_separated.remove_prefix(std::min(comma + 1, comma_separated.size()));
  }
  return names;
}

}  // namespace cachalot::server
