// Claim: the GPU report's parts run from end to end: on a fake driver with the kernels' own bodies
// every row passes, those of a library, too, and a fault is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/ops/cuda/fake_cub.h"
#include "tests/ops/cuda/fake_cudnn.h"
#include "tests/runtime/cuda/fake_accelerator.h"
#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_kernels.h"
#include "tests/runtime/cuda/fake_library_work.h"
#include "tools/gpu/report_part.h"
#include "tools/gpu/rival_kernels.h"

namespace eddy::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class GpuReportTest : public ::testing::TestWithParam<bool> {
 protected:
  GpuReportTest() { define_host_kernels(fake_, random_); }
  ~GpuReportTest() override {
    gpu_.libraries = {};
    dnn_.reset();
    module_.reset();
    device_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "");
    EXPECT_THAT(cub_.violations(), IsEmpty());
  }

  FakeCuda fake_{{.seed = 3, .has_memory_words = GetParam()}};
  FakeLibraryWork work_{fake_};
  FakeCub cub_{3, work_.enqueue()};
  Random random_{3};
  std::unique_ptr<CudaDevice> device_ = std::move(*CudaDevice::create(fake_.api(), {}));
  std::unique_ptr<CudaModule> module_ =
      std::move(*CudaModule::load(device_->context(), FakeCuda::kImages));
  FakeCudnn cudnn_{work_.enqueue()};
  std::unique_ptr<DnnLibrary> dnn_ =
      std::move(*DnnLibrary::create(cudnn_.api(), *module_, {.least_elements = 0}));
  static constexpr LongLinesOptions kEverySize = {.min_length = 1, .min_top_k_work = 0};
  const LongLines long_lines_{cub_.api(), *module_, kEverySize};
  GpuUnderReport gpu_{*device_, *module_, [this] { fake_.step(); }};
};

TEST_P(GpuReportTest, EveryOperatorPassesItsConformanceRows) {
  const auto report = report_conformance(gpu_, 20);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  EXPECT_GT(report["rows"].size(), 200u);
  EXPECT_THAT(report["left_out"], IsEmpty()) << report["left_out"];
}

TEST_P(GpuReportTest, WhatLibrariesDoHasRowsOfItsOwn) {
  gpu_.libraries.dnn = dnn_.get();
  const auto report = report_conformance(gpu_, 20);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  std::map<std::string, int> num_rows;  // by operator
  for (const auto& row : report["rows"]) {
    if (row["way"] == "library") ++num_rows[row["op"]];
  }
  // Not those of uneven padding, or of pools that give indices.
  EXPECT_THAT(num_rows,
              UnorderedElementsAre(Pair("Conv", 4 * 2), Pair("AveragePool", 4 * 5),
                                   Pair("MaxPool", 4 * 2), Pair("BatchNormalization", 2)));
  EXPECT_THAT(cudnn_.violations(), IsEmpty());
}

TEST_P(GpuReportTest, LongLinesHaveRowsByCub) {
  gpu_.libraries.long_lines = &long_lines_;
  const auto report = report_conformance(gpu_, 20);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  std::map<std::string, int> num_rows;  // by operator
  for (const auto& row : report["rows"]) {
    if (row["way"] == "library") ++num_rows[row["op"]];
  }
  EXPECT_EQ(num_rows["TopK"], 2 * 6) << "of either order, by type";
  EXPECT_EQ(num_rows["CumSum"], 2 * 2) << "of integers, two lines of either length";
  EXPECT_GT(num_rows["ReduceSum"], 0);
  EXPECT_GT(num_rows["ArgMin"], 0);
  EXPECT_EQ(num_rows["MaxPool"], 0);
}

TEST_P(GpuReportTest, OtherValuesByCubFailTheirRows) {
  auto wrong = std::make_shared<CubApi>(*cub_.api());
  wrong->extreme = [right = wrong->extreme](const cuda::ExtremeCall& call, void* scratch,
                                            size_t* scratch_bytes, void* stream) {
    cuda::ExtremeCall other = call;
    other.is_least = 1 - call.is_least;
    return right(other, scratch, scratch_bytes, stream);
  };
  const LongLines other(wrong, *module_, kEverySize);
  gpu_.libraries.long_lines = &other;
  EXPECT_EQ(report_libraries(gpu_, true, 1)["failed"], 4) << "each ArgMax";
  EXPECT_GT(report_conformance(gpu_, 20)["failed"], 4);
}

TEST_P(GpuReportTest, LibrariesAreTimedBesideOurOwnKernels) {
  EXPECT_THAT(report_libraries(gpu_, true, 2)["error"].get<std::string>(),
              HasSubstr("neither cuDNN nor CUB"));
  gpu_.libraries.dnn = dnn_.get();
  gpu_.libraries.long_lines = &long_lines_;
  const auto report = report_libraries(gpu_, true, 2);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  ASSERT_EQ(report["rows"].size(), 4u * 2u + 21u);
  for (const auto& row : report["rows"]) {
    const bool is_half_norm =
        row["type"] == "float16" && row["case"].get<std::string>().starts_with("Batch");
    EXPECT_EQ(row["library"], is_half_norm ? "does not take it" : "takes it") << row;
    EXPECT_EQ(row.contains("library_us"), !is_half_norm) << row;
    EXPECT_TRUE(row.contains("own_us")) << row;
  }
}

// The rivals' kernel, on parameters that a defect has changed.
FakeKernel rival_kernel(const std::function<void(cuda::RivalParams&)>& change) {
  return [change](const FakeKernelCall& call) {
    cuda::RivalParams params = call.params_as<cuda::RivalParams>();
    change(params);
    cuda::rival_step(
        params, [&](uint64_t handle, uint32_t value) { call.set_conditional(handle, value); },
        [] {});
  };
}

TEST_P(GpuReportTest, RivalsByHandCountToWhatTheyShould) {
  fake_.define_kernel("eddy_rival_step", sizeof(cuda::RivalParams), rival_kernel([](auto&) {}));
  const auto report = report_hand_written(gpu_, FakeCuda::kImage, true, 3);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  EXPECT_EQ(report["rows"].size(), 6u);
  EXPECT_THAT(fake_.last_round(), ElementsAre("conditional", "eddy_rival_step"))
      << "a case and what decides: nothing else is in a round";
}

TEST_P(GpuReportTest, ARivalThatLosesRoundsFailsItsRow) {
  fake_.define_kernel("eddy_rival_step", sizeof(cuda::RivalParams),
                      rival_kernel([](auto& params) { params.inner_loop = 0; }));  // not re-armed
  const auto report = report_hand_written(gpu_, FakeCuda::kImage, true, 1);
  EXPECT_EQ(report["failed"], 1) << report.dump(1);
  for (const auto& row : report["rows"]) {
    const bool is_nested = row["case"] == "nested 4 x 4";
    EXPECT_EQ(row["status"], is_nested ? "failed" : "passed") << row;
  }
  EXPECT_THAT(report_hand_written(gpu_, nullptr, true, 1)["error"].get<std::string>(),
              HasSubstr("without a CUDA toolkit"));
}

TEST_P(GpuReportTest, ARivalThatEndsInSilenceIsNotWaitedForForEver) {
  fake_.define_kernel("eddy_rival_step", sizeof(cuda::RivalParams),
                      rival_kernel([](auto& params) { params.launches = nullptr; }));
  const auto report = report_hand_written(gpu_, FakeCuda::kImage, true, 1);
  EXPECT_EQ(report["failed"], 6);
  EXPECT_THAT(report["rows"][0]["reason"].get<std::string>(), HasSubstr("without saying so"));
}

TEST_P(GpuReportTest, LoopsCountToWhatWasAsked) {
  const auto report = report_loops(gpu_, 50);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  ASSERT_EQ(report["rows"].size(), 5u);
  EXPECT_EQ(report["rows"][4]["loops"], 32);
  for (const auto& row : report["rows"]) {
    EXPECT_DOUBLE_EQ(row["us_per_iteration"].get<double>() * row["loops"].get<double>(),
                     row["us_per_round"].get<double>());
    EXPECT_LE(row["us_fastest"], row["us_per_iteration"]);
  }
  EXPECT_EQ(report["completion"], GetParam() ? "words" : "events");
}

TEST_P(GpuReportTest, AFaultEndsThePartAndIsTold) {
  fake_.fault_kernel(5);
  const auto report = report_conformance(gpu_, 20);
  EXPECT_THAT(report["error"].get<std::string>(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(report["failed"], 1);
  EXPECT_THAT(report_loops(gpu_, 5)["error"].get<std::string>(), HasSubstr("device lost"));
}

class GpuReportSessions : public ::testing::Test {
 protected:
  GpuReportSessions() {
    what_.make_accelerator = fake_.maker();
    what_.is_small = true;
    what_.num_warm_runs = 1;
    what_.num_runs = 1;
  }
  ~GpuReportSessions() override {
    EXPECT_THAT(fake_.problems(), IsEmpty());
    EXPECT_EQ(fake_.cuda().leaks(), "");
  }

  const Library library_;
  FakeAccelerator fake_{library_, {.seed = 5}};
  SessionsUnderReport what_;
};

TEST_F(GpuReportSessions, SmallModelsPassInEveryWay) {
  const auto report = report_models(what_);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_GE(report["rows"].size(), 16u);
}

TEST_F(GpuReportSessions, ControlLoopsPassInEveryWayOrSayWhyNot) {
  const auto report = report_control(what_);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  EXPECT_EQ(report["rows"].size(), 48u);
  for (const auto& row : report["rows"]) {
    if (row["case"] != "eight such loops") continue;
    if (row["way"] != "device" && row["way"] != "apart") continue;
    EXPECT_EQ(row["device_driven_loops"], row["way"] == "device" ? 1 : 4) << "merged: " << row;
  }
  int num_told = 0;  // how they were unrolled, or why not
  for (const auto& row : report["rows"]) {
    const bool is_host_predicate = row["case"].get<std::string>().starts_with("host predicate");
    const bool is_by_device = row["way"] != "host" && row["way"] != "auto";
    EXPECT_EQ(row["status"], is_host_predicate && is_by_device ? "refused" : "passed") << row;
    if (row["way"] != "unrolled" || row["status"] != "passed") continue;
    const bool is_told =
        row["first_loop"].get<std::string>().find("unrolled: ") != std::string::npos;
    num_told += is_told ? 1 : 0;
  }
  EXPECT_GE(num_told, 4);
}

TEST_F(GpuReportSessions, APartWithoutTimeSaysWhereItStoppedAndIsNoFailure) {
  what_.time_limit = std::chrono::seconds(-1);
  const auto report = report_control(what_);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  EXPECT_EQ(report["out_of_time"], "before scalar while, host");
  EXPECT_EQ(report["failed"], 0);
}

TEST_F(GpuReportSessions, AProbeSaysHowManyLoopsTheDeviceStands) {
  EXPECT_EQ(report_probe(what_, 4, 2)["failed"], 0) << report_probe(what_, 4, 2).dump(1);
  const auto report = report_probe(what_, 8, 1);  // the fake stands five
  EXPECT_EQ(report["rows"][0]["status"], "failed");
  EXPECT_THAT(report["rows"][0]["reason"].get<std::string>(), HasSubstr("CUDA_ERROR_"));
}

TEST_F(GpuReportSessions, ALostDeviceEndsThePartAndIsTold) {
  fake_.cuda().fault_kernel(100);
  const auto report = report_models(what_);
  EXPECT_THAT(report["error"].get<std::string>(), HasSubstr("device lost"));
  EXPECT_EQ(report["failed"], 1);
}

TEST_F(GpuReportSessions, AFolderWithoutNetworksIsNamed) {
  const auto report = report_networks(what_, "/no/such/folder");
  EXPECT_THAT(report["error"].get<std::string>(), HasSubstr("no networks in /no/such/folder"));
}

INSTANTIATE_TEST_SUITE_P(Words, GpuReportTest, ::testing::Bool());

}  // namespace
}  // namespace eddy::testing
