// Claim: the report on a machine's CUDA equals its driver's data, and names what is missing.
#include "runtime/cuda/cuda_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/cuda/images/image.h"
#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(CudaReportTest, EveryDeviceIsListedWithWhatItAllows) {
  FakeCuda fake({.num_devices = 2});
  const CudaReport report = report_cuda(fake.api());
  ASSERT_TRUE(report.status.is_ok()) << report.status.to_string();
  EXPECT_EQ(report.driver_version, 13000);
  ASSERT_EQ(report.devices.size(), 2u);
  EXPECT_EQ(report.devices[1].ordinal, 1);
  EXPECT_EQ(report.devices[1].compute_capability, 90);
  EXPECT_THAT(cuda_abilities(report, report.devices[0]), Contains(HasSubstr("conditional nodes")));
  EXPECT_EQ(fake.leaks(), "") << "asking makes no context";
}

TEST(CudaReportTest, AnOldDriverHasNoLoopsOfTheDevice) {
  FakeCuda fake({.driver_version = 12040, .has_memory_words = false});
  const CudaReport report = report_cuda(fake.api());
  const auto lines = cuda_abilities(report, report.devices.at(0));
  EXPECT_THAT(lines, Contains(HasSubstr("CUDA 12.8 or newer is needed, the driver has 12.4")));
  EXPECT_THAT(lines, Contains(HasSubstr("completion by asking the driver")));
}

TEST(CudaReportTest, ADriverOlderThanTheKernelsToolkitIsSaid) {
  CudaReport report;
  report.driver_version = 13020;
  report.has_kernels = true;
  report.toolkit_version = 13000;
  EXPECT_THAT(cuda_kernels_text(report), EndsWith("made by CUDA 13.0"));
  report.driver_version = 12080;
  EXPECT_THAT(cuda_kernels_text(report),
              HasSubstr("made by CUDA 13.0, which the driver for CUDA 12.8 may refuse"));
  report.toolkit_version = 12080;
  EXPECT_THAT(cuda_kernels_text(report), EndsWith("made by CUDA 12.8"));
  EXPECT_THAT(cuda_kernels_text({}), HasSubstr("no kernels"));
}

TEST(CudaReportTest, TheToolkitIsThatOfTheBuild) {
  EXPECT_EQ(cuda_image_toolkit() >= 12080, !cuda_images().empty()) << cuda_image_toolkit();
}

TEST(CudaReportTest, NoDriverAndNoDeviceAreSaid) {
  FakeCuda none({.num_devices = 0});
  EXPECT_THAT(report_cuda(none.api()).status.message(), HasSubstr("sees no device"));
  const CudaReport missing = report_cuda(load_cuda_api_from("libno_cuda_here.so"));
  EXPECT_EQ(missing.status.code(), StatusCode::kDeviceLost);
  EXPECT_THAT(missing.status.message(), HasSubstr("libno_cuda_here.so"));
}

}  // namespace
}  // namespace eddy::testing
