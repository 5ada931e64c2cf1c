// What an engine tells of its decisions, for tests: engines that make them, and values in what is told, by path.
// Threads:   one.
// Ownership: none.
// Invariant: a value that is not there ends the test.
// Cost:      a step of the engine.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {

// Computing is slow, so that KV is worth its way down and up; or quick, so that it is not.
inline constexpr StepCurve kSlow = {1e-2, 1e-3};
inline constexpr StepCurve kQuick = {1e-9, 1e-9};

inline TieredRig::Options With(const StepCurve& curve) {
  return {.engine = {.max_sequences = 8, .step_rows = 64, .prefill_chunk = 64}, .curve = curve};
}

inline Answer DecisionsTold(TieredRig& tiered) {
  StepInput input;
  input.inquiries.push_back({InquiryId(1), InquiryKind::kDecisions, {}});
  return std::move(tiered.rig().Step(std::move(input)).answers.at(0));
}

using JsonPath = std::initializer_list<std::string_view>;

inline const Json& In(const Json& json, JsonPath path) {
  const Json* at = &json;
  for (const std::string_view name : path) at = at->Find(name);
  return *at;
}
inline int64_t Int(const Json& json, JsonPath path) { return *In(json, path).AsInt(); }
inline double Number(const Json& json, JsonPath path) { return *In(json, path).AsNumber(); }
inline std::string Text(const Json& json, JsonPath path) { return *In(json, path).AsString(); }

}  // namespace cachalot::engine
