// Claim: a CUDA library that is there but gives no handle is done without, and that is said; so are
// convolutions that are to be measured where nothing can be kept, and whether kernels of recordings
// begin early, or why not. Channels come last with TF32 and cuDNN, or as asked for.
#include "runtime/cuda/make_cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops/cuda/fakes/fake_cublas_lt.h"
#include "tests/ops/cuda/fakes/fake_cudnn.h"
#include "tests/runtime/cuda/fake_kernels.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

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

TEST_F(MakeCudaDeviceTest, WhereNoChoiceCanBeKeptNoConvolutionIsMeasuredAndThatIsSaid) {
  const auto made = make_cuda_device(
      {.api = fake_.api(), .images = FakeCuda::kImages, .cudnn_or_null = cudnn_.api()},
      {.kernel_cache_folder = "", .measures_convolutions = true});
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  EXPECT_THAT(made->device->notices(),
              ElementsAre(AllOf(HasSubstr("convolutions are not measured"), HasSubstr("HOME"))));
  kept_ = "1 retained context";
}

TEST_F(MakeCudaDeviceTest, ChannelsComeLastWithTf32AndTheLibraryUnlessAskedOtherwise) {
  const auto wants_last = [&](const CudaOptions& options, bool has_library = true) {
    const auto made = make_cuda_device({.api = fake_.api(),
                                        .images = FakeCuda::kImages,
                                        .cudnn_or_null = has_library ? cudnn_.api() : nullptr},
                                       options);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    EXPECT_EQ(made->device->notices().size(), options.channels_last && !has_library ? 1u : 0u);
    return made.is_ok() && made->wants_channels_last;
  };
  EXPECT_FALSE(wants_last({}));
  EXPECT_TRUE(wants_last({.allows_tf32 = true}));
  EXPECT_FALSE(wants_last({.allows_tf32 = true, .channels_last = false}));
  EXPECT_TRUE(wants_last({.channels_last = true}));
  EXPECT_FALSE(wants_last({.allows_tf32 = true}, false)) << "nor is anything said";
  EXPECT_FALSE(wants_last({.channels_last = true}, false));
  kept_ = "1 retained context";
}

TEST_F(MakeCudaDeviceTest, WhetherKernelsOfRecordingsBeginEarlyIsSaid) {
  define_loop_kernels(fake_);
  const auto text = [&] {
    const auto made = make_cuda_device(
        {.api = fake_.api(), .images = FakeCuda::kImages, .loop_image_or_null = FakeCuda::kImage},
        {});
    return made.is_ok() ? early_launches_text(*made) : made.status().to_string();
  };
  EXPECT_EQ(text(), "kernels of recordings begin early");
  fake_.fail_next("launch_kernel_ex", CuResult::kNotSupported);
  EXPECT_THAT(text(), AllOf(HasSubstr("plain order"), HasSubstr("cuLaunchKernelEx answered")));
  const auto without =
      make_cuda_device({.api = fake_.api(), .images = FakeCuda::kImages}, CudaOptions());
  ASSERT_TRUE(without.is_ok()) << without.status().to_string();
  EXPECT_THAT(early_launches_text(*without), HasSubstr("cannot decide loops by itself"));
}

}  // namespace
}  // namespace eddy::testing
