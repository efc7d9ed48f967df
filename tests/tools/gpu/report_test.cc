// long: every part of the report runs on one fixture
// Claim: the GPU report's parts run from end to end: on a fake driver with the kernels' own bodies
// every row passes, those of a library, too, and a fault is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "graph/ir/builder.h"
#include "tests/ops/cuda/fakes/fake_cub.h"
#include "tests/ops/cuda/fakes/fake_cublas_lt.h"
#include "tests/ops/cuda/fakes/fake_cudnn.h"
#include "tests/runtime/cuda/fake_accelerator.h"
#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_kernels.h"
#include "tests/runtime/cuda/fake_library_work.h"
#include "tools/gpu/call_values.h"
#include "tools/gpu/case_rows.h"
#include "tools/gpu/drift_part.h"
#include "tools/gpu/host_difference.h"
#include "tools/gpu/part_report.h"
#include "tools/gpu/report_part.h"
#include "tools/gpu/rival_kernels.h"

namespace eddy::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

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

class MemoryChoices : public KeptChoices {
 public:
  std::optional<std::string> find(std::string_view key) override {
    const auto found = kept_.find(std::string(key));
    return found == kept_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::string> keep(std::string_view key, std::string_view choice) override {
    return kept_.emplace(key, choice).first->second;
  }

 private:
  std::map<std::string, std::string> kept_;
};

class GpuReportTest : public ::testing::TestWithParam<bool> {
 protected:
  GpuReportTest() { define_host_kernels(fake_, random_); }
  ~GpuReportTest() override {
    gpu_.libraries = gpu_.tf32_libraries = gpu_.measured_libraries = {};
    dnn_.reset();
    tf32_dnn_.reset();
    measured_dnn_.reset();
    products_.reset();
    tf32_products_.reset();
    module_.reset();
    device_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "2 retained contexts") << "the libraries' handles keep theirs";
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
  std::unique_ptr<DnnLibrary> dnn_ = std::move(*DnnLibrary::create(
      cudnn_.api(), *module_, {.least_pool_elements = 0, .least_norm_elements = 0}));
  std::unique_ptr<DnnLibrary> tf32_dnn_ = std::move(*DnnLibrary::create(
      cudnn_.api(), *module_,
      {.allows_tf32 = true, .least_pool_elements = 0, .least_norm_elements = 0}));
  MemoryChoices choices_;
  std::unique_ptr<DnnLibrary> measured_dnn_ =
      std::move(*DnnLibrary::create(cudnn_.api(), *module_,
                                    {.allows_tf32 = true,
                                     .least_pool_elements = 0,
                                     .least_norm_elements = 0,
                                     .choices_or_null = &choices_}));
  FakeCublasLt cublas_lt_{work_.enqueue()};
  std::unique_ptr<LtProducts> products_ =
      std::move(*LtProducts::create(cublas_lt_.api(), *module_, {.most_of_few_rows = 0}));
  std::unique_ptr<LtProducts> tf32_products_ = std::move(*LtProducts::create(
      cublas_lt_.api(), *module_, {.allows_tf32 = true, .most_of_few_rows = 0}));
  static constexpr LongLinesOptions kEverySize = {
      .min_length = 1, .more_a_line = 0, .min_top_k_work = 0};
  const LongLines long_lines_{cub_.api(), *module_, kEverySize};
  GpuUnderReport gpu_{*device_, *module_, [this] { fake_.step(); }};
};

// With libraries of products, since one kernel of ours runs where these may round to TF32 alone.
TEST_P(GpuReportTest, EveryOperatorPassesItsConformanceRows) {
  gpu_.libraries = {.products = products_.get()};
  gpu_.tf32_libraries = {.products = tf32_products_.get()};
  const auto report = report_conformance(gpu_, 20);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  EXPECT_GT(report["rows"].size(), 200u);
  std::map<std::string, int> num_rows;  // by type
  int num_skipped = 0;
  for (const auto& row : report["rows"]) {
    if (row["status"] == "passed") ++num_rows[row["type"]];
    EXPECT_TRUE(row["status"] != "skipped" || row.value("reason", "") != "") << row;
    num_skipped += row["status"] == "skipped" ? 1 : 0;
  }
  for (const char* const type : {"int8", "uint8", "uint16", "int16", "uint32", "uint64"}) {
    EXPECT_GT(num_rows[type], 0) << type;
  }
  EXPECT_EQ(report["skipped"], num_skipped);
  EXPECT_EQ(report["kernels"], host_kernels().size());
  EXPECT_THAT(report["not_run"], IsEmpty()) << report["not_run"];
  EXPECT_EQ(report["kernels_run"], report["kernels"]);
  EXPECT_EQ(report["left_out"], nlohmann::json({"Fused", "FusedParts"}))
      << "the reference has none";
}

TEST_P(GpuReportTest, KernelsThatTheImageLacksFail) {
  FakeCuda other({.seed = 3});
  const auto device = std::move(*CudaDevice::create(other.api(), {}));
  for (const auto& [name, kernel] : host_kernels()) {
    if (name == "eddy_Add_f32" || name == "eddy_MaxPool_i8") continue;
    other.define_kernel(name, kernel.params_bytes,
                        [this, body = kernel](const FakeKernelCall& call) {
                          run_host_kernel(body, call.grid[0], call.params, random_);
                        });
  }
  const auto module = std::move(*CudaModule::load(device->context(), FakeCuda::kImages));
  const auto report = report_conformance({*device, *module, [&] { other.step(); }}, 20);
  EXPECT_EQ(report["failed"], 2) << report["error"];
  EXPECT_EQ(report["rows"].back()["kernel"], "eddy_MaxPool_i8");
}

TEST_P(GpuReportTest, APartTellsItsRowsAsTheyComeAndBeginsNoneTooLate) {
  size_t num_reported = 0;
  gpu_.pace.on_row = [&](const nlohmann::json& report) {
    EXPECT_EQ(report["rows"].size(), ++num_reported);
  };
  EXPECT_EQ(report_loops(gpu_, 5)["rows"].size(), num_reported);
  EXPECT_EQ(num_reported, 5u);
  gpu_.pace = {.time_limit = std::chrono::seconds(-1)};
  gpu_.libraries.long_lines = &long_lines_;
  fake_.define_kernel("eddy_rival_step", sizeof(cuda::RivalParams), rival_kernel([](auto&) {}));
  for (const auto& report :
       {report_conformance(gpu_, 20), report_loops(gpu_, 5),
        report_hand_written(gpu_, FakeCuda::kImage, true, 1), report_libraries(gpu_, true, 1)}) {
    EXPECT_TRUE(report.contains("out_of_time")) << report;
    EXPECT_EQ(report["rows"].size(), 0u) << report;
  }
}

TEST_P(GpuReportTest, WhatLibrariesDoHasRowsOfItsOwn) {
  gpu_.libraries.dnn = dnn_.get();
  const auto report = report_conformance(gpu_, 20);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  std::map<std::string, int> num_rows;  // by operator
  for (const auto& row : report["rows"]) {
    if (row.value("way", "") == "library") ++num_rows[row["op"]];
  }
  // Not those of uneven padding, or of pools that give indices.
  EXPECT_THAT(num_rows,
              UnorderedElementsAre(Pair("Conv", 4 * 4), Pair("ConvRelu", 4 * 2),
                                   Pair("ChannelsLastConv", 4 * 2), Pair("ChannelsLastMaxPool", 4),
                                   Pair("ChannelsLastAveragePool", 4), Pair("AveragePool", 4 * 5),
                                   Pair("MaxPool", 4 * 2), Pair("BatchNormalization", 2)));
  EXPECT_THAT(cudnn_.violations(), IsEmpty());
}

TEST_P(GpuReportTest, ProductsHaveRowsWithTf32) {
  gpu_.libraries = {.products = products_.get(), .dnn = dnn_.get()};
  gpu_.tf32_libraries = {.products = tf32_products_.get(), .dnn = tf32_dnn_.get()};
  const auto report = report_conformance(gpu_, 20);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  std::map<std::string, int> num_rows;  // by operator
  for (const auto& row : report["rows"]) {
    if (row.value("way", "") != "library, tf32") continue;
    ++num_rows[row["op"]];
    EXPECT_EQ(row["type"], "float") << row;
  }
  EXPECT_GT(num_rows["MatMul"], 0);
  EXPECT_GT(num_rows["Gemm"], 0);
  EXPECT_EQ(num_rows["Conv"], 4);
  EXPECT_EQ(num_rows.size(), 3u);
  const int num_own = 1;  // on tensor cores
  EXPECT_EQ(cublas_lt_.num_tf32() + num_own, num_rows["MatMul"] + num_rows["Gemm"]);
}

TEST_P(GpuReportTest, LongLinesHaveRowsByCub) {
  gpu_.libraries.long_lines = &long_lines_;
  const auto report = report_conformance(gpu_, 20);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  std::map<std::string, int> num_rows;  // by operator
  for (const auto& row : report["rows"]) {
    if (row.value("way", "") == "library") ++num_rows[row["op"]];
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
  ASSERT_EQ(report["rows"].size(), 4u * 2u + 21u + 10u);
  for (const auto& row : report["rows"]) {
    const bool is_half_norm =
        row["type"] == "float16" && row["case"].get<std::string>().starts_with("Batch");
    const bool is_product = row["case"].get<std::string>().starts_with("MatMul");
    const bool is_ours = is_half_norm || is_product;
    EXPECT_EQ(row["library"], is_ours ? "does not take it" : "takes it") << row;
    EXPECT_EQ(row.contains("library_us"), !is_ours) << row;
    EXPECT_TRUE(row.contains("own_us")) << row;
    EXPECT_FALSE(row.contains("tf32_us") || row.contains("measured_us")) << row;
  }
  gpu_.libraries.products = products_.get();
  gpu_.tf32_libraries = {.products = tf32_products_.get(), .dnn = tf32_dnn_.get()};
  int num_both = 0, num_last = 0;
  const auto both = report_libraries(gpu_, true, 1);
  EXPECT_EQ(both["failed"], 0) << both.dump(1);
  for (const auto& row : both["rows"]) {
    num_both += row.contains("library_us") && row.contains("tf32_us") ? 1 : 0;
    num_last += row.contains("channels_last_us") ? 1 : 0;
  }
  EXPECT_EQ(num_last, 4) << "convolutions";
  EXPECT_EQ(num_both, 10) << "products and convolutions";
}

// Each of the four shapes is measured in two rounds, of which the first warms up.
TEST_P(GpuReportTest, ConvolutionsAreTimedByTheAlgorithmThatIsMeasuredToBeTheFastest) {
  gpu_.libraries.dnn = dnn_.get();
  gpu_.measured_libraries.dnn = measured_dnn_.get();
  cudnn_.plant_times({.tensor_ms = 2, .fma_ms = 2, .last_ms = 1});
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto report = report_libraries(gpu_, true, 1);
    EXPECT_EQ(report["failed"], 0) << report.dump(1);
    int num_measured = 0;
    for (const auto& row : report["rows"]) {
      const bool is_conv = row["case"].get<std::string>().starts_with("Conv");
      EXPECT_EQ(row.contains("measured_us"), is_conv) << row;
      num_measured += is_conv ? 1 : 0;
    }
    EXPECT_EQ(num_measured, 4);
    EXPECT_EQ(cudnn_.num_measured(), 4 * 2) << "in the first report alone";
    EXPECT_EQ(cudnn_.last_run().algorithm, FakeCudnn::kLastAlgorithm);
  }
}

TEST_P(GpuReportTest, RivalsByHandCountToWhatTheyShould) {
  fake_.define_kernel("eddy_rival_step", sizeof(cuda::RivalParams), rival_kernel([](auto&) {}));
  const auto report = report_hand_written(gpu_, FakeCuda::kImage, true, 3);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  EXPECT_EQ(report["rows"].size(), 7u);
  EXPECT_EQ(report["rows"][6]["case"], "floor of 32 loops side by side");
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
  EXPECT_EQ(report["failed"], 7);
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

TEST_P(GpuReportTest, AFaultEndsThePartAndIsReported) {
  fake_.fault_kernel(5);
  const auto report = report_conformance(gpu_, 20);
  EXPECT_THAT(report["error"].get<std::string>(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(report["failed"], 1);
  EXPECT_THAT(report_loops(gpu_, 5)["error"].get<std::string>(), HasSubstr("device lost"));
}

class GpuReportSessions : public ::testing::Test {
 protected:
  GpuReportSessions() {
    what_.make_device = fake_.maker();
    what_.make_tf32_device = fake_.maker();
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
  EXPECT_EQ(report["rows"].size(), 8u * 6u + 2u) << "products have a row with TF32";
  for (const auto& row : report["rows"]) {
    if (row["case"] != "eight such loops") continue;
    if (row["way"] != "device" && row["way"] != "apart") continue;
    EXPECT_EQ(row["device_driven_loops"], row["way"] == "device" ? 1 : 4) << "merged: " << row;
  }
  int num_reported = 0;  // how they were unrolled, or why not
  for (const auto& row : report["rows"]) {
    const bool is_host_predicate = row["case"].get<std::string>().starts_with("host predicate");
    const bool is_by_device = row["way"] != "host" && row["way"] != "auto";
    EXPECT_EQ(row["status"], is_host_predicate && is_by_device ? "refused" : "passed") << row;
    if (row["way"] != "unrolled" || row["status"] != "passed") continue;
    const bool is_reported =
        row["first_loop"].get<std::string>().find("unrolled: ") != std::string::npos;
    num_reported += is_reported ? 1 : 0;
  }
  EXPECT_GE(num_reported, 4);
}

TEST_F(GpuReportSessions, OnlyRowsWithTf32RunOnTheDeviceThatRoundsTo) {
  what_.make_tf32_device = []() -> Result<ExecutionDevice> {
    return run_failed("the device with TF32");
  };
  what_.num_warm_runs = 0;
  const auto report = report_control(what_);
  EXPECT_EQ(report["failed"], 2);
  for (const auto& row : report["rows"]) {
    EXPECT_EQ(row["status"] == "failed", row["way"] == "auto, tf32") << row;
  }
}

// A case whose k-th session adds the k-th number: the CPU's, then the host-driven way's with TF32,
// then a row's.
nlohmann::json row_with_tf32(const Library& library, const SessionsUnderReport& what,
                             std::vector<int64_t> numbers) {
  GpuCase one;
  one.name = "close decisions";
  one.inputs = {{"x", Tensor::scalar(int64_t{7})}};
  one.has_products = true;
  one.build = [numbers = std::move(numbers), k = size_t{0}](const OpTable& ops) mutable {
    GraphBuilder b(ops);
    const Value x = b.input("x", tensor_type(ElementType::kInt64, {}));
    b.output("y", b.op("Add", {x, b.scalar(numbers.at(k++))}));
    return b.finish();
  };
  const std::vector<std::function<GpuCase()>> cases = {[&] { return std::move(one); }};
  const CaseWay way = {.name = "auto, tf32", .allows_tf32 = true};
  PartReport report("models", what.pace);
  report_cases(report, library, cases, {&way, 1}, what);
  return report.take()["rows"][0];
}

TEST_F(GpuReportSessions, RowsWithTf32AreHeldAgainstTheHostsWayWhereThatDecidesOtherwise) {
  auto row = row_with_tf32(library_, what_, {0, 0, 0});
  EXPECT_EQ(row["status"], "passed") << row;
  EXPECT_FALSE(row.contains("held_against")) << row;
  row = row_with_tf32(library_, what_, {0, 1, 1});
  EXPECT_EQ(row["status"], "passed") << row;
  EXPECT_EQ(row["held_against"], "the host-driven way with TF32");
  row = row_with_tf32(library_, what_, {0, 1, 2});
  EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr("by the host-driven way with TF32"));
  row = row_with_tf32(library_, what_, {0, 0, 1});
  EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr("by the CPU"));
}

// Values as the matmul loop's, off by as much as TF32 might have it, and by a wrong sign.
TEST(HostDifference, WithTf32ValuesMayBeOffAsFarAsItRoundsThem) {
  const auto outputs = [](float first) {
    return NamedTensors{{"y", Tensor::of<float>({3}, {first, -0.96f, 0.01f})}};
  };
  EXPECT_EQ(host_difference(outputs(0.9700f), outputs(0.9701f)), "");
  EXPECT_NE(host_difference(outputs(0.9700f), outputs(0.9720f)), "");
  EXPECT_EQ(host_difference(outputs(0.9700f), outputs(0.9720f), kTf32Tolerance), "");
  EXPECT_NE(host_difference(outputs(0.9700f), outputs(1.0000f), kTf32Tolerance), "");
  EXPECT_NE(host_difference(outputs(0.9700f), outputs(-0.9700f), kTf32Tolerance), "");
}

TEST(HostDifference, AnInfinityAgreesWithItselfAloneAndWideIntegersExactly) {
  const auto floats = [](float value) {
    return NamedTensors{{"y", Tensor::of<float>({1}, {value})}};
  };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(host_difference(floats(inf), floats(inf)), "");
  EXPECT_NE(host_difference(floats(inf), floats(-inf)), "");
  EXPECT_NE(host_difference(floats(inf), floats(1)), "");
  EXPECT_NE(host_difference(floats(1), floats(inf)), "");
  EXPECT_EQ(host_difference(floats(std::nanf("")), floats(std::nanf(""))), "");
  EXPECT_NE(host_difference(floats(std::nanf("")), floats(1)), "");
  const int64_t wide = (int64_t{1} << 53) + 1;
  const Tensor a = Tensor::scalar(wide), b = Tensor::scalar(wide - 1);
  EXPECT_NE(host_difference({{"n", a}}, {{"n", b}}), "");
  EXPECT_FALSE(compare_values(a.view(), b.view(), 1).is_ok());
  EXPECT_TRUE(compare_values(a.view(), a.view(), 1).is_ok());
  EXPECT_FALSE(compare_values(Tensor::scalar(1.0f).view(), Tensor::scalar(inf).view(), 1).is_ok());
}

TEST_F(GpuReportSessions, EveryWayGivesTheHostsBits) {
  const auto report = report_bits(what_);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_EQ(report["rows"].size(), 6u * 7u);
}

TEST_F(GpuReportSessions, WaitingAndIdleSessionsSayWhatTheyTake) {
  const auto report = report_waiting(what_);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  ASSERT_EQ(report["rows"].size(), 2u) << report["error"];
  EXPECT_GE(report["rows"][1]["ms"], 1);
}

TEST_F(GpuReportSessions, OneKindOfLoopIsRunByItself) {
  EXPECT_TRUE(is_drift_kind("nested") && is_drift_kind("host-driven") && !is_drift_kind("odd"));
  const auto report = report_drift(what_, "recording");
  ASSERT_EQ(report["rows"].size(), 1u);
  EXPECT_EQ(report["rows"][0]["case"], "recording");
}

TEST_F(GpuReportSessions, APartWithoutTimeSaysWhereItStoppedAndIsNoFailure) {
  what_.pace.time_limit = std::chrono::seconds(-1);
  const auto report = report_control(what_);
  EXPECT_FALSE(report.contains("error")) << report["error"];
  EXPECT_EQ(report["out_of_time"], "before scalar while, host");
  EXPECT_EQ(report["failed"], 0);
}

TEST_F(GpuReportSessions, LoopsLeaveMemoryWhereItWas) {
  const auto report = report_drift(what_);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  std::map<std::string, std::string> statuses;
  for (const auto& row : report["rows"]) {
    statuses[row["case"]] = row["status"];
    EXPECT_TRUE(row["status"] != "passed" || row["iterations"] == row["asked"]) << row;
  }
  // The fake's kernels cannot be called off, and it compiles none.
  EXPECT_THAT(statuses,
              UnorderedElementsAre(Pair("host-driven", "passed"), Pair("recording", "passed"),
                                   Pair("unrolled", "left out"), Pair("persistent", "left out"),
                                   Pair("merged", "passed"), Pair("nested 4 x 4", "passed")))
      << report.dump(1);
}

TEST_F(GpuReportSessions, MemoryThatGrowsFailsItsRow) {
  int64_t used_bytes = 0;
  const auto grows = [&](Device&) -> Result<int64_t> {
    return used_bytes += (int64_t{2} << 20) + 1;
  };
  const auto report = report_drift(what_, "", grows);
  EXPECT_EQ(report["failed"], 4);
  EXPECT_THAT(report["rows"].back()["reason"].get<std::string>(),
              HasSubstr("grown by 2097153 bytes"));
  what_.pace.time_limit = std::chrono::seconds(0);
  for (const auto& row : report_drift(what_)["rows"].get<std::vector<nlohmann::json>>()) {
    EXPECT_NE(row["status"], "passed") << "fewer than were asked: " << row;
    EXPECT_TRUE(row["status"] != "short" || row["iterations"] < row["asked"]) << row;
  }
}

// What the device has allocated itself shows, too.
TEST_F(GpuReportSessions, TheDriverSaysWhatIsInUse) {
  const auto made = std::move(*fake_.maker()());
  const int64_t before = *driver_used_bytes(*made.device);
  const BufferRef block = std::move(*made.device->allocator().allocate(1 << 20));
  EXPECT_GE(*driver_used_bytes(*made.device), before + (1 << 20));
}

TEST_F(GpuReportSessions, AProbeSaysHowManyLoopsTheDeviceStands) {
  EXPECT_EQ(report_probe(what_, 4, 1)["failed"], 0);
  EXPECT_EQ(report_probe(what_, 4, 2)["failed"], 0) << report_probe(what_, 4, 2).dump(1);
  const auto report = report_probe(what_, 8, 1);  // the fake stands five
  EXPECT_EQ(report["rows"][0]["status"], "failed");
  EXPECT_THAT(report["rows"][0]["reason"].get<std::string>(), HasSubstr("CUDA_ERROR_"));
}

TEST_F(GpuReportSessions, ADeviceLostOnPurposeIsReportedWithNodeAndIteration) {
  for (const bool by_device : {true, false}) {
    FakeAccelerator own(library_, {.seed = 7});
    bool is_harmless = false;
    own.cuda().define_kernel("eddy_rival_trap", sizeof(cuda::TrapParams),
                             [&](const FakeKernelCall& call) {
                               const auto fault = [&] {
                                 if (!is_harmless) call.fault();
                               };
                               cuda::rival_trap(call.params_as<cuda::TrapParams>(), fault);
                             });
    what_.make_device = own.maker();
    is_harmless = true;
    auto report = report_lost(what_, FakeCuda::kImage, by_device);
    EXPECT_EQ(report["failed"], 3) << "nothing was lost: " << report.dump(1);
    is_harmless = false;
    report = report_lost(what_, FakeCuda::kImage, by_device);
    EXPECT_EQ(report["failed"], 0) << report.dump(1);
    EXPECT_EQ(report["rows"].size(), 3u);
    EXPECT_TRUE(report_lost(what_, nullptr, by_device).contains("error"));
  }
}

TEST_F(GpuReportSessions, ALostDeviceEndsThePartAndIsReported) {
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
