// Reading traces in tests.
// Threads:   none.
// Ownership: none.
// Invariant: Read fails the test when there is an error, ErrorOf when there is none.
// Cost:      that of reading.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "sim/read_trace.h"

namespace cachalot::sim::testing {

inline TraceFile Read(std::string_view text, const ReadTraceOptions& options) {
  Result<TraceFile> file = ReadTrace(text, options);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? std::move(file).value() : TraceFile{};
}

inline std::string ErrorOf(std::string_view text, const ReadTraceOptions& options) {
  const Result<TraceFile> file = ReadTrace(text, options);
  EXPECT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), Code::kInvalid);
  return file.status().message();
}

}  // namespace cachalot::sim::testing
