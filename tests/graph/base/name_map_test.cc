// Claim: a name keeps the first value that it gets, among any number of others, and is found again
// by equal bytes.
#include "graph/base/name_map.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>

#include "graph/base/random.h"

namespace eddy {
namespace {

TEST(NameMapTest, IsEmptyAtFirst) {
  const NameMap<int> map;
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.find_or_null(""), nullptr);
  EXPECT_FALSE(map.contains("x"));
}

TEST(NameMapTest, KeepsTheFirstValueOfAName) {
  NameMap<int> map;
  EXPECT_TRUE(map.emplace("", 1).second);
  EXPECT_TRUE(map.emplace("x", 2).second);
  const auto [value, is_new] = map.emplace("x", 3);
  EXPECT_FALSE(is_new);
  EXPECT_EQ(*value, 2);
  EXPECT_EQ(*map.find_or_null(""), 1);
  EXPECT_EQ(map.size(), 2u);
}

TEST(NameMapTest, DoesWhatAMapDoes) {
  constexpr uint64_t kSeed = 20261130;
  for (const size_t reserved : {0u, 5000u}) {
    Random random(kSeed);
    std::deque<std::string> names;  // stay where they are
    std::map<std::string, int> expected;
    NameMap<int> map;
    if (reserved > 0) map.reserve(reserved);
    for (int i = 0; i < 20'000; ++i) {
      names.push_back("Add_" + std::to_string(random.below(8000)));
      const bool is_new = expected.emplace(names.back(), i).second;
      ASSERT_EQ(map.emplace(names.back(), i).second, is_new) << kSeed << " " << i;
    }
    ASSERT_EQ(map.size(), expected.size());
    for (int i = 0; i < 8000; ++i) {
      const std::string name = "Add_" + std::to_string(i);
      const auto found = expected.find(name);
      const int* const value = map.find_or_null(name);
      ASSERT_EQ(value != nullptr, found != expected.end()) << name;
      if (value == nullptr) continue;
      ASSERT_EQ(*value, found->second) << name;
    }
  }
}

}  // namespace
}  // namespace eddy
