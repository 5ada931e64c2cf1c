// TraceFormat is one way to write requests down: it makes requests of lines.
// Threads:   one.
// Ownership: a format borrows what it was made of.
// Invariant: a line is understood or refused whole: one that is refused leaves nothing behind that later lines depend
// on.
//            Arrivals are counted from any moment, and need not be in order.
// Cost:      linear in the line, and in its tokens.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "sim/read_trace.h"
#include "sim/trace_text.h"

namespace cachalot::sim {

class TraceFormat {
 public:
  virtual ~TraceFormat() = default;
  // Of a line that is not empty, without its end. nullopt: it has no request, as a heading.
  virtual Result<std::optional<TraceRequest>> Read(std::string_view line) = 0;
};

// What formats fill and heed.
struct FormatContext {
  const ReadTraceOptions& options;
  Trace& trace;
  TextKeeper& text;
};

std::unique_ptr<TraceFormat> MakeMooncakeFormat(const FormatContext& context);
std::unique_ptr<TraceFormat> MakeRecordFormat(const FormatContext& context);
std::unique_ptr<TraceFormat> MakeAzureFormat(const FormatContext& context);
std::unique_ptr<TraceFormat> MakeBurstGptFormat(const FormatContext& context);
std::unique_ptr<TraceFormat> MakeRequestsFormat(const FormatContext& context);

}  // namespace cachalot::sim
