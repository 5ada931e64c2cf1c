// FunctionRef<R(Args...)> refers to a callable without owning it: for arguments that are called before the call
// returns.
// Threads:   as the callable.
// Ownership: none; the callable must outlive every call.
// Invariant: never empty.
// Cost:      one indirect call, no allocation.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace cachalot {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                                              std::is_invocable_r_v<R, F&, Args...>>>
  FunctionRef(F&& f)  // NOLINT: implicit by design
      : target_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* target, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(target))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  void* target_;
  R (*call_)(void*, Args...);
};

}  // namespace cachalot
