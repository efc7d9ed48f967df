// Claim: a session of a GPU whose channels come last gives what the CPU gives, within rounding, on
// seeded random networks with branches, joins, normalizations, pools, loops and if-branches, with
// fused kernels and without; every convolution reads them so, an image is turned over where it
// comes in and nowhere else, and no launch is added; without cuDNN nothing is laid out otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/fake_library_gpu.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tests/runtime/testing/random_networks.h"

namespace eddy::testing {
namespace {

using ::testing::IsEmpty;
using Ints = std::vector<int64_t>;

Tensor random_image(const Dims& dims, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(*dims.count()));
  for (float& value : values) value = random.uniform(-1.0f, 1.0f);
  return Tensor::of<float>(dims, std::span<const float>(values));
}

NamedTensors run_twice(Session& session, const Tensor& x) {
  NamedTensors outputs;
  for (int i = 0; i < 2; ++i) {  // a second run finds what the first has left
    auto made = session.run({{"x", x}});
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    if (!made.is_ok()) return {};
    outputs = std::move(*made);
  }
  return outputs;
}

void expect_near(const NamedTensors& found, const NamedTensors& expected, float tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t o = 0; o < found.size(); ++o) {
    const auto is = found[o].second.values<float>(), wanted = expected[o].second.values<float>();
    ASSERT_EQ(is.size(), wanted.size());
    for (size_t i = 0; i < is.size(); ++i) {
      ASSERT_NEAR(is[i], wanted[i], tolerance * (1 + std::fabs(wanted[i])))
          << "output " << o << " element " << i;
    }
  }
}

// Nodes of that operator, in any region.
int count_of(const Graph& graph, std::string_view op) {
  int count = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    count += node.kind == NodeKind::kExec && node.op->name == op ? 1 : 0;
  }
  return count;
}

struct Ran {
  NamedTensors outputs;
  uint64_t num_kernels = 0;  // of the second run
  int num_turned = 0, num_plain = 0, num_last = 0;
};

Ran run_on_gpu(const Build& build, const Tensor& x, bool channels_last, bool fuses = true,
               bool has_libraries = true) {
  FakeLibraryGpu gpu(7, has_libraries, {.fuses = fuses, .channels_last = channels_last});
  Ran ran;
  {
    auto session = Session::create(library(), graph_of(build), gpu.options());
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    if (!session.is_ok()) return ran;
    static_cast<void>((*session)->run({{"x", x}}));
    const FakeCudaCounts before = gpu.cuda().counts();
    auto outputs = (*session)->run({{"x", x}});
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    if (!outputs.is_ok()) return ran;
    for (const auto& [name, tensor] : *outputs) {
      ran.outputs.emplace_back(name, Tensor::copy_of(tensor.view()));
    }
    ran.num_kernels = (gpu.cuda().counts() - before).kernels;
    const Graph& graph = (*session)->graph();
    ran.num_turned = count_of(graph, "Transpose");
    ran.num_plain = count_of(graph, "Conv") + count_of(graph, "ConvRelu");
    ran.num_last = count_of(graph, "ChannelsLastConv");
    EXPECT_EQ(gpu.cudnn().num_channels_last() > 0, ran.num_last > 0);
  }
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  EXPECT_THAT(gpu.cudnn().violations(), IsEmpty());
  EXPECT_EQ(gpu.leaks(), "");
  return ran;
}

TEST(ChannelsLast, RandomNetworksGiveTheSameWithinRounding) {
  const Dims dims = {1, 3, 9, 10};
  int num_convolutions = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Build build = [&](GraphBuilder& b) { build_random_network(b, seed, dims); };
    const Tensor x = random_image(dims, seed + 1000);
    auto cpu = Session::create(library(), graph_of(build), {.blocks_channels = false});
    ASSERT_TRUE(cpu.is_ok()) << cpu.status().to_string();
    const NamedTensors expected = run_twice(**cpu, x);
    const Ran ran = run_on_gpu(build, x, true, seed % 2 == 0);
    expect_near(ran.outputs, expected, 2e-3f);
    EXPECT_EQ(ran.num_plain, 0);
    num_convolutions += ran.num_last;
  }
  EXPECT_GT(num_convolutions, 100);
}

// The weights of a network; no two alike.
class Weights {
 public:
  explicit Weights(GraphBuilder& b) : b_(b) {}
  Value of(const Dims& dims) {
    std::vector<float> values(static_cast<size_t>(*dims.count()));
    for (float& value : values) value = random_.uniform(-0.4f, 0.4f);
    return b_.tensor<float>(dims, std::span<const float>(values));
  }

 private:
  GraphBuilder& b_;
  Random random_{11};
};

// A stem, two bottlenecks, of which one is narrowed around, and a classifier, as in ResNet-50.
void small_resnet(GraphBuilder& b) {
  Weights weights(b);
  const auto conv = [&](Value x, int64_t from, int64_t to, int64_t window, int64_t stride) {
    const int64_t pad = window / 2;
    return b.op("Conv", {x, weights.of({to, from, window, window}), weights.of({to})},
                {{"pads", Ints{pad, pad, pad, pad}}, {"strides", Ints{stride, stride}}});
  };
  const auto relu = [&](Value x) { return b.op("Relu", {x}); };
  Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 3, 16, 16}));
  x = b.op("MaxPool", {relu(conv(x, 3, 8, 7, 2))},
           {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  for (const int64_t from : {8, 16}) {
    const Value inner = relu(conv(relu(conv(x, from, 4, 1, 1)), 4, 4, 3, 1));
    const Value around = from == 8 ? conv(x, 8, 16, 1, 1) : x;
    x = relu(b.op("Add", {conv(inner, 4, 16, 1, 1), around}));
  }
  const Value flat = b.op("Flatten", {b.op("GlobalAveragePool", {x})});
  b.output("y", b.op("Gemm", {flat, weights.of({10, 16}), weights.of({10})}, {{"transB", 1}}));
}

TEST(ChannelsLast, AResidualNetworkIsTurnedOverOnceAndLaunchesNoMoreElse) {
  const Tensor x = random_image({1, 3, 16, 16}, 5);
  const Ran first = run_on_gpu(small_resnet, x, false), last = run_on_gpu(small_resnet, x, true);
  expect_near(last.outputs, first.outputs, 1e-4f);
  EXPECT_EQ(first.num_turned, 0);
  EXPECT_EQ(first.num_plain, 8);
  EXPECT_EQ(last.num_plain, 0);
  EXPECT_EQ(last.num_last, 8);
  EXPECT_EQ(last.num_turned, 1) << "where it comes in; a mean of all has one position";
  EXPECT_LE(last.num_kernels, first.num_kernels + 1) << "which is where it is turned over";
}

// Activations that are no Relu, gates and joins: none of them is a border.
void gated(GraphBuilder& b) {
  Weights weights(b);
  Value x = b.input("x", tensor_type(ElementType::kFloat, {2, 3, 8, 8}));
  const auto conv = [&](Value image, int64_t from, int64_t to, int64_t window) {
    const int64_t pad = window / 2;
    return b.op("Conv", {image, weights.of({to, from, window, window}), weights.of({to})},
                {{"pads", Ints{pad, pad, pad, pad}}});
  };
  const auto swish = [&](Value image) { return b.op("Mul", {image, b.op("Sigmoid", {image})}); };
  x = swish(conv(x, 3, 8, 3));
  const Value scale = b.op("Sigmoid", {conv(b.op("GlobalAveragePool", {x}), 8, 8, 1)});
  x = b.op("Mul", {x, scale});
  const Value clipped = b.op("Clip", {conv(x, 8, 5, 1), b.scalar(0.0f), b.scalar(6.0f)});
  const Value mean = b.op("AveragePool", {x}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints(4, 1)}});
  x = b.op("Concat", {clipped, mean}, {{"axis", 1}});
  b.output("y", b.op("Add", {conv(x, 13, 3, 3), b.scalar(0.5f)}));
}

TEST(ChannelsLast, ActivationsGatesAndJoinsAreNoBorders) {
  const Tensor x = random_image({2, 3, 8, 8}, 6);
  const Ran first = run_on_gpu(gated, x, false), last = run_on_gpu(gated, x, true);
  expect_near(last.outputs, first.outputs, 1e-4f);
  EXPECT_EQ(last.num_last, 4);
  EXPECT_EQ(last.num_turned, 2) << "where it comes in, and where it goes out";
  EXPECT_LE(last.num_kernels, first.num_kernels + 2);
}

void half_convolutions(GraphBuilder& b) {
  Weights weights(b);
  const auto cast = [&](Value v, ElementType to) {
    return b.op("Cast", {v}, {{"to", static_cast<int64_t>(to)}});
  };
  const auto conv = [&](Value x, int64_t from, int64_t to) {
    return b.op("Conv",
                {x, cast(weights.of({to, from, 3, 3}), ElementType::kFloat16),
                 cast(weights.of({to}), ElementType::kFloat16)},
                {{"pads", Ints{1, 1, 1, 1}}});
  };
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 3, 6, 6}));
  const Value inner = b.op("Relu", {conv(cast(x, ElementType::kFloat16), 3, 8)});
  b.output("y", cast(conv(inner, 8, 4), ElementType::kFloat));
}

TEST(ChannelsLast, SixteenBitsToo) {
  const Tensor x = random_image({1, 3, 6, 6}, 7);
  const Ran first = run_on_gpu(half_convolutions, x, false);
  const Ran last = run_on_gpu(half_convolutions, x, true);
  expect_near(last.outputs, first.outputs, 2e-2f);
  EXPECT_EQ(last.num_last, 2);
}

TEST(ChannelsLast, WithoutTheLibraryImagesLieAsTheyCome) {
  const Tensor x = random_image({1, 3, 16, 16}, 5);
  const Ran ran = run_on_gpu(small_resnet, x, true, true, false);
  EXPECT_EQ(ran.num_last, 0);
  EXPECT_EQ(ran.num_plain, 8);
}

}  // namespace
}  // namespace eddy::testing
