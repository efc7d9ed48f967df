// Claim: what a GPU is given to do, counted on a fake driver with fakes of the libraries: kernels,
// driver calls and copies of a round of each kind of loop, and of a run of ResNet-50, Inception-v3
// and an encoder like BERT's, whole networks at their published depth. Each number is at most the
// one stated here, so none grows unseen; the table that is printed is what
// tests/bench/results/launches_*.md keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <functional>

#include "tests/runtime/cuda/counted_nets.h"
#include "tests/runtime/cuda/fake_library_gpu.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tools/gpu/control_cases.h"
#include "tools/gpu/host_difference.h"

namespace eddy::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// The shorter run may have taken one more, by when it was looked at: differences have a sign.
double share(uint64_t count, double per) {
  return static_cast<double>(static_cast<int64_t>(count)) / per;
}

// A call of a library is one kernel here; a library may take more for it.
void print(const char* name, const char* way, double per, const FakeCudaCounts& counts) {
  const auto each = [&](uint64_t count) { return share(count, per); };
  std::printf("| %s | %s | %.4g | %.4g | %.4g | %.4g | %.4g |\n", name, way, each(counts.kernels),
              each(counts.calls), each(counts.word_writes), each(counts.copies),
              each(counts.copied_bytes));
}

// ---------------------------------------------------------------- loops

struct LoopLimit {
  const char* name;
  std::function<GpuCase(int64_t num_trips)> make;
  LoopChoice::Way way;
  double most_kernels;  // a round
  double most_calls;    // of the driver, a round
  // Streams of the host write each other words: 1 to 11 a round, by how far each is when the
  // host looks, which is the threads' timing. They are not counted then.
  bool has_words = false;
};

class LoopCounts : public ::testing::TestWithParam<LoopLimit> {};

// What a run of so many rounds takes once its loop is recorded; it agrees with the CPU.
FakeCudaCounts counts_of(const LoopLimit& limit, int64_t num_trips) {
  const GpuCase one = limit.make(num_trips);
  FakeLibraryGpu gpu(7, true, {.fuses = true});
  Library library;
  EXPECT_TRUE(add_predicate(library).is_ok());
  FakeCudaCounts counts;
  {
    auto cpu = Session::create(library, *one.build(library.ops()), {});
    SessionOptions options = gpu.options();
    options.only_loop_way = limit.way;
    if (limit.way == LoopChoice::Way::kHost) options.loops = Loops::kHost;
    auto session = Session::create(library, *one.build(library.ops()), options);
    EXPECT_TRUE(cpu.is_ok() && session.is_ok()) << session.status().to_string();
    if (!cpu.is_ok() || !session.is_ok()) return {};
    FakeCudaCounts before;
    for (int repeat = 0; repeat < 4; ++repeat) {
      before = gpu.cuda().counts();
      const auto outputs = (*session)->run(one.inputs);
      EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      if (!outputs.is_ok()) return {};
      EXPECT_EQ(host_difference(*(*cpu)->run(one.inputs), *outputs, {}), "");
    }
    counts = gpu.cuda().counts() - before;
  }
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  return counts;
}

TEST_P(LoopCounts, ARoundIsNoMoreThanStated) {
  const LoopLimit& limit = GetParam();
  constexpr int64_t kFew = 40, kMany = 140;
  const FakeCudaCounts round = counts_of(limit, kMany) - counts_of(limit, kFew);
  const double num_rounds = kMany - kFew;
  const char* const ways[] = {"one kernel", "recording", "unrolled", "host"};
  print(limit.name, ways[static_cast<size_t>(limit.way)], num_rounds, round);
  EXPECT_LE(share(round.kernels, num_rounds), limit.most_kernels + 0.02);
  const uint64_t calls = round.calls - (limit.has_words ? round.word_writes : 0);
  EXPECT_LE(share(calls, num_rounds), limit.most_calls + 0.02);
  EXPECT_EQ(round.copies, 0u) << "no copy engine in a round";
}

// A layer of attention of two heads that goes on with what it made, and whose caches grow by a row
// a round; it stops before its limit.
GpuCase growing_caches(int64_t num_trips) {
  constexpr int64_t kHeads = 2, kWidth = 8, kAll = kHeads * kWidth;
  const auto build = [=](const OpTable& ops) {
    GraphBuilder b(ops);
    const auto reshape = [&](Value x, std::initializer_list<int64_t> dims) {
      return b.op("Reshape", {x, b.int64s(dims)});
    };
    std::vector<float> numbers(3 * kAll * kAll);
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = 0.0625f * static_cast<float>(i % 13) - 0.375f;
    }
    const Value weight = b.tensor<float>({kAll, 3 * kAll}, std::span<const float>(numbers));
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, kAll}));
    const Value empty = b.tensor<float>({1, kHeads, 0, kWidth}, {});
    const auto results = b.while_loop(
        {.name = "decode",
         .initial = {x, empty, empty, b.scalar(0.0f)},
         .trip_limit = b.scalar(num_trips + 7)},
        [&](Value, ValueSpan v) {
          const Value goes_on = b.op("Less", {v[3], b.scalar(static_cast<float>(num_trips))});
          return WhileTest{goes_on, {v.begin(), v.end()}};
        },
        [&](Value, ValueSpan v) {
          const Value whole[] = {b.op("MatMul", {v[0], weight}), b.int64s({kAll, kAll, kAll})};
          const auto parts = b.ops("Split", whole, {{"axis", -1}}, {.num_outputs = 3});
          const Value keys = b.op("Concat", {v[1], reshape(parts[1], {1, kHeads, 1, kWidth})},
                                  {{"axis", int64_t{2}}});
          const Value values = b.op("Concat", {v[2], reshape(parts[2], {1, kHeads, 1, kWidth})},
                                    {{"axis", int64_t{2}}});
          const Value scores = b.op("MatMul", {keys, reshape(parts[0], {1, kHeads, kWidth, 1})});
          const Value shares =
              b.op("Softmax", {b.op("Mul", {scores, b.scalar(0.35f)})}, {{"axis", int64_t{2}}});
          const Value mixed = b.op(
              "MatMul",
              {b.op("Transpose", {shares}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}}), values});
          return std::vector<Value>{b.op("Tanh", {reshape(mixed, {1, kAll})}), keys, values,
                                    b.op("Add", {v[3], b.scalar(1.0f)})};
        });
    b.output("x", results[0]);
    // Of one size after any number of rounds, but with their length in it.
    b.output("keys", b.op("ReduceMean", {results[1]}, {{"keepdims", int64_t{0}}}));
    b.output("values", b.op("ReduceMean", {results[2]}, {{"keepdims", int64_t{0}}}));
    return b.finish();
  };
  std::vector<float> first(kAll);
  for (size_t i = 0; i < first.size(); ++i) first[i] = 0.25f * static_cast<float>(i % 7) - 0.75f;
  GpuCase one;
  one.build = build;
  one.inputs = {{"x", Tensor::of<float>({1, kAll}, std::span<const float>(first))}};
  return one;
}

const auto scalar_while = [](int64_t trips) { return counters("scalar while", 1, trips); };
const auto matmul_tanh = [](int64_t trips) { return matmuls("matmul", 1, trips, 0, 8); };
// Merged into one: the products, and two launches of all that is behind them.
const auto eight_matmuls = [](int64_t trips) { return matmuls("eight", 8, trips, trips / 10, 8); };
const auto nested_while = [](int64_t trips) { return nested(trips, 4); };
const auto four_way_case = [](int64_t trips) { return with_case(trips); };
const auto host_one = [](int64_t trips) { return host_decides(1, trips); };
using Way = LoopChoice::Way;

INSTANTIATE_TEST_SUITE_P(
    Loops, LoopCounts,
    ::testing::Values(LoopLimit{"scalar while", scalar_while, Way::kKernel, 0, 0},
                      LoopLimit{"scalar while", scalar_while, Way::kRecording, 1, 0},
                      LoopLimit{"scalar while", scalar_while, Way::kHost, 3, 1},
                      // Rounds of fewer than three kernels are filled (plain_order.h).
                      LoopLimit{"matmul, tanh", matmul_tanh, Way::kRecording, 3, 0},
                      LoopLimit{"eight such", eight_matmuls, Way::kRecording, 10, 0},
                      LoopLimit{"nested, 4 inside", nested_while, Way::kRecording, 9, 0},
                      LoopLimit{"growing caches", growing_caches, Way::kRecording, 11, 0},
                      LoopLimit{"growing caches", growing_caches, Way::kHost, 13, 10.5, true},
                      LoopLimit{"4-way case", four_way_case, Way::kRecording, 4, 0},
                      LoopLimit{"host predicate, 1 kernel", host_one, Way::kHost, 2, 1}));

// ---------------------------------------------------------------- elements of a round

// The kernels of a round of the loop, recorded; its outputs are the CPU's.
std::vector<std::string> round_of(const Build& build, const NamedTensors& inputs) {
  FakeLibraryGpu gpu(7, true, {.fuses = true});
  std::vector<std::string> names;
  {
    auto cpu = Session::create(library(), graph_of(build), {});
    SessionOptions options = gpu.options();
    options.only_loop_way = LoopChoice::Way::kRecording;
    auto session = Session::create(library(), graph_of(build), options);
    EXPECT_TRUE(cpu.is_ok() && session.is_ok()) << session.status().to_string();
    if (!cpu.is_ok() || !session.is_ok()) return {};
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto outputs = (*session)->run(inputs);
      EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      if (!outputs.is_ok()) return {};
      EXPECT_EQ(host_difference(*(*cpu)->run(inputs), *outputs, {}), "");
    }
    names = gpu.cuda().last_round();
  }
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  return names;
}

using Next = std::function<std::vector<Value>(GraphBuilder&, ValueSpan)>;

// Four by four numbers, x and y, and a counter that decides; what `next` makes of x and y is the
// next x and y.
Build squares(const Next& next) {
  return [next](GraphBuilder& b) {
    const ValueType square = tensor_type(ElementType::kFloat, {4, 4});
    const Value x = b.input("x", square), y = b.input("y", square);
    const auto results = b.while_loop(
        {.name = "squares", .initial = {x, y, b.scalar(0.0f)}},
        [&](Value, ValueSpan v) {
          return WhileTest{b.op("Less", {v[2], b.scalar(5.0f)}), {v[0], v[1], v[2]}};
        },
        [&](Value, ValueSpan v) {
          std::vector<Value> made = next(b, v.first(2));
          made.push_back(b.op("Add", {v[2], b.scalar(1.0f)}));
          return made;
        });
    b.output("x_last", results[0]);
    b.output("y_last", results[1]);
  };
}
NamedTensors square_inputs() {
  std::vector<float> x(16), y(16);
  for (size_t i = 0; i < 16; ++i) {
    x[i] = 0.25f * static_cast<float>(i % 5) - 0.5f;
    y[i] = 0.125f * static_cast<float>(i % 7);
  }
  return {{"x", Tensor::of<float>({4, 4}, x)}, {"y", Tensor::of<float>({4, 4}, y)}};
}

// Of either iteration that a round holds.
TEST(ElementsOfARound, AProductAndItsActivationAreTwoKernels) {
  const auto next = [](GraphBuilder& b, ValueSpan v) {
    return std::vector<Value>{b.op("Tanh", {b.op("MatMul", {v[0], v[1]})}), v[1]};
  };
  const auto names = round_of(squares(next), square_inputs());
  EXPECT_THAT(names, ElementsAre("eddy_MatMulRows_f32", StartsWith("eddy_loop_copy"),
                                 "eddy_MatMulRows_f32", StartsWith("eddy_loop_copy")));
}

// Both are overwritten element by element, the second one with what it was added to, by half.
TEST(ElementsOfARound, WhatIsMadeOfItsOldValueElementByElementIsOverwritten) {
  const auto next = [](GraphBuilder& b, ValueSpan v) {
    return std::vector<Value>{b.op("Relu", {v[0]}), b.op("Mul", {v[1], b.scalar(0.5f)})};
  };
  // Three iterations, since a round of one kernel has too few.
  EXPECT_THAT(round_of(squares(next), square_inputs()),
              AllOf(SizeIs(3), Each(StartsWith("eddy_loop_copy"))));
}

// x is still read when y's new value comes first, and the other way round.
TEST(ElementsOfARound, AnOldValueIsReadBeforeItIsOverwritten) {
  for (const bool is_x_first : {true, false}) {
    const auto next = [&](GraphBuilder& b, ValueSpan v) {
      std::vector<Value> made(2);
      for (const size_t k : is_x_first ? std::array{0, 1} : std::array{1, 0}) {
        made[k] = k == 0 ? b.op("Sub", {v[0], v[1]}) : b.op("Mul", {v[0], b.scalar(0.5f)});
      }
      return made;
    };
    const auto names = round_of(squares(next), square_inputs());
    ASSERT_FALSE(names.empty());
    EXPECT_THAT(names.back(), StartsWith("eddy_loop_copy"));
  }
}

// Values that change places are aside while they do, and both are needed after x is made.
TEST(ElementsOfARound, ValuesThatChangePlacesAreNotOverwrittenEarly) {
  const auto swap = [](GraphBuilder& b, ValueSpan v) {
    return std::vector<Value>{b.op("Tanh", {v[1]}), v[0]};
  };
  EXPECT_FALSE(round_of(squares(swap), square_inputs()).empty());
  const auto view = [](GraphBuilder& b, ValueSpan v) {
    const Value flat = b.op("Reshape", {v[0], b.tensor<int64_t>({1}, {16})});
    const Value sum = b.op("ReduceSum", {flat}, {{"keepdims", int64_t{0}}});
    const Value x = b.op("Add", {v[0], b.scalar(0.25f)});
    return std::vector<Value>{x, b.op("Sub", {v[1], sum})};
  };
  EXPECT_FALSE(round_of(squares(view), square_inputs()).empty());
}

// A cell's two products as one, one kernel of gates that makes both states, and what joins the
// input to the state: the gates are read where the product left them.
TEST(ElementsOfARound, AnLstmsGatesAreNotSplit) {
  const Build build = [](GraphBuilder& b) {
    constexpr int64_t kHidden = 16;
    const ValueType state = tensor_type(ElementType::kFloat, {4, kHidden});
    const Value x = b.input("x", state);
    std::vector<float> numbers(2 * kHidden * 4 * kHidden);
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = 0.125f * static_cast<float>(i % 13) - 0.75f;
    }
    const std::span<const float> all(numbers);
    const Value weight = b.tensor<float>({2 * kHidden, 4 * kHidden}, all);
    const Value bias = b.tensor<float>({4 * kHidden}, all.first(4 * kHidden));
    const auto results = b.while_loop(
        {.name = "cells", .initial = {b.input("h", state), b.input("c", state), b.scalar(0.0f)}},
        [&](Value, ValueSpan v) {
          return WhileTest{b.op("Less", {v[2], b.scalar(5.0f)}), {v[0], v[1], v[2]}};
        },
        [&](Value, ValueSpan v) {
          const Value joined = b.op("Concat", {x, v[0]}, {{"axis", int64_t{1}}});
          const Value product = b.op("Add", {b.op("MatMul", {joined, weight}), bias});
          const Value sizes = b.tensor<int64_t>({4}, {kHidden, kHidden, kHidden, kHidden});
          const auto gates = b.ops("Split", std::vector<Value>{product, sizes},
                                   {{"axis", int64_t{1}}}, {.num_outputs = 4});
          const Value kept = b.op("Mul", {b.op("Sigmoid", {gates[2]}), v[1]});
          const Value added = b.op("Mul", {b.op("Sigmoid", {gates[0]}), b.op("Tanh", {gates[3]})});
          const Value c = b.op("Add", {kept, added});
          const Value h = b.op("Mul", {b.op("Sigmoid", {gates[1]}), b.op("Tanh", {c})});
          return std::vector<Value>{h, c, b.op("Add", {v[2], b.scalar(1.0f)})};
        });
    b.output("h_last", results[0]);
    b.output("c_last", results[1]);
  };
  NamedTensors inputs;
  for (const auto& [name, scale] : {std::pair{"x", 0.25f}, {"h", 0.5f}, {"c", -0.125f}}) {
    std::vector<float> numbers(64);
    for (size_t i = 0; i < 64; ++i) numbers[i] = scale * static_cast<float>(i % 9) - 0.5f;
    inputs.emplace_back(name, Tensor::of<float>({4, 16}, std::span<const float>(numbers)));
  }
  const auto names = round_of(build, inputs);
  EXPECT_THAT(names, ::testing::Not(::testing::Contains(::testing::HasSubstr("Split"))));
  EXPECT_LE(names.size(), 4u) << "and what the loop moves, counts and tests";
}

// ---------------------------------------------------------------- networks

struct NetLimit {
  const char* name;
  Build build;
  std::vector<int64_t> dims;
  uint64_t most_kernels;
  uint64_t output_bytes;
  bool channels_last = false;
};

class NetCounts : public ::testing::TestWithParam<NetLimit> {};

TEST_P(NetCounts, ARunLaunchesNoMoreThanStated) {
  const NetLimit& limit = GetParam();
  FakeLibraryGpu gpu(7, true,
                     {.fuses = true, .runs_kernels = false, .channels_last = limit.channels_last});
  const Tensor x = Tensor::zeros(ElementType::kFloat, Dims(limit.dims));
  {
    auto session = Session::create(library(), graph_of(limit.build), gpu.options());
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    FakeCudaCounts before;
    for (int repeat = 0; repeat < 3; ++repeat) {
      before = gpu.cuda().counts();
      const auto outputs = (*session)->run({{"x", x}});
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    }
    const FakeCudaCounts run = gpu.cuda().counts() - before;
    print(limit.name, limit.channels_last ? "channels last" : "a run", 1, run);
    EXPECT_LE(run.kernels, limit.most_kernels) << (*session)->placement_text();
    EXPECT_LE(run.copied_bytes, x.view().size_bytes() + limit.output_bytes)
        << "its input and its output, once each";
  }
  EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
}

// A convolution of one group, its bias, a residual and a bound; a second one without a reader.
void residual(GraphBuilder& b) {
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 2, 5, 5}));
  const auto conv = [&](Value from, float first) {
    std::vector<float> w(36);
    for (size_t i = 0; i < w.size(); ++i) w[i] = first + static_cast<float>(i % 5) - 2;
    const Value weights = b.tensor<float>({2, 2, 3, 3}, std::span<const float>(w));
    return b.op("Conv", {from, weights, b.tensor<float>({2}, {first, -3.5f})},
                {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  };
  const Value bounded = b.op("Relu", {b.op("Add", {conv(x, 0.5f), x})});
  b.output("y", conv(bounded, 0.25f));
  b.output("bounded", bounded);
}

TEST(FoldedConvolution, ABiasAResidualAndAReluArePartOfItsCall) {
  std::vector<float> numbers(50);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 7) - 3;
  const NamedTensors inputs = {
      {"x", Tensor::of<float>({1, 2, 5, 5}, std::span<const float>(numbers))}};
  auto cpu = Session::create(library(), graph_of(residual), {});
  ASSERT_TRUE(cpu.is_ok()) << cpu.status().to_string();
  uint64_t num_kernels[2] = {};
  for (const bool fuses : {false, true}) {
    FakeLibraryGpu gpu(7, true, {.fuses = fuses});
    {
      auto session = Session::create(library(), graph_of(residual), gpu.options());
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      for (int repeat = 0; repeat < 3; ++repeat) {
        const FakeCudaCounts before = gpu.cuda().counts();
        const auto outputs = (*session)->run(inputs);
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        EXPECT_EQ(host_difference(*(*cpu)->run(inputs), *outputs, {}), "");
        num_kernels[fuses ? 1 : 0] = (gpu.cuda().counts() - before).kernels;
      }
    }
    EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  }
  // Two convolutions with their biases, an Add and a Relu; and what carries input and outputs.
  EXPECT_EQ(num_kernels[0], num_kernels[1] + 2);
}

template <int kLayers>
void packed(GraphBuilder& b) {
  packed_encoder(b, kLayers);
}
template <int kLayers>
void sliced(GraphBuilder& b) {
  sliced_encoder(b, kLayers);
}

TEST(FoldedAttention, HeadsThatAreReadWhereTheirProductLeftThemGiveTheCpusValues) {
  std::vector<float> numbers(size_t{128} * 96);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = 0.25f * static_cast<float>((5 * i + i / 96) % 19) - 2;
  }
  const NamedTensors inputs = {
      {"x", Tensor::of<float>({1, 128, 96}, std::span<const float>(numbers))}};
  for (const Build& build : {Build(packed<1>), Build(sliced<1>)}) {
    auto cpu = Session::create(library(), graph_of(build), {});
    ASSERT_TRUE(cpu.is_ok()) << cpu.status().to_string();
    FakeLibraryGpu gpu(7, true, {.fuses = true});
    {
      auto session = Session::create(library(), graph_of(build), gpu.options());
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      const auto outputs = (*session)->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ(host_difference(*(*cpu)->run(inputs), *outputs, {}), "");
    }
    EXPECT_THAT(gpu.cuda().violations(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Nets, NetCounts,
    ::testing::Values(NetLimit{"ResNet-50", resnet50, {1, 3, 224, 224}, 61, 4000},
                      NetLimit{"Inception-v3", inception_v3, {1, 3, 299, 299}, 125, 4000},
                      NetLimit{"ResNet-50", resnet50, {1, 3, 224, 224}, 58, 4000, true},
                      NetLimit{"Inception-v3", inception_v3, {1, 3, 299, 299}, 126, 4000, true},
                      NetLimit{"BERT-like", bert_like, {1, 128, 96}, 156, 49152},
                      NetLimit{"encoder, PyTorch 2", packed<12>, {1, 128, 96}, 132, 49152},
                      NetLimit{"encoder, PyTorch 1", sliced<12>, {1, 128, 96}, 132, 49152}));

}  // namespace
}  // namespace eddy::testing
