// Claim: a missing or strange driver is an error that says what is missing and what to do.
#include "runtime/cuda/cuda_api.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eddy {
namespace {

using ::testing::HasSubstr;

TEST(CudaApiTest, AMissingDriverIsNamed) {
  const auto api = load_cuda_api_from("libcuda_that_is_not_there.so.1");
  ASSERT_FALSE(api.is_ok());
  EXPECT_EQ(api.status().code(), StatusCode::kDeviceLost);
  EXPECT_THAT(api.status().message(), HasSubstr("libcuda_that_is_not_there.so.1"));
  EXPECT_THAT(api.status().message(), HasSubstr("install NVIDIA's driver"));
}

TEST(CudaApiTest, ALibraryThatIsNoDriverIsRefusedByTheCallsItLacks) {
  const auto api = load_cuda_api_from("libm.so.6");
  ASSERT_FALSE(api.is_ok());
  EXPECT_THAT(api.status().message(), HasSubstr("it lacks cuInit, cuDriverGetVersion"));
  EXPECT_THAT(api.status().message(), HasSubstr("cuLaunchKernel"));
}

TEST(CudaApiTest, WhatWasOpenedStaysBecauseItsThreadsDo) {
  const char* const library = "libanl.so.1";  // opened by nothing else
  if (dlopen(library, RTLD_NOW | RTLD_NOLOAD) != nullptr) GTEST_SKIP() << library << " is open";
  EXPECT_THAT(load_cuda_api_from(library).status().message(), HasSubstr("it lacks"));
  EXPECT_NE(dlopen(library, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST(CudaApiTest, TheDriverOfThisMachineLoadsOrSaysWhyNot) {
  const auto api = load_cuda_api();
  if (!api.is_ok()) {
    EXPECT_EQ(api.status().code(), StatusCode::kDeviceLost);
    GTEST_SKIP() << api.status().message();
  }
  int version = 0;
  EXPECT_EQ((*api)->driver_version(&version), CuResult::kSuccess);
  EXPECT_GE(version, 12000);
}

TEST(CudaApiTest, VersionsReadAsPeopleWriteThem) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12080), "12.8");
}

}  // namespace
}  // namespace eddy
