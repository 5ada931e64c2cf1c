// The numerics id names the arithmetic that produced KV and logits: same id, same bits.
// Threads:   constants.
// Ownership: none.
// Invariant: bumped by hand with every change of a bit of KV or logits; the golden digests in exec/cpu fail when bits
//            change without a bump. One id for all CPU instruction sets.
// Cost:      none.
#pragma once

namespace cachalot::exec {

inline constexpr const char* kCpuNumericsId = "cpu-1";
inline constexpr const char* kCpuReferenceNumericsId = "cpu-reference-1";

}  // namespace cachalot::exec
