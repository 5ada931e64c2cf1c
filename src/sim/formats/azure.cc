// Azure's traces of LLM inference: when, and how many tokens of context and of answer.
#include <utility>

#include "sim/formats/columns.h"
#include "sim/formats/fields.h"
#include "sim/formats/trace_format.h"

namespace cachalot::sim {
namespace {

constexpr const char* kTime = "TIMESTAMP";
constexpr const char* kContext = "ContextTokens";
constexpr const char* kGenerated = "GeneratedTokens";

class AzureFormat final : public TraceFormat {
 public:
  explicit AzureFormat(const FormatContext& context) : options_(context.options) {}

  Result<std::optional<TraceRequest>> Read(std::string_view line) override {
    CACHALOT_ASSIGN_OR_RETURN(const auto read, columns_.Read(line));
    if (!read) return std::optional<TraceRequest>();
    const std::vector<std::string_view>& fields = *read;
    TraceRequest request;
    const Result<Nanos> arrival = ParseDateTime(fields[0]);
    if (!arrival.ok()) return arrival.status().Annotate("\"TIMESTAMP\"");
    request.arrival = *arrival;
    CACHALOT_ASSIGN_OR_RETURN(request.input_tokens, TokenColumn(fields[1], kContext, options_.limits));
    CACHALOT_ASSIGN_OR_RETURN(request.output_tokens, TokenColumn(fields[2], kGenerated, options_.limits));
    return std::optional(std::move(request));
  }

 private:
  const ReadTraceOptions& options_;
  Columns columns_{{kTime, kContext, kGenerated}, 0};
};

}  // namespace

std::unique_ptr<TraceFormat> MakeAzureFormat(const FormatContext& context) {
  return std::make_unique<AzureFormat>(context);
}

}  // namespace cachalot::sim
