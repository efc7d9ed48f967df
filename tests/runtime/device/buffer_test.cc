// Claim: a buffer may be written exactly while one reference is left, and goes back once.
#include "runtime/device/buffer.h"

#include <gtest/gtest.h>

namespace eddy {
namespace {

class CountingOwner : public BufferOwner {
 public:
  void release(Buffer*) noexcept override { ++count; }
  int count = 0;
};

TEST(BufferRefTest, OnlyTheOnlyReferenceMayWrite) {
  CountingOwner owner;
  Buffer buffer;
  buffer.owner = &owner;
  buffer.capacity_bytes = 16;
  {
    BufferRef a(&buffer);
    EXPECT_TRUE(a.is_writable(16));
    EXPECT_FALSE(a.is_writable(17));
    BufferRef b = a;
    EXPECT_FALSE(a.is_writable(1));
    b.reset();
    EXPECT_TRUE(a.is_writable(1));
    BufferRef c = std::move(a);
    EXPECT_TRUE(c.is_writable(1));
    EXPECT_EQ(owner.count, 0);
  }
  EXPECT_EQ(owner.count, 1);
}

TEST(BufferRefTest, SwapMovesNoCounts) {
  CountingOwner owner;
  Buffer one;
  one.owner = &owner;
  BufferRef a(&one);
  BufferRef b;
  a.swap(b);
  EXPECT_FALSE(a);
  EXPECT_TRUE(b.is_writable(0));
}

}  // namespace
}  // namespace eddy
