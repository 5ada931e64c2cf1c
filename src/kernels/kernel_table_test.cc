#include "kernels/kernel_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace cachalot::kernels {
namespace {

TEST(KernelTable, ScalarIsTheLastOfTheRunnableTables) {
  ASSERT_FALSE(RunnableTables().empty());
  EXPECT_STREQ(RunnableTables().back()->isa, "scalar");
}

TEST(KernelTable, EveryMemberOfEveryTableIsSet) {
  for (const KernelTable* table : RunnableTables()) {
    // All members are pointers.
    const char* members[sizeof(KernelTable) / sizeof(char*)];
    std::memcpy(members, table, sizeof members);
    for (const char* member : members) EXPECT_NE(member, nullptr) << table->isa;
  }
}

TEST(KernelTable, AutoSelectsTheFirstAndNamesSelectThemselves) {
  EXPECT_EQ(SelectTable("auto").value(), RunnableTables().front());
  for (const KernelTable* table : RunnableTables()) EXPECT_EQ(SelectTable(table->isa).value(), table);
}

TEST(KernelTable, UnknownNameIsInvalidAndNamesTheChoices) {
  const Status status = SelectTable("mmx").status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("mmx"), std::string::npos);
  EXPECT_NE(status.message().find("scalar"), std::string::npos);
}

}  // namespace
}  // namespace cachalot::kernels
