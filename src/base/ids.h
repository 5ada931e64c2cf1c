// Id<Tag> makes numbers that mean different things different types.
// Threads:   plain values.
// Ownership: none.
// Invariant: ids of different tags neither compare nor convert.
// Cost:      that of the integer.
#pragma once

#include <compare>
#include <cstdint>

namespace cachalot {

template <class Tag, class Rep = uint32_t>
struct Id {
  Rep value{};
  constexpr Id() = default;
  explicit constexpr Id(Rep v) : value(v) {}
  auto operator<=>(const Id&) const = default;
};

using SlotId = Id<struct SlotTag>;                    // a place for one block in a pool
using SequenceId = Id<struct SequenceTag, uint64_t>;  // one running generation
using RequestId = Id<struct RequestTag, uint64_t>;    // one client request, with one or more sequences

using TokenId = uint32_t;  // a token of the model's vocabulary

}  // namespace cachalot
