// Claim: the report's networks are timed with inputs and outputs on the GPU and from host memory to
// host memory, in each way, and outputs that differ fail their rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "graph/io/export.h"
#include "graph/io/import.h"
#include "graph/io/tensor_file.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/fake_accelerator.h"
#include "tools/gpu/report_part.h"

namespace eddy::testing {
namespace {

class NetworksPartTest : public ::testing::Test {
 protected:
  NetworksPartTest() {
    what_.make_device = fake_.maker();
    what_.make_tf32_device = what_.make_measured_device = what_.make_channels_first_device =
        fake_.maker();
    what_.is_small = true;
    what_.num_warm_runs = 1;
    what_.num_runs = 1;
  }
  ~NetworksPartTest() override {
    EXPECT_THAT(fake_.problems(), ::testing::IsEmpty());
    EXPECT_EQ(fake_.cuda().leaks(), "");
  }

  const Library library_;
  FakeAccelerator fake_{library_, {.seed = 5}};
  SessionsUnderReport what_;
};

TEST_F(NetworksPartTest, NetworksAreTimedWithTheirValuesOnTheGpuAndFromTheHost) {
  const std::string folder = ::testing::TempDir() + "/networks";
  std::filesystem::create_directories(folder + "/small");
  GraphBuilder b(library_.ops(), "small");
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {4, 8}));
  const std::vector<float> weights(64, 0.125f);
  const Value w = b.tensor<float>({8, 8}, std::span<const float>(weights));
  b.output("y", b.op("Tanh", {b.op("MatMul", {x, w})}));
  ASSERT_TRUE(export_onnx(*b.finish(), folder + "/small/model.onnx").is_ok());
  std::vector<float> numbers(32);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 5) - 2;
  const Tensor input = Tensor::of<float>({4, 8}, std::span<const float>(numbers));
  auto cpu =
      *Session::create(library_, *import_onnx(folder + "/small/model.onnx", library_.ops()), {});
  const auto output = *cpu->run({{"x", input}});
  const auto write = [&](const std::string& name, const Tensor& tensor) {
    ASSERT_TRUE(write_value(folder + "/small/" + name, HostValue::copy_of(tensor.view())).is_ok());
  };
  write("input.npy", input);
  write("output.npy", output[0].second);
  const auto report = report_networks(what_, folder);
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  ASSERT_EQ(report["rows"].size(), 7u) << report.dump(1);
  EXPECT_EQ(report["rows"][5]["way"], "auto, tf32, channels first");
  EXPECT_EQ(report["rows"][6]["way"], "auto, tf32, measured");
  for (const auto& row : report["rows"]) {
    EXPECT_EQ(row["status"], "passed");
    EXPECT_GT(row["ms"].get<double>(), 0);
    EXPECT_GT(row["ms_from_host"].get<double>(), 0);
  }
  // A wrong output on the GPU is noticed.
  write("output.npy", input);
  EXPECT_EQ(report_networks(what_, folder)["failed"], 7);
  what_.make_measured_device = []() -> Result<ExecutionDevice> {
    return run_failed("the device that measures");
  };
  const auto without = report_networks(what_, folder);
  EXPECT_THAT(without["rows"][6]["reason"].get<std::string>(),
              ::testing::HasSubstr("the device that measures"));
  what_.make_measured_device = {};
  EXPECT_EQ(report_networks(what_, folder)["rows"].size(), 6u);
}

}  // namespace
}  // namespace eddy::testing
