// BurstGPT's traces: seconds, tokens of request and response, and in later releases the session of conversations.
#include <utility>
#include "base/hash.h"
#include "sim/formats/columns.h"
#include "sim/formats/fields.h"
#include "sim/formats/trace_format.h"

namespace cachalot::sim {
namespace {

constexpr const char* kTime = "Timestamp";
constexpr const char* kRequest = "Request tokens";
constexpr const char* kResponse = "Response tokens";
constexpr const char* kSession = "Session ID";

class BurstGptFormat final : public TraceFormat {
 public:
  explicit BurstGptFormat(const FormatContext& context) : options_(context.options) {}

  Result<std::optional<TraceRequest>> Read(std::string_view line) override {
    CACHALOT_ASSIGN_OR_RETURN(const auto read, columns_.Read(line));
    if (!read) return std::optional<TraceRequest>();
    const std::vector<std::string_view>& fields = *read;
    TraceRequest request;
    CACHALOT_ASSIGN_OR_RETURN(request.arrival, SecondsColumn(fields[0], kTime));
    CACHALOT_ASSIGN_OR_RETURN(request.input_tokens, TokenColumn(fields[1], kRequest, options_.limits));
    CACHALOT_ASSIGN_OR_RETURN(request.output_tokens, TokenColumn(fields[2], kResponse, options_.limits));
    if (!fields[3].empty()) request.session = Hash64(fields[3]);
    return std::optional(std::move(request));
  }

 private:
  const ReadTraceOptions& options_;
  Columns columns_{{kTime, kRequest, kResponse, kSession}, 1};
};

}  // namespace

std::unique_ptr<TraceFormat> MakeBurstGptFormat(const FormatContext& context) {
  return std::make_unique<BurstGptFormat>(context);
}

}  // namespace cachalot::sim
