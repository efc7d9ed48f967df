// Claim: sessions on a GPU's device (a fake driver's, with a fake compiler) give the same bits with
// elementwise nodes fused as with a kernel each, in loops, branches and over changing shapes; the
// placement lists what was fused or why not; kernels come from the cache on disk, and from the
// compiler where that is forged; a compiler that refuses costs speed alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "graph/io/host_value.h"
#include "graph/ir/builder.h"
#include "tests/runtime/cuda/fake_fusing_gpu.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

const Library& library() {
  static const Library* const library = new Library();
  return *library;
}

// x := tanh(x * f) + x * sigmoid(x) while the sum of |x| is below a limit, then one of two tails.
Result<Graph> dynamic_graph() {
  GraphBuilder b(library().ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 33}));
  const Value factor = b.input("f", tensor_type(ElementType::kFloat, {33}));
  const Value limit = b.input("limit", tensor_type(ElementType::kFloat, {}));
  const auto grown = b.while_loop(
      {.name = "grow", .initial = {x}},
      [&](Value, ValueSpan v) {
        const Value size = b.op("Abs", {b.op("Mul", {v[0], b.scalar(0.5f)})});
        const Value sum = b.op("ReduceSum", {size}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {sum, limit}), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        const Value left = b.op("Tanh", {b.op("Mul", {v[0], factor})});
        const Value right = b.op("Mul", {v[0], b.op("Sigmoid", {v[0]})});
        const Value sum = b.op("Add", {left, right});
        return std::vector<Value>{b.op("Add", {sum, b.op("Abs", {v[0]})}, {}, {.name = "next"})};
      });
  const Value is_high = b.op("Greater", {b.op("Exp", {grown[0]}), b.op("Neg", {x})});
  const Value chosen = b.op("Where", {is_high, b.op("Sqrt", {b.op("Abs", {grown[0]})}), x});
  b.output("y",
           b.cast(b.op("Clip", {chosen, b.scalar(-1.0f), b.scalar(1.5f)}), ElementType::kFloat16));
  return b.finish();
}

NamedTensors inputs(int64_t rows, uint64_t seed) {
  Random random(seed);
  const auto make = [&](const Dims& dims) {
    HostValue value = HostValue::tensor(ElementType::kFloat, dims);
    for (int64_t i = 0; i < value.view().count(); ++i) {
      value.view().mutable_as<float>()[i] = random.uniform(-1.0f, 1.0f);
    }
    return Tensor::copy_of(value.view());
  };
  return {{"x", make({rows, 33})}, {"f", make({33})}, {"limit", Tensor::scalar(500.0f)}};
}

struct Answer {
  NamedTensors outputs;
  int64_t trips = 0;
  std::string placement;
};

Answer run(FusingGpu& gpu, bool fuses, int64_t rows, uint64_t seed) {
  auto session = Session::create(library(), std::move(*dynamic_graph()), gpu.options(fuses));
  EXPECT_TRUE(session.is_ok()) << session.status().to_string();
  Answer answer;
  for (int repeat = 0; repeat < 2; ++repeat) {
    auto outputs = (*session)->run(inputs(rows, seed));
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    // Out of the device's memory before the session goes.
    answer.outputs.clear();
    for (const auto& [name, tensor] : *outputs) {
      answer.outputs.emplace_back(name, Tensor::copy_of(tensor.view()));
    }
  }
  answer.trips = (*session)->loop_reports()[0].iterations;
  answer.placement = (*session)->placement_text();
  return answer;
}

void expect_clean(FusingGpu& gpu) {
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  EXPECT_THAT(gpu.nvrtc().violations(), IsEmpty());
  EXPECT_EQ(gpu.cuda().leaks(), "");
}

TEST(CudaFusion, FusedNodesGiveTheBitsOfAKernelEach) {
  for (const auto& [rows, seed] : {std::pair<int64_t, uint64_t>{1, 3}, {4, 5}, {31, 7}}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FusingGpu gpu(seed);
    const Answer apart = run(gpu, false, rows, seed);
    EXPECT_EQ(gpu.num_fused(), 0u);
    const Answer fused = run(gpu, true, rows, seed);
    EXPECT_EQ(check::difference(apart.outputs, fused.outputs), "");
    EXPECT_EQ(apart.trips, fused.trips);
    EXPECT_GT(fused.trips, 1);
    EXPECT_GE(gpu.num_fused(), 2 * static_cast<uint64_t>(fused.trips));
    EXPECT_THAT(fused.placement, HasSubstr("3 fused kernels of "));
    EXPECT_THAT(fused.placement, HasSubstr("fused into grow/next: Mul Mul_1, Tanh Tanh_1, "));
    EXPECT_THAT(apart.placement, HasSubstr("not fused: there is no compiler"));
    expect_clean(gpu);
  }
}

// Uneven parts along each axis, one of them stretched by what it is added to; and their bits are
// those of a Split's.
TEST(CudaFusion, PartsOfASplitAreReadWhereTheyLie) {
  for (const int64_t axis : {0, 1, 2}) {
    SCOPED_TRACE("axis " + std::to_string(axis));
    const auto build = [&] {
      GraphBuilder b(library().ops());
      const Value x = b.input("x", tensor_type(ElementType::kFloat, {8, 8, 8}));
      const Value flat = b.op("ReduceMax", {x, b.tensor<int64_t>({1}, {axis})});
      const Value moved = b.op("Softmax", {b.op("Transpose", {x})});
      const Value sizes = b.tensor<int64_t>({4}, {3, 1, 3, 1});
      const auto parts =
          b.ops("Split", std::vector<Value>{moved, sizes}, {{"axis", axis}}, {.num_outputs = 4});
      const Value gate = b.op("Mul", {b.op("Sigmoid", {parts[0]}), b.op("Tanh", {parts[2]})});
      b.output("y", b.op("Add", {gate, parts[1]}));
      b.output("z", b.op("Exp", {parts[3]}));
      b.output("w", b.op("Sub", {b.op("Neg", {parts[2]}), flat}));
      return std::move(*b.finish());
    };
    Random random(static_cast<uint64_t>(axis) + 21);
    HostValue x = HostValue::tensor(ElementType::kFloat, {8, 8, 8});
    for (int64_t i = 0; i < 512; ++i) x.view().mutable_as<float>()[i] = random.uniform(-2.0f, 2.0f);
    FusingGpu gpu(static_cast<uint64_t>(axis) + 5);
    NamedTensors outputs[2];
    std::string placement;
    for (const bool fuses : {false, true}) {
      auto session = Session::create(library(), build(), gpu.options(fuses));
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      auto made = (*session)->run({{"x", Tensor::copy_of(x.view())}});
      ASSERT_TRUE(made.is_ok()) << made.status().to_string();
      for (const auto& [name, tensor] : *made) {
        outputs[fuses ? 1 : 0].emplace_back(name, Tensor::copy_of(tensor.view()));
      }
      placement = (*session)->placement_text();
    }
    EXPECT_THAT(placement, HasSubstr("read in place: parts of Split"));
    EXPECT_EQ(check::difference(outputs[0], outputs[1]), "");
    expect_clean(gpu);
  }
}

// Two states that decide over each other in a loop of single elements and in one of many: the step
// that makes one of them comes before one that reads its old value.
TEST(CudaFusion, TwoResultsOfOneKernelAreCarriedOn) {
  for (const int64_t count : {1, 37, 70000}) {
    SCOPED_TRACE("elements " + std::to_string(count));
    const auto build = [&] {
      GraphBuilder b(library().ops());
      const ValueType type = tensor_type(ElementType::kFloat, {count});
      const Value x = b.input("x", type), y = b.input("y", type);
      const auto results = b.while_loop(
          {.name = "both", .initial = {x, y, b.scalar(0.0f)}},
          [&](Value, ValueSpan v) {
            return WhileTest{b.op("Less", {v[2], b.scalar(9.0f)}), {v[0], v[1], v[2]}};
          },
          [&](Value, ValueSpan v) {
            const Value next = b.op("Tanh", {b.op("Add", {v[0], v[1]})});
            const Value other = b.op("Mul", {b.op("Sub", {v[1], next}), v[0]});
            return std::vector<Value>{next, other, b.op("Add", {v[2], b.scalar(1.0f)})};
          });
      b.output("a", results[0]);
      b.output("b", results[1]);
      return std::move(*b.finish());
    };
    Random random(static_cast<uint64_t>(count) + 3);
    HostValue x = HostValue::tensor(ElementType::kFloat, {count});
    HostValue y = HostValue::tensor(ElementType::kFloat, {count});
    for (int64_t i = 0; i < count; ++i) {
      x.view().mutable_as<float>()[i] = random.uniform(-2.0f, 2.0f);
      y.view().mutable_as<float>()[i] = random.uniform(-2.0f, 2.0f);
    }
    FusingGpu gpu(static_cast<uint64_t>(count) + 7);
    NamedTensors expected;
    for (const bool fuses : {false, true}) {
      for (const auto way : {LoopChoice::Way::kKernel, LoopChoice::Way::kRecording,
                             LoopChoice::Way::kUnrolled, LoopChoice::Way::kHost}) {
        SessionOptions options = gpu.options(fuses);
        options.only_loop_way = way;
        if (way == LoopChoice::Way::kHost) options.loops = Loops::kHost;
        auto session = Session::create(library(), build(), options);
        ASSERT_TRUE(session.is_ok()) << session.status().to_string();
        for (int repeat = 0; repeat < 3; ++repeat) {
          auto made =
              (*session)->run({{"x", Tensor::copy_of(x.view())}, {"y", Tensor::copy_of(y.view())}});
          ASSERT_TRUE(made.is_ok()) << made.status().to_string();
          NamedTensors outputs;
          for (const auto& [name, tensor] : *made) {
            outputs.emplace_back(name, Tensor::copy_of(tensor.view()));
          }
          if (expected.empty()) expected = outputs;
          EXPECT_EQ(check::difference(expected, outputs), "") << fuses;
        }
        const std::string fused_both = "Add Add_0, Tanh Tanh_1, Sub Sub_2, Mul Mul_3";
        EXPECT_EQ((*session)->placement_text().find(fused_both) != std::string::npos, fuses);
      }
    }
    expect_clean(gpu);
  }
}

TEST(CudaFusion, PartsThatAreNotThereAreRefusedByTheirNode) {
  const std::vector<std::vector<int64_t>> wrong = {
      {1, 0, 4}, {0, 61, 4}, {0, -1, 4}, {0, 1, -4}, {0, INT64_MAX, 2}, {0, 0}, {}};
  for (const std::vector<int64_t>& parts : wrong) {
    GraphBuilder b(library().ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {64}));
    b.output("y", b.op("FusedParts", {x},
                       {{"program", std::string("Exp_f32 0")},
                        {"to", std::vector<int64_t>{1}},
                        {"parts", parts}},
                       {.name = "forged", .domain = "eddy", .opset_version = 1}));
    const auto graph = b.finish();
    ASSERT_FALSE(graph.is_ok());
    EXPECT_THAT(graph.status().to_string(), HasSubstr("forged"));
  }
}

TEST(CudaFusion, ACompilerThatRefusesCostsSpeedAlone) {
  FusingGpu gpu(11);
  const Answer apart = run(gpu, false, 4, 11);
  gpu.nvrtc().refuse(1, "fused.cu(3): error: out of order\nand more");
  const Answer fused = run(gpu, true, 4, 11);
  EXPECT_EQ(check::difference(apart.outputs, fused.outputs), "");
  EXPECT_THAT(fused.placement, HasSubstr("2 fused kernels of "));
  EXPECT_THAT(fused.placement,
              HasSubstr("nvrtcCompileProgram refuses a kernel: NVRTC_ERROR_COMPILATION: "
                        "fused.cu(3): error: out of order\n"));
  EXPECT_THAT(fused.placement, Not(HasSubstr("and more")));
  expect_clean(gpu);
}

TEST(CudaFusion, KernelsComeFromTheDiskTheSecondTimeUnlessTheyWereForged) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("fusion_" + std::to_string(getpid()));
  fs::remove_all(folder);
  {
    FusingGpu gpu(13, folder.string());
    const Answer first = run(gpu, true, 4, 13);
    const int num_compiled = gpu.nvrtc().num_compiled();
    EXPECT_EQ(num_compiled, 3);
    const Answer second = run(gpu, true, 4, 13);
    EXPECT_EQ(gpu.nvrtc().num_compiled(), num_compiled);
    EXPECT_EQ(check::difference(first.outputs, second.outputs), "");
    for (const auto& file : fs::directory_iterator(folder)) {
      std::fstream(file.path(), std::ios::in | std::ios::out | std::ios::binary).seekp(60) << "no";
    }
    const Answer third = run(gpu, true, 4, 13);
    EXPECT_EQ(gpu.nvrtc().num_compiled(), 2 * num_compiled);
    EXPECT_EQ(check::difference(first.outputs, third.outputs), "");
    expect_clean(gpu);
  }
  fs::remove_all(folder);
}

TEST(CudaFusion, AProgramFromAFileIsRefusedByItsNode) {
  GraphBuilder b(library().ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {64}));
  b.output("y", b.op("Fused", {x},
                     {{"program", std::string("system 0")}, {"to", std::vector<int64_t>{1}}},
                     {.name = "forged", .domain = "eddy", .opset_version = 1}));
  FusingGpu gpu(17);
  auto session = Session::create(library(), std::move(*b.finish()), gpu.options(true));
  ASSERT_FALSE(session.is_ok());
  EXPECT_THAT(session.status().to_string(), HasSubstr("forged"));
}

}  // namespace
}  // namespace eddy::testing
