// Claim: a .cu file compiles and links where the toolkit is present, runs where a GPU is,
// and its stub takes its place elsewhere.
#include "tests/tools/bazel/add.h"

#include <gtest/gtest.h>

namespace eddy {
namespace {

TEST(Cuda, TwoAndThreeIsFive) {
  DeviceSum result = add_on_device(2, 3);
  if (!result.error.empty()) GTEST_SKIP() << "no GPU: " << result.error;
  EXPECT_EQ(result.sum, 5);
}

TEST(Cuda, StubSaysWhyThereIsNoSum) {
  if (has_cuda()) GTEST_SKIP() << "CUDA code was compiled, the stub was not";
  EXPECT_EQ(add_on_device(2, 3).error, "compiled without CUDA");
}

}  // namespace
}  // namespace eddy
