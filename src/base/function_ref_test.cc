#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <string>

namespace cachalot {
namespace {

int Twice(FunctionRef<int(int)> f, int x) { return f(f(x)); }
int AddOne(int x) { return x + 1; }

TEST(FunctionRef, CallsLambdasFunctionsAndConstCallables) {
  int calls = 0;
  EXPECT_EQ(Twice([&](int x) { return ++calls, x * 3; }, 2), 18);
  EXPECT_EQ(calls, 2);
  const auto negate = [](int x) { return -x; };
  EXPECT_EQ(Twice(negate, 5), 5);
  EXPECT_EQ(Twice(
                +[](int x) { return x + 1; }, 5),
            7);
  const auto add_one = &AddOne;
  EXPECT_EQ(Twice(add_one, 5), 7);
}

TEST(FunctionRef, ForwardsReferencesAndMoveOnlyArguments) {
  std::string text;
  const auto append = [](std::string& out, std::string&& tail) { out += std::move(tail); };
  const FunctionRef<void(std::string&, std::string &&)> ref = append;
  ref(text, "abc");
  EXPECT_EQ(text, "abc");
}

}  // namespace
}  // namespace cachalot
