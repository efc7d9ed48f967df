// Claim: libraries and tests are compiled as C++20, and the baseline is x86-64-v2.
#include "tests/tools/bazel/language.h"

#include <gtest/gtest.h>

namespace eddy::build {
namespace {

TEST(Language, LibrariesAreCpp20) { EXPECT_GE(language_version(), 202002L); }

TEST(Language, TestsAreCpp20) { EXPECT_GE(__cplusplus, 202002L); }

TEST(Language, BaselineHasSse42) {
#ifndef __SSE4_2__
  FAIL() << "compiled without -march=x86-64-v2";
#endif
}

}  // namespace
}  // namespace eddy::build
