// Claim: models as programs export them, with shapes that they compute themselves, give each
// request of a batch what a run of its own gives, within rounding.
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/batching/batching_session.h"

namespace eddy {
namespace {

using Build = void (*)(GraphBuilder&, Random&);

Value weights(GraphBuilder& b, Random& random, const Dims& dims) {
  std::vector<float> values(static_cast<size_t>(*dims.count()));
  for (float& value : values) value = random.uniform(-0.5f, 0.5f);
  return b.tensor<float>(dims, values);
}
Value entry(GraphBuilder& b, Value shape, int64_t i) {
  return b.op("Gather", {shape, b.int64s({i})});
}
Value list(GraphBuilder& b, std::initializer_list<Value> values) {
  return b.op("Concat", values, {{"axis", int64_t{0}}});
}
Value turned(GraphBuilder& b, Value x, std::vector<int64_t> perm) {
  return b.op("Transpose", {x}, {{"perm", std::move(perm)}});
}

// Convolutions, a pool, and a classifier.
void build_images(GraphBuilder& b, Random& random) {
  Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("N"), 3, 16, 16}));
  x = b.op("Conv", {x, weights(b, random, {8, 3, 3, 3}), weights(b, random, {8})});
  x = b.op("MaxPool", {b.op("Relu", {x})}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  x = b.op("Conv", {x, weights(b, random, {16, 8, 3, 3})});
  x = b.op("Flatten", {b.op("GlobalAveragePool", {x})});
  b.output("y", b.op("Softmax", {b.op("Gemm", {x, weights(b, random, {16, 10})})}));
}

// One head's width is 4, of 16; a mask is the same for all samples.
void build_attention(GraphBuilder& b, Random& random) {
  const Value x =
      b.input("x", tensor_type(ElementType::kFloat, {b.symbol("N"), b.symbol("T"), 16}));
  const Value mask = b.input("mask", tensor_type(ElementType::kFloat, {b.symbol("T")}));
  const Value shape = b.op("Shape", {x});
  const Value heads = list(b, {entry(b, shape, 0), entry(b, shape, 1), b.int64s({4, -1})});
  const auto project = [&] {
    const Value wide = b.op("MatMul", {x, weights(b, random, {16, 16})});
    return turned(b, b.op("Reshape", {wide, heads}), {0, 2, 1, 3});
  };
  const Value q = project(), k = turned(b, project(), {0, 1, 3, 2}), v = project();
  const Value scores = b.op("Softmax", {b.op("Add", {b.op("MatMul", {q, k}), mask})});
  const Value joined = turned(b, b.op("MatMul", {scores, v}), {0, 2, 1, 3});
  const Value back = list(b, {entry(b, shape, 0), entry(b, shape, 1), b.int64s({16})});
  const Value y = b.op("Add", {b.op("Reshape", {joined, back}), x});
  b.output("y",
           b.op("LayerNormalization", {y, weights(b, random, {16}), weights(b, random, {16})}));
}

// Words, a recurrent layer whose state the program makes, and its last output.
void build_words(GraphBuilder& b, Random& random) {
  const Value words =
      b.input("x", tensor_type(ElementType::kInt64, {b.symbol("N"), b.symbol("T")}));
  const Value table = weights(b, random, {10, 6});
  const Value x = turned(b, b.op("Gather", {table, words}), {1, 0, 2});
  const Value size = entry(b, b.op("Shape", {words}), 0);
  const Value state = b.op("ConstantOfShape", {list(b, {b.int64s({1}), size, b.int64s({5})})});
  const auto made = b.ops(
      "LSTM",
      std::vector<Value>{
          x, weights(b, random, {1, 20, 6}), weights(b, random, {1, 20, 5}), {}, {}, state, state},
      {{"hidden_size", int64_t{5}}}, {.num_outputs = 3});
  b.output("y", b.op("Squeeze", {made[1], b.int64s({0})}));
}

// A loop and a branch that inputs for all samples decide.
void build_control(GraphBuilder& b, Random& random) {
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("N"), 8}));
  const Value steps = b.input("steps", tensor_type(ElementType::kInt64, {}));
  const Value w = weights(b, random, {8, 8});
  const auto settled = b.while_loop(
      {.name = "settle", .initial = {b.op("Sub", {x, x})}, .num_scan_outputs = 1},
      [&](Value i, ValueSpan c) {
        return WhileTest{b.op("Less", {i, steps}), {c[0]}};
      },
      [&](Value, ValueSpan c) {
        const Value next = b.op("Tanh", {b.op("Add", {b.op("MatMul", {c[0], w}), x})});
        return std::vector<Value>{next, next};
      });
  const Value is_long = b.op("Greater", {steps, b.scalar<int64_t>(2)});
  b.output("y", b.if_else(
                    is_long, [&] { return std::vector<Value>{b.op("Neg", {settled[0]})}; },
                    [&] { return std::vector<Value>{b.op("Exp", {settled[0]})}; })[0]);
  b.output("rows", settled[1]);
}

struct Model {
  const char* name;
  Build build;
  // Of the request: inputs for so many samples.
  NamedTensors (*inputs)(Random&, int64_t);
};

Tensor floats(Random& random, const Dims& dims) {
  std::vector<float> values(static_cast<size_t>(*dims.count()));
  for (float& value : values) value = random.uniform(-1.0f, 1.0f);
  return Tensor::of<float>(dims, std::span<const float>(values));
}

const Model kModels[] = {
    {"images", build_images,
     [](Random& random, int64_t n) {
       return NamedTensors{{"x", floats(random, {n, 3, 16, 16})}};
     }},
    {"attention", build_attention,
     [](Random& random, int64_t n) {
       const auto length = static_cast<int64_t>(3 + random.below(2));
       std::vector<float> mask(static_cast<size_t>(length), 0.0f);
       mask.back() = -3.0f;
       return NamedTensors{{"x", floats(random, {n, length, 16})},
                           {"mask", Tensor::of<float>({length}, std::span<const float>(mask))}};
     }},
    {"words", build_words,
     [](Random& random, int64_t n) {
       const auto length = static_cast<int64_t>(2 + random.below(2));
       std::vector<int64_t> words(static_cast<size_t>(n * length));
       for (int64_t& word : words) word = static_cast<int64_t>(random.below(10));
       return NamedTensors{
           {"x", Tensor::of<int64_t>({n, length}, std::span<const int64_t>(words))}};
     }},
    {"control", build_control,
     [](Random& random, int64_t n) {
       return NamedTensors{{"x", floats(random, {n, 8})},
                           {"steps", Tensor::scalar(static_cast<int64_t>(random.below(5)))}};
     }},
};

void expect_close(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.dims(), expected.dims());
  const auto a = actual.values<float>(), e = expected.values<float>();
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(std::abs(a[i] - e[i]), 1e-5f + 1e-5f * std::abs(e[i])) << "element " << i;
  }
}

class BatchedModelsTest : public ::testing::TestWithParam<Model> {};

TEST_P(BatchedModelsTest, EachRequestGetsItsOwn) {
  constexpr uint64_t kSeed = 5;
  constexpr int kThreads = 8, kRequests = 12;
  Random random(kSeed);
  const Library library;
  GraphBuilder b(library.ops());
  b.set_opset("", 17);
  GetParam().build(b, random);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  std::atomic<int> num_shared{0};
  Batching batching{
      .dimension = "N", .max_samples = 16, .wait_limit = std::chrono::milliseconds(5)};
  batching.on_batch = [&](size_t num_requests, int64_t) { num_shared += num_requests > 1 ? 1 : 0; };
  auto session = BatchingSession::create(library, std::move(*graph), {.num_threads = 2}, batching);
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random own(100 + t);
      for (int i = 0; i < kRequests; ++i) {
        const NamedTensors inputs = GetParam().inputs(own, 1 + static_cast<int64_t>(own.below(3)));
        const auto alone = (*session)->session().run(inputs);
        const auto batched = (*session)->run(inputs);
        ASSERT_TRUE(alone.is_ok()) << alone.status().to_string();
        ASSERT_TRUE(batched.is_ok()) << batched.status().to_string();
        for (size_t o = 0; o < alone->size(); ++o) {
          expect_close((*batched)[o].second, (*alone)[o].second);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(num_shared, 0);
}

INSTANTIATE_TEST_SUITE_P(All, BatchedModelsTest, ::testing::ValuesIn(kModels),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace eddy
