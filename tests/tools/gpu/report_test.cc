// Claim: the GPU report's parts run from end to end: on a fake driver with the kernels' own bodies
// every row passes, and a fault is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_kernels.h"
#include "tools/gpu/report_part.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GpuReportTest : public ::testing::TestWithParam<bool> {
 protected:
  GpuReportTest() { define_host_kernels(fake_, random_); }
  ~GpuReportTest() override {
    module_.reset();
    device_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "");
  }

  FakeCuda fake_{{.seed = 3, .has_memory_words = GetParam()}};
  Random random_{3};
  std::unique_ptr<CudaDevice> device_ = std::move(*CudaDevice::create(fake_.api(), {}));
  std::unique_ptr<CudaModule> module_ =
      std::move(*CudaModule::load(device_->context(), FakeCuda::kImages));
  const GpuUnderReport gpu_{*device_, *module_, [this] { fake_.step(); }};
};

TEST_P(GpuReportTest, EveryOperatorPassesItsConformanceRows) {
  const auto report = report_conformance(gpu_, 20);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  EXPECT_GT(report["rows"].size(), 100u);
}

TEST_P(GpuReportTest, LoopsCountToWhatWasAsked) {
  const auto report = report_loops(gpu_, 50);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  ASSERT_EQ(report["rows"].size(), 4u);
  EXPECT_EQ(report["rows"][3]["loops"], 8);
  EXPECT_EQ(report["completion"], GetParam() ? "words" : "events");
}

TEST_P(GpuReportTest, AFaultEndsThePartAndIsTold) {
  fake_.fault_kernel(5);
  const auto report = report_conformance(gpu_, 20);
  EXPECT_THAT(report["error"].get<std::string>(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(report["failed"], 1);
  EXPECT_THAT(report_loops(gpu_, 5)["error"].get<std::string>(), HasSubstr("device lost"));
}

INSTANTIATE_TEST_SUITE_P(Words, GpuReportTest, ::testing::Bool());

}  // namespace
}  // namespace eddy::testing
