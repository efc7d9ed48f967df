// Claim: a CUDA library that is there but gives no handle is done without, and that is said.
#include "runtime/cuda/make_cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops/cuda/fakes/fake_cublas_lt.h"
#include "tests/ops/cuda/fakes/fake_cudnn.h"
#include "tests/runtime/cuda/fake_kernels.h"

namespace eddy::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MakeCudaDeviceTest : public ::testing::Test {
 protected:
  MakeCudaDeviceTest() { define_host_kernels(fake_, random_); }
  ~MakeCudaDeviceTest() override {
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), kept_);
  }
  Result<ExecutionDevice> make(std::shared_ptr<const CublasLtApi> cublas_lt,
                               std::shared_ptr<const CudnnApi> cudnn) {
    return make_cuda_device({.api = fake_.api(),
                             .images = FakeCuda::kImages,
                             .cublas_lt_or_null = std::move(cublas_lt),
                             .cudnn_or_null = std::move(cudnn)},
                            {});
  }

  std::string kept_;  // to the end of the process
  FakeCuda fake_{{.seed = 4}};
  Random random_{4};
  FakeCublasLt cublas_lt_;
  FakeCudnn cudnn_;
};

TEST_F(MakeCudaDeviceTest, LibrariesThatGiveHandlesNeedNoWord) {
  const auto made = make(cublas_lt_.api(), cudnn_.api());
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  EXPECT_THAT(made->device->notices(), IsEmpty());
  kept_ = "2 retained contexts";  // each library's handle has one
}

TEST_F(MakeCudaDeviceTest, LibrariesWithoutHandlesAreDoneWithout) {
  auto cublas_lt = std::make_shared<CublasLtApi>(*cublas_lt_.api());
  cublas_lt->create = [](auto...) { return 1; };
  auto cudnn = std::make_shared<CudnnApi>(*cudnn_.api());
  cudnn->create = [](auto...) { return 1; };
  const auto made = make(cublas_lt, cudnn);
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  const auto notice = [](const char* library) {
    return AllOf(HasSubstr(library), HasSubstr("our own kernels do its work"));
  };
  EXPECT_THAT(made->device->notices(),
              ElementsAre(notice("cublasLtCreate"), notice("cudnnCreate")));
}

TEST_F(MakeCudaDeviceTest, LoopKernelsThatDontLoadAreDoneWithoutAndTold) {
  static constexpr const char kNoImage[] = "of another GPU";
  const auto made = make_cuda_device(
      {.api = fake_.api(), .images = FakeCuda::kImages, .loop_image_or_null = kNoImage}, {});
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  EXPECT_THAT(
      made->device->notices(),
      ElementsAre(AllOf(HasSubstr("loops are driven from the host"), HasSubstr("cuModuleLoadData"),
                        HasSubstr("the driver is for CUDA 13.0"))));
}

}  // namespace
}  // namespace eddy::testing
