// Models and machines for tests.
// Threads:   any.
// Ownership: values.
// Invariant: none.
// Cost:      none.
#pragma once

#include <string>

#include "plan/plan.h"

namespace cachalot::plan {

// Of the catalogue; fails the test when it is not there or does not parse.
ModelShape KnownModel(const std::string& name);
// A context of `tokens` on one device, KV in f16, weights as published.
PlanRequest RequestFor(const ModelShape& model, const std::string& device, uint64_t tokens);
// KV of that model in a format, blocks of 16.
KvSizes SizesOf(const ModelShape& model, const std::string& format = "f16", uint64_t reference_tokens = 32'768);

}  // namespace cachalot::plan
