// Claim: a constant is packed once for each layout, and the packing lives as long as a kernel
// that uses it.
#include "ops/contract/packed_constants.h"

#include <gtest/gtest.h>

namespace eddy {
namespace {

TEST(PackedConstantsTest, EqualKeysShareOnePackingAndOthersDoNot) {
  const int a = 1, b = 2;
  int num_made = 0;
  const auto make = [&] { return std::make_shared<const int>(++num_made); };
  PackedConstants packed;
  const auto first = packed.get<int>(&a, "rows", make);
  EXPECT_EQ(packed.get<int>(&a, "rows", make), first);
  EXPECT_NE(packed.get<int>(&a, "columns", make), first);
  EXPECT_NE(packed.get<int>(&b, "rows", make), first);
  const auto other_type =
      packed.get<double>(&a, "rows", [] { return std::make_shared<const double>(0.5); });
  EXPECT_EQ(*other_type, 0.5);
  EXPECT_EQ(num_made, 3);
  EXPECT_EQ(packed.size(), 4u);
}

TEST(PackedConstantsTest, AFailedPackingIsTriedAgain) {
  PackedConstants packed;
  const int a = 1;
  EXPECT_EQ(packed.get<int>(&a, "", [] { return std::shared_ptr<const int>(); }), nullptr);
  EXPECT_NE(packed.get<int>(&a, "", [] { return std::make_shared<const int>(1); }), nullptr);
}

TEST(PackedConstantsTest, PackingsOutliveTheTable) {
  std::shared_ptr<const int> kept;
  std::weak_ptr<const int> dropped;
  {
    PackedConstants packed;
    const int a = 1;
    kept = packed.get<int>(&a, "kept", [] { return std::make_shared<const int>(7); });
    dropped = packed.get<int>(&a, "dropped", [] { return std::make_shared<const int>(8); });
  }
  EXPECT_EQ(*kept, 7);
  EXPECT_TRUE(dropped.expired());
}

}  // namespace
}  // namespace eddy
