// Claim: a name can be taken once, among any number of others; text_hash is FNV-1a, whatever the
// machine.
#include "graph/base/name_set.h"

#include <gtest/gtest.h>

#include <string>

#include "graph/base/text_hash.h"

namespace eddy {
namespace {

TEST(NameSetTest, ANameIsTakenOnce) {
  NameSet names;
  EXPECT_EQ(names.size(), 0u);
  EXPECT_TRUE(names.insert(""));
  EXPECT_FALSE(names.insert(""));
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(names.insert("Add_" + std::to_string(i))) << i;
  for (int i = 0; i < 100'000; ++i) ASSERT_FALSE(names.insert("Add_" + std::to_string(i))) << i;
  EXPECT_EQ(names.size(), 100'001u);
}

// Numbers from the authors' page.
TEST(TextHashTest, IsTheSameEverywhere) {
  static_assert(text_hash("") == 0xcbf29ce484222325u);
  static_assert(text_hash("a") == 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(text_hash("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace eddy
