// Claim: sessions on a GPU's device (a fake driver's with the kernels of ops/cuda, run on the host)
// give the CPU's values within the rounding of sums: ONNX's own tests, where Debian's
// libonnx-testdata is installed, with and without the libraries; and what a kernel finds wrong
// fails the run by node and value. A loop's body keeps its guards where no library launches in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "graph/io/import.h"
#include "graph/io/tensor_file.h"
#include "graph/ir/builder.h"
#include "graph/ir/half.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/fake_library_gpu.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

const Library& library() {
  static const Library* const library = new Library();
  return *library;
}

Tensor to_tensor(const HostValue& value) {
  if (value.kind == HostValue::Kind::kNone) return Tensor();
  if (value.kind == HostValue::Kind::kTensor) return Tensor::copy_of(value.view());
  std::vector<Tensor> elements;
  for (const HostValue& element : value.elements) elements.push_back(to_tensor(element));
  return Tensor::sequence(value.element, std::move(elements));
}

Result<NamedTensors> read_inputs(const Graph& graph, const fs::path& folder) {
  NamedTensors inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueInfo& info = graph.value(graph.inputs()[i]);
    const fs::path file = folder / ("input_" + std::to_string(i) + ".pb");
    EDDY_ASSIGN_OR_RETURN(const HostValue value, read_value(file.string(), info.type));
    inputs.emplace_back(info.name, to_tensor(value));
  }
  return inputs;
}

double number(const TensorView& view, int64_t i) {
  switch (view.element) {
    case ElementType::kDouble:
      return view.as<double>()[i];
    case ElementType::kFloat16:
      return view.as<Float16>()[i];
    case ElementType::kBfloat16:
      return view.as<Bfloat16>()[i];
    default:
      return view.as<float>()[i];
  }
}

// Within ONNX's own tolerance for floats; else the same bits. Empty, or what differs.
std::string far_from(const Tensor& actual, const Tensor& expected) {
  if (expected.is_tensor() && expected.view().element == ElementType::kString) {
    const auto* const texts = expected.view().as<std::string>();
    const bool is_same =
        actual.view().count() == expected.view().count() &&
        std::equal(texts, texts + expected.view().count(), actual.view().as<std::string>());
    return is_same ? "" : "other texts";
  }
  if (!expected.is_tensor() || !kFloatTypes.contains(expected.view().element)) {
    return check::difference({{"y", expected}}, {{"y", actual}});
  }
  const TensorView a = actual.view(), b = expected.view();
  if (!std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end())) {
    return "another shape";
  }
  for (int64_t i = 0; i < b.count(); ++i) {
    const double x = number(a, i), y = number(b, i);
    const bool is_same = x == y || (std::isnan(x) && std::isnan(y));
    const double tolerance = element_size_bytes(b.element) == 2 ? 1e-2 : 1e-3;
    if (!is_same && !(std::fabs(x - y) <= 1e-6 + tolerance * std::fabs(y))) {
      return "element " + std::to_string(i) + " is " + std::to_string(x) + ", not " +
             std::to_string(y);
    }
  }
  return "";
}

struct Counts {
  size_t compared = 0;
  size_t on_device = 0;  // models with a node there
};

void compare(const fs::path& folder, uint64_t seed, bool has_libraries, Counts& counts) {
  SCOPED_TRACE(folder.filename().string());
  const auto make = [&] { return import_onnx((folder / "model.onnx").string(), library().ops()); };
  Result<Graph> graph = make();
  if (!graph.is_ok()) return;
  const auto inputs = read_inputs(*graph, folder / "test_data_set_0");
  if (!inputs.is_ok()) return;
  auto on_cpu = Session::create(library(), std::move(*graph), {.num_threads = 1});
  if (!on_cpu.is_ok()) return;
  const auto expected = (*on_cpu)->run(*inputs);
  if (!expected.is_ok()) return;
  FakeLibraryGpu gpu(seed, has_libraries);
  {
    auto session = Session::create(library(), std::move(*make()), gpu.options());
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    counts.on_device += (*session)->placement_text().starts_with("0 nodes") ? 0 : 1;
    const auto found = (*session)->run(*inputs);
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    ASSERT_EQ(found->size(), expected->size());
    for (size_t i = 0; i < expected->size(); ++i) {
      EXPECT_EQ(far_from((*found)[i].second, (*expected)[i].second), "");
    }
    ++counts.compared;
  }
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  EXPECT_THAT(gpu.cublas_lt().violations(), IsEmpty());
  EXPECT_THAT(gpu.cudnn().violations(), IsEmpty());
  EXPECT_THAT(gpu.cub().violations(), IsEmpty());
  EXPECT_EQ(gpu.cublas_lt().num_alive() + gpu.cudnn().num_alive(), 0);
  EXPECT_EQ(gpu.leaks(), "");
}

TEST(CudaKernelsSession, OnnxsOwnTestsGiveTheCpusValues) {
  const fs::path data = "/usr/share/libonnx-testdata/data/node";
  if (!fs::exists(data)) GTEST_SKIP() << "Debian's libonnx-testdata is not installed";
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(data)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  // Every family with a kernel beyond elementwise ones, and a slice of all.
  const char* const kFamilies[] = {"conv",  "matmul", "gemm",    "lstm",     "gru",   "simple_rnn",
                                   "cast",  "gather", "scatter", "resize",   "pool",  "norm",
                                   "topk",  "top_k",  "cumsum",  "quantize", "pad",   "tile",
                                   "trilu", "tril",   "triu",    "onehot",   "split", "concat",
                                   "range", "depth",  "reduce",  "softmax",  "arg"};
  constexpr size_t kEvery = 7;
  Counts counts;
  for (size_t f = 0; f < folders.size(); ++f) {
    const std::string name = folders[f].filename().string();
    const bool is_family = std::ranges::any_of(
        kFamilies, [&](const char* part) { return name.find(part) != std::string::npos; });
    if (f % (is_family ? 2 : kEvery) != 0) continue;
    compare(folders[f], f, f % 4 == 0, counts);
  }
  EXPECT_GE(counts.compared, 250u);
  EXPECT_GE(counts.on_device, 150u);
  std::printf("%zu models compared, %zu with nodes on the device\n", counts.compared,
              counts.on_device);
}

TEST(CudaKernelsSession, SessionsOneAfterTheOtherShareTheLibrarysHandles) {
  FakeLibraryGpu gpu(9, true);
  {
    SessionOptions options = gpu.options();
    const auto device = options.make_devices[0]();
    ASSERT_TRUE(device.is_ok()) << device.status().to_string();
    options.make_devices = {[&] { return device; }};
    int num_created = 0;
    for (int round = 0; round < 8; ++round) {
      GraphBuilder b(library().ops());
      const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 3, 8, 8}));
      const Value w = b.input("w", tensor_type(ElementType::kFloat, {4, 3, 3, 3}));
      b.output("y", b.op("Conv", {x, w}));
      auto session = Session::create(library(), std::move(*b.finish()), options);
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      for (int run = 0; run < 2; ++run) {
        const auto outputs = (*session)->run(
            {{"x", to_tensor(HostValue::tensor(ElementType::kFloat, {1, 3, 8, 8}))},
             {"w", to_tensor(HostValue::tensor(ElementType::kFloat, {4, 3, 3, 3}))}});
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      }
      EXPECT_EQ(gpu.cudnn().num_convolutions(), 2 * (round + 1));
      if (round == 0) num_created = gpu.cudnn().num_created();
      EXPECT_EQ(gpu.cudnn().num_created(), num_created) << "round " << round;
    }
  }
  EXPECT_EQ(gpu.cudnn().num_alive(), 0);
  EXPECT_EQ(gpu.cudnn().num_destroyed(), 0) << "their sessions would disturb others by it";
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  EXPECT_EQ(gpu.leaks(), "");
}

// What the first session has measured, later ones take, whatever they would measure; one without a
// folder measures nothing.
TEST(CudaKernelsSession, AConvolutionIsMeasuredOnceAndItsAlgorithmHolds) {
  const fs::path root = fs::path(::testing::TempDir()) / ("choices_" + std::to_string(getpid()));
  fs::remove_all(root);
  const auto ran = [&](const std::string& folder, const FakeCudnn::Times& times) {
    FakeLibraryGpu gpu(9, true, {.choices_folder = folder});
    gpu.cudnn().plant_times(times);
    {
      GraphBuilder b(library().ops());
      const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 3, 8, 8}));
      const std::vector<float> weights(4 * 3 * 3 * 3, 0.25f);
      b.output("y",
               b.op("Conv", {x, b.tensor<float>({4, 3, 3, 3}, std::span<const float>(weights))}));
      auto session = Session::create(library(), std::move(*b.finish()), gpu.options());
      EXPECT_TRUE(session.is_ok()) << session.status().to_string();
      EXPECT_TRUE(
          (*session)
              ->run({{"x", to_tensor(HostValue::tensor(ElementType::kFloat, {1, 3, 8, 8}))}})
              .is_ok());
    }
    EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
    EXPECT_THAT(gpu.cudnn().violations(), IsEmpty());
    return std::pair(gpu.cudnn().last_run().algorithm, gpu.cudnn().num_measured());
  };
  const FakeCudnn::Times last_wins = {.tensor_ms = 2, .fma_ms = 2, .last_ms = 1};
  const FakeCudnn::Times first_wins = {.tensor_ms = 1, .fma_ms = 1, .last_ms = 2};
  const std::string folder = (root / "kept").string();
  fs::create_directories(root);
  EXPECT_EQ(ran("", last_wins), std::pair(FakeCudnn::kGoodAlgorithm, 0));
  EXPECT_EQ(ran(folder, last_wins), std::pair(FakeCudnn::kLastAlgorithm, 2));
  EXPECT_EQ(ran(folder, first_wins), std::pair(FakeCudnn::kLastAlgorithm, 0));
  fs::remove_all(root / "kept");
  EXPECT_EQ(ran(folder, first_wins), std::pair(FakeCudnn::kGoodAlgorithm, 2));
  fs::remove_all(root);
}

// Our own kernel takes far longer, so whoever makes the session hears of it.
TEST(CudaKernelsSession, AConvolutionThatTheLibraryHasNoWayForIsTold) {
  FakeLibraryGpu gpu(9, true);
  std::vector<std::string> lines;
  const auto make = [&] {
    GraphBuilder b(library().ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 3, 8, 8}));
    const std::vector<float> weights(4 * 3 * 3 * 3, 0.25f);
    b.output("y",
             b.op("Conv", {x, b.tensor<float>({4, 3, 3, 3}, std::span<const float>(weights))}));
    SessionOptions options = gpu.options();
    options.log = [&](std::string_view line) {
      if (line.starts_with("a convolution of ")) lines.emplace_back(line);
    };
    return Session::create(library(), std::move(*b.finish()), options);
  };
  {
    const auto with = make();
    ASSERT_TRUE(with.is_ok()) << with.status().to_string();
    EXPECT_THAT(lines, IsEmpty());
    gpu.cudnn().offer_nothing(1);
    const auto without = make();
    ASSERT_TRUE(without.is_ok()) << without.status().to_string();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_THAT(lines[0], HasSubstr("3 channels of 8x8 by 4 filters of 3x3 in 1 groups is run by "
                                    "our own kernel, which may take far longer: cuDNN has no"));
    lines.clear();
    constexpr int kNotSupported = 3000;
    gpu.cudnn().fail_next("convolve", kNotSupported);
    const Tensor x = to_tensor(HostValue::tensor(ElementType::kFloat, {1, 3, 8, 8}));
    for (int repeat = 0; repeat < 3; ++repeat) ASSERT_TRUE((*with)->run({{"x", x}}).is_ok());
    ASSERT_EQ(lines.size(), 1u) << "by the first run, once";
    EXPECT_THAT(lines[0], HasSubstr("cudnnConvolutionForward answered"));
  }
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
}

// The greatest of neighbours in a row of pixels, three times.
Result<Graph> pooling_loop(const Dims& dims) {
  GraphBuilder b(library().ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, dims));
  const auto results = b.while_loop(
      {.name = "spread", .initial = {x}, .trip_limit = b.scalar(int64_t{3})},
      [&](Value, ValueSpan v) {
        const Value of_channels = b.op("GlobalMaxPool", {v[0]});  // not one line, which is CUB's
        const Value most = b.op("ReduceMax", {of_channels}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {most, b.scalar(1e9f)}), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        const std::vector<int64_t> shape = {1, 3}, pads = {0, 1, 0, 1};
        return std::vector<Value>{
            b.op("MaxPool", {v[0]}, {{"kernel_shape", shape}, {"pads", pads}})};
      });
  b.output("y", results[0]);
  return b.finish();
}

TEST(CudaKernelsSession, ALoopWithASmallPoolIsUnrolledAndALargePoolIsTheLibrarys) {
  for (const bool is_large : {false, true}) {
    const Dims dims = is_large ? Dims{1, 2, 512, 512} : Dims{1, 2, 5, 7};
    const HostValue x = HostValue::tensor(ElementType::kFloat, dims);
    for (int64_t i = 0; i < x.view().count(); ++i) {
      x.view().mutable_as<float>()[i] = static_cast<float>(i * 7919 % 1009);
    }
    auto on_cpu = Session::create(library(), std::move(*pooling_loop(dims)), {.num_threads = 1});
    ASSERT_TRUE(on_cpu.is_ok()) << on_cpu.status().to_string();
    const auto expected = (*on_cpu)->run({{"x", to_tensor(x)}});
    FakeLibraryGpu gpu(11, true);
    {
      SessionOptions options = gpu.options();
      options.loops = Loops::kDevice;
      options.only_loop_way = LoopChoice::Way::kUnrolled;
      auto session = Session::create(library(), std::move(*pooling_loop(dims)), options);
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      const auto found = (*session)->run({{"x", to_tensor(x)}});
      ASSERT_TRUE(found.is_ok()) << found.status().to_string();
      EXPECT_EQ(check::difference(*expected, *found), "");
      const LoopReport report = (*session)->loop_reports()[0];
      EXPECT_EQ(report.driven, "device");
      EXPECT_THAT(report.reason, HasSubstr(is_large ? "can be called off" : "unrolled: up to "));
    }
    EXPECT_EQ(gpu.cudnn().num_pools() > 0, is_large);
    EXPECT_THAT(gpu.cudnn().violations(), IsEmpty());
    EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
    EXPECT_EQ(gpu.leaks(), "");
  }
}

TEST(CudaKernelsSession, AnIndexOutOfRangeFailsTheRunByNodeAndTheNextRunIsFine) {
  FakeLibraryGpu gpu(5, false);
  GraphBuilder builder(library().ops());
  const Value table = builder.input("table", tensor_type(ElementType::kFloat, {40, 3}));
  const Value index = builder.input("index", tensor_type(ElementType::kInt64, {20}));
  builder.output("rows", builder.op("Gather", {table, index}, {}, {.name = "embed"}));
  auto graph = builder.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  {
    auto session = Session::create(library(), std::move(*graph), gpu.options());
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    HostValue indices = HostValue::tensor(ElementType::kInt64, {20});
    HostValue values = HostValue::tensor(ElementType::kFloat, {40, 3});
    for (int i = 0; i < 20; ++i) indices.view().mutable_as<int64_t>()[i] = i;
    for (int i = 0; i < 120; ++i) values.view().mutable_as<float>()[i] = static_cast<float>(i);
    const auto run = [&] {
      return (*session)->run({{"table", to_tensor(values)}, {"index", to_tensor(indices)}});
    };
    for (int round = 0; round < 2; ++round) {
      indices.view().mutable_as<int64_t>()[7] = 7;
      const auto fine = run();
      ASSERT_TRUE(fine.is_ok()) << fine.status().to_string();
      indices.view().mutable_as<int64_t>()[7] = 40;
      const auto wrong = run();
      ASSERT_FALSE(wrong.is_ok());
      EXPECT_THAT(wrong.status().to_string(), HasSubstr("embed"));
      EXPECT_THAT(wrong.status().to_string(),
                  HasSubstr("index 40 is out of range for axis 0 of size 40"));
    }
  }
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
}

// The index grows by one a round, from 63 on.
Result<Graph> growing_index() {
  GraphBuilder b(library().ops());
  const Value table = b.input("table", tensor_type(ElementType::kFloat, {70, 33}));
  const Value index = b.input("index", tensor_type(ElementType::kInt64, {64}));
  const Value zeros = b.input("zeros", tensor_type(ElementType::kFloat, {64, 33}));
  const auto results = b.while_loop(
      {.name = "walk", .initial = {index, zeros}, .trip_limit = b.scalar(int64_t{30})},
      [&](Value, ValueSpan v) {
        const Value most = b.op("ReduceMax", {v[1]}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {most, b.scalar(1e9f)}), {v[0], v[1]}};
      },
      [&](Value, ValueSpan v) {
        const Value rows = b.op("Gather", {table, v[0]}, {}, {.name = "embed"});
        return std::vector<Value>{b.op("Add", {v[0], b.scalar(int64_t{1})}),
                                  b.op("Add", {v[1], b.op("Tanh", {rows})})};
      });
  b.output("sum", results[1]);
  return b.finish();
}

// The same, four inner rounds to each outer one; `is_in_test` selects the region of the index
// lookup.
Result<Graph> growing_in_two_loops(bool is_in_test) {
  GraphBuilder b(library().ops());
  const Value table = b.input("table", tensor_type(ElementType::kFloat, {70, 33}));
  const Value index = b.input("index", tensor_type(ElementType::kInt64, {64}));
  const Value zeros = b.input("zeros", tensor_type(ElementType::kFloat, {64, 33}));
  const auto is_small = [&](Value v) {
    const Value most = b.op("ReduceMax", {v}, {{"keepdims", int64_t{0}}});
    return b.op("Less", {most, b.scalar(1e9f)});
  };
  const auto embed = [&](Value at) { return b.op("Gather", {table, at}, {}, {.name = "embed"}); };
  const auto results = b.while_loop(
      {.name = "outer", .initial = {index, zeros}, .trip_limit = b.scalar(int64_t{9})},
      [&](Value, ValueSpan v) {
        return WhileTest{is_small(v[1]), {v[0], v[1]}};
      },
      [&](Value, ValueSpan v) {
        return b.while_loop(
            {.name = "inner", .initial = {v[0], v[1]}, .trip_limit = b.scalar(int64_t{4})},
            [&](Value, ValueSpan w) {
              return WhileTest{is_small(is_in_test ? embed(w[0]) : w[1]), {w[0], w[1]}};
            },
            [&](Value, ValueSpan w) {
              const Value rows = is_in_test ? w[1] : b.op("Tanh", {embed(w[0])});
              return std::vector<Value>{b.op("Add", {w[0], b.scalar(int64_t{1})}),
                                        b.op("Add", {w[1], rows})};
            });
      });
  b.output("sum", results[1]);
  return b.finish();
}

// Two runs fail at the index 70; the last one is 63 at first.
void expect_index_told(const std::function<Result<Graph>()>& build, Loops loops,
                       const std::string& path) {
  for (const uint64_t seed : {5, 6, 7}) {
    FakeLibraryGpu gpu(seed, false);
    SessionOptions options = gpu.options();
    options.loops = loops;
    auto session = Session::create(library(), std::move(*build()), options);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    EXPECT_THAT((*session)->placement_text(), HasSubstr(" nodes on cuda, "));
    HostValue indices = HostValue::tensor(ElementType::kInt64, {64});
    HostValue table = HostValue::tensor(ElementType::kFloat, {70, 33});
    HostValue zeros = HostValue::tensor(ElementType::kFloat, {64, 33});
    for (int i = 0; i < 64; ++i) indices.view().mutable_as<int64_t>()[i] = i;
    for (int round = 0; round < 2; ++round) {
      const auto wrong = (*session)->run({{"table", to_tensor(table)},
                                          {"index", to_tensor(indices)},
                                          {"zeros", to_tensor(zeros)}});
      ASSERT_FALSE(wrong.is_ok());
      EXPECT_THAT(wrong.status().to_string(), HasSubstr(path));
      EXPECT_THAT(wrong.status().to_string(),
                  HasSubstr("index 70 is out of range for axis 0 of size 70"));
    }
    session->reset();
    EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
    EXPECT_EQ(gpu.leaks(), "");
  }
}

TEST(CudaKernelsSession, WhatIsWrongInALoopIsToldWithItsIterationAndEndsTheLoop) {
  for (const Loops loops : {Loops::kHost, Loops::kDevice}) {
    expect_index_told(growing_index, loops, "walk[7]/embed");
    expect_index_told([] { return growing_in_two_loops(false); }, loops, "outer[1]/inner[3]/embed");
  }
}

TEST(CudaKernelsSession, WhatIsWrongInALoopsTestIsToldWithTheIterationThatItWouldBegin) {
  for (const Loops loops : {Loops::kHost, Loops::kDevice}) {
    expect_index_told([] { return growing_in_two_loops(true); }, loops, "outer[1]/inner[3]/embed");
  }
}

TEST(CudaKernelsSession, AWrongLengthOfASequenceFailsTheRunByNode) {
  constexpr int64_t kSteps = 4, kBatch = 2, kInput = 16, kHidden = 24;
  FakeLibraryGpu gpu(8, false);
  for (const auto& [op, gates] : {std::pair{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    GraphBuilder b(library().ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {kSteps, kBatch, kInput}));
    const Dims w_dims = {1, gates * kHidden, kInput};
    const Dims r_dims = {1, gates * kHidden, kHidden};
    const Value w = b.input("w", tensor_type(ElementType::kFloat, w_dims));
    const Value r = b.input("r", tensor_type(ElementType::kFloat, r_dims));
    const Value lengths = b.input("lengths", tensor_type(ElementType::kInt32, {kBatch}));
    b.output("y",
             b.op(op, {x, w, r, Value(), lengths}, {{"hidden_size", kHidden}}, {.name = "listen"}));
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library(), std::move(*graph), gpu.options());
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    EXPECT_THAT((*session)->placement_text(), HasSubstr("1 node on cuda"));
    const auto run = [&](int32_t length) {
      HostValue values[] = {HostValue::tensor(ElementType::kFloat, {kSteps, kBatch, kInput}),
                            HostValue::tensor(ElementType::kFloat, w_dims),
                            HostValue::tensor(ElementType::kFloat, r_dims)};
      return (*session)->run({{"x", to_tensor(values[0])},
                              {"w", to_tensor(values[1])},
                              {"r", to_tensor(values[2])},
                              {"lengths", Tensor::of<int32_t>({kBatch}, {3, length})}});
    };
    for (const int32_t length : {5, -1}) {
      EXPECT_TRUE(run(kSteps).is_ok());
      const auto wrong = run(length);
      ASSERT_FALSE(wrong.is_ok()) << op;
      EXPECT_THAT(wrong.status().to_string(), HasSubstr("listen"));
      EXPECT_THAT(wrong.status().to_string(), HasSubstr(std::to_string(length)));
    }
  }
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
}

}  // namespace
}  // namespace eddy::testing
