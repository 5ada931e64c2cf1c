#include "sim/trace.h"

#include <fmt/format.h>

#include "base/json.h"

namespace cachalot::sim {

Status CheckWarmUp(uint64_t all, uint64_t requests) {
  if (requests == 0 || requests < all) return OkStatus();
  return Invalid(
      fmt::format("a warm-up of {} requests leaves none of {} to be counted: expected fewer", requests, all));
}

Status DisplacedId(uint64_t id) {
  return Invalid(fmt::format("hash id {} stands in another place than in an earlier request", id));
}

std::string FormatTrace(const Trace& trace) {
  std::string out;
  for (const TraceRequest& request : trace.requests) {
    JsonWriter w(&out);
    w.BeginObject();
    w.Key("timestamp");
    constexpr int64_t kNanosPerMilli = 1'000'000;
    if (request.arrival.count() % kNanosPerMilli == 0) {
      w.Int(request.arrival.count() / kNanosPerMilli);
    } else {
      w.Double(static_cast<double>(request.arrival.count()) / kNanosPerMilli);
    }
    w.Key("input_length").UInt(request.input_tokens);
    w.Key("output_length").UInt(request.output_tokens);
    w.Key("hash_ids").BeginArray();
    for (const uint64_t id : request.blocks) w.UInt(id);
    w.EndArray();
    w.EndObject();
    out += '\n';
  }
  return out;
}

}  // namespace cachalot::sim
