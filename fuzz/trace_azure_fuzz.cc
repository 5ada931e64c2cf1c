// Any bytes as a trace in the format "azure".
#include "trace_fuzz.h"

#include "base/check.h"
#include "sim/read_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cachalot::sim::FuzzTrace(data, size, "azure", "chat:0.5");
  return 0;
}
