// Claim: a product by oneDNN uses one OpenMP thread, and leaves an application's own number of
// them, which belongs to the calling thread, as it was.
#include <gtest/gtest.h>

#include <vector>

#include "ops/cpu/onednn/sgemm.h"
#include "ops/cpu/onednn/thread.h"

extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

namespace eddy::onednn {
namespace {

TEST(OneThread, IsAllThereIsWhileItLives) {
  omp_set_num_threads(3);
  {
    const OneThread one_thread;
    EXPECT_EQ(omp_get_max_threads(), 1);
    const OneThread within;
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(omp_get_max_threads(), 3);
}

TEST(OneThread, AProductLeavesTheCallersThreadAsItWas) {
  constexpr int kSize = 64;
  const std::vector<float> a(kSize * kSize, 1.0f);
  std::vector<float> c(kSize * kSize, 0.0f);
  for (const int num_threads : {3, 1, 2}) {
    omp_set_num_threads(num_threads);
    sgemm({.m = kSize,
           .n = kSize,
           .k = kSize,
           .a = a.data(),
           .a_row = kSize,
           .b = a.data(),
           .b_row = kSize,
           .c = c.data(),
           .c_row = kSize});
    EXPECT_EQ(c[0], kSize);
    EXPECT_EQ(omp_get_max_threads(), num_threads);
  }
}

}  // namespace
}  // namespace eddy::onednn
