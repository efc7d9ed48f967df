// Claim: objects stay where they were made, in order and aligned, go in the reverse order, and none
// is made beyond the number asked for; so it is where they stand in huge pages.
#include "runtime/execute/pinned_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace eddy {
namespace {

struct alignas(64) Counted {
  ~Counted() {
    if (gone != nullptr) gone->push_back(number);
  }
  int number = 0;
  std::vector<int>* gone = nullptr;
};

TEST(PinnedArray, ObjectsStayWhereTheyWereMadeAndGoInTheReverseOrder) {
  for (const int count : {0, 1, 100, 100'000}) {  // the last: 6.4 MB
    SCOPED_TRACE(count);
    std::vector<int> gone;
    {
      PinnedArray<Counted> array;
      array.reserve(static_cast<size_t>(count));
      std::vector<Counted*> made;
      for (int i = 0; i < count; ++i) {
        made.push_back(&array.emplace_back());
        made.back()->number = i;
        made.back()->gone = &gone;
        ASSERT_EQ(made.back(), made.front() + i);
        ASSERT_EQ(reinterpret_cast<uintptr_t>(made.back()) % alignof(Counted), 0U);
      }
      for (int i = 0; i < count; ++i) ASSERT_EQ(made[static_cast<size_t>(i)]->number, i);
    }
    ASSERT_EQ(gone.size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) ASSERT_EQ(gone[static_cast<size_t>(i)], count - 1 - i);
  }
}

TEST(PinnedArrayDeathTest, NoMoreThanWereAskedFor) {
  PinnedArray<int> array;
  array.reserve(1);
  array.emplace_back();
  EXPECT_DEATH(array.emplace_back(), "more objects than the 1 asked for");
  EXPECT_DEATH(array.reserve(2), "stay where they are");
}

}  // namespace
}  // namespace eddy
