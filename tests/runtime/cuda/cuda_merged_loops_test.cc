// Claim: more loops beside each other than devices may drive at once become one that the GPU drives
// (on a fake driver), and give the CPU's bits, for any trip counts and any order of ending; they
// end within an iteration when they are stopped. Loops with a predicate of the host, large loops,
// and loops that wait for each other stay apart, and where merging was tried the session reports
// why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/fake_fusing_gpu.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ValueType kSquare = tensor_type(ElementType::kFloat, {4, 4});

Tensor square(float first) {
  std::vector<float> values;
  for (int i = 0; i < 16; ++i) values.push_back(0.05f * (first + static_cast<float>(i % 5)));
  return Tensor::of<float>({4, 4}, values);
}

// Each squares its matrix so often, or until it is large; the number of its iteration is added.
Build squaring(int n) {
  return [n](GraphBuilder& b) {
    const Value x = b.input("x", kSquare);
    const Value bound = b.input("bound", tensor_type(ElementType::kFloat, {}));
    for (int i = 0; i < n; ++i) {
      const std::string name = "loop" + std::to_string(i);
      WhileOptions options{.name = name, .initial = {x}};
      if (i % 3 != 0) options.trip_limit = b.scalar(static_cast<int64_t>(7 * i % 11));
      const auto results = b.while_loop(
          options,
          [&](Value, ValueSpan v) {
            const Value most = b.op("ReduceMax", {v[0]}, {{"keepdims", int64_t{0}}});
            const Value stop = b.op("Add", {bound, b.scalar(static_cast<float>(i))});
            return WhileTest{b.op("Less", {most, stop}), {v[0]}};
          },
          [&](Value iteration, ValueSpan v) {
            const Value number = b.cast(iteration, ElementType::kFloat);
            const Value step = b.op("Tanh", {b.op("MatMul", {v[0], x})});
            return std::vector<Value>{b.op("Add", {step, i % 2 == 0 ? number : v[0]})};
          });
      b.output("y" + std::to_string(i), results[0]);
    }
  };
}

class CudaMergedLoopsTest : public CudaSessionFixture {
 protected:
  std::unique_ptr<Session> make(const Build& build, const CudaSessionSetup& setup = {}) {
    merges_loops_ = true;
    use_fake();
    return make_or_null(graph_of(build), setup);
  }
  void expect_cpus_bits(Session& session, const Build& build, const NamedTensors& inputs) {
    auto cpu = std::move(*Session::create(library_, graph_of(build), {}));
    const auto expected = cpu->run(inputs);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto outputs = session.run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ(check::difference(*expected, *outputs), "");
    }
  }
};

TEST_P(CudaMergedLoopsTest, EightLoopsAreOneThatTheDeviceDrives) {
  for (const Loops loops : {Loops::kAuto, Loops::kDevice}) {
    auto session = make(squaring(8), {.loops = loops});
    ASSERT_NE(session, nullptr);
    for (const float bound : {-9.0f, 0.5f, 3.0f}) {
      expect_cpus_bits(*session, squaring(8), {{"x", square(1)}, {"bound", Tensor::scalar(bound)}});
    }
    const std::vector<LoopReport> reports = session->loop_reports();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].path, "loop0+loop1+loop2+loop3+loop4+loop5+loop6+loop7");
    EXPECT_EQ(reports[0].driven, "device") << reports[0].reason;
    EXPECT_THAT(session->placement_text(),
                HasSubstr("8 loops beside each other, of which devices drive 4 at once (loop0, "
                          "loop1, loop2, loop3, loop4, loop5, loop6, loop7), are one\n"));
    session.reset();
  }
}

TEST_P(CudaMergedLoopsTest, AllWaysOfDrivingThemGiveTheSame) {
  auto session = make(squaring(6), {.measures_loops = true});
  ASSERT_NE(session, nullptr);
  for (int i = 0; i < 5; ++i) {
    expect_cpus_bits(*session, squaring(6), {{"x", square(2)}, {"bound", Tensor::scalar(1.0f)}});
  }
}

TEST_P(CudaMergedLoopsTest, AsManyAsDevicesMayDriveStayApart) {
  auto session = make(squaring(4));
  ASSERT_NE(session, nullptr);
  expect_cpus_bits(*session, squaring(4), {{"x", square(1)}, {"bound", Tensor::scalar(1.0f)}});
  EXPECT_EQ(session->loop_reports().size(), 4u);
  EXPECT_THAT(session->placement_text(), Not(HasSubstr("beside each other")));
}

TEST_P(CudaMergedLoopsTest, WhereTheHostDrivesAllLoopsNoneAreMerged) {
  auto session = make(squaring(8), {.loops = Loops::kHost});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->loop_reports().size(), 8u);
}

// Each begins with what the one before has left.
TEST_P(CudaMergedLoopsTest, LoopsThatWaitForEachOtherStayApart) {
  const Build chain = [](GraphBuilder& b) {
    Value v = b.input("x", kSquare);
    for (int i = 0; i < 6; ++i) {
      v = b.while_loop(
          {.name = "loop" + std::to_string(i), .initial = {v}, .trip_limit = b.scalar(int64_t{3})},
          [&](Value, ValueSpan c) {
            return WhileTest{b.scalar(true), {c[0]}};
          },
          [&](Value, ValueSpan f) { return std::vector<Value>{b.op("Tanh", {f[0]})}; })[0];
    }
    b.output("y", v);
  };
  auto session = make(chain);
  ASSERT_NE(session, nullptr);
  expect_cpus_bits(*session, chain, {{"x", square(3)}});
  EXPECT_EQ(session->loop_reports().size(), 6u);
}

Build large(int n, int64_t size) {
  return [n, size](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {size}));
    for (int i = 0; i < n; ++i) {
      const auto results = b.while_loop(
          {.name = "loop" + std::to_string(i), .initial = {x}, .trip_limit = b.scalar(int64_t{2})},
          [&](Value, ValueSpan c) {
            return WhileTest{b.scalar(true), {c[0]}};
          },
          [&](Value, ValueSpan f) { return std::vector<Value>{b.op("Tanh", {f[0]})}; });
      b.output("y" + std::to_string(i), results[0]);
    }
  };
}

TEST_P(CudaMergedLoopsTest, OnlySmallRoundsAreMerged) {
  for (const auto& [size, num_loops] : {std::pair{int64_t{1000}, 1u}, {int64_t{3'000'000}, 6u}}) {
    auto session = make(large(6, size));
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->loop_reports().size(), num_loops);
    session.reset();
  }
}

// The nodes of a loop that has ended run on, on values that it never had there.
TEST_P(CudaMergedLoopsTest, WhereANodeMayFindAFaultTheyStayApart) {
  for (const auto& [op, num_loops] : {std::pair{"Tanh", 5u}, {"Abs", 1u}}) {
    merges_loops_ = true;
    use_fake({.may_fault = op});
    auto session = make_or_null(graph_of(large(5, 8)), {});
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->loop_reports().size(), num_loops) << op;
    session.reset();
  }
}

// Five loops that count; `cuts`: what they read is cut where the counter says, by the host.
Build counting(bool cuts) {
  return [cuts](GraphBuilder& b) {
    const Value x = b.input("x", kSquare);
    for (int i = 0; i < 5; ++i) {
      const auto results = b.while_loop(
          {.name = "loop" + std::to_string(i), .initial = {x, b.scalar(int64_t{0})}},
          [&](Value, ValueSpan c) {
            return WhileTest{b.op("Less", {c[1], b.scalar(int64_t{3} + i)}), {c[0], c[1]}};
          },
          [&](Value, ValueSpan f) {
            const Value count = b.op("Add", {f[1], b.scalar(int64_t{1})});
            Value next = f[0];
            if (cuts) {
              const Value end = b.op("Unsqueeze", {count, b.int64s({0})});
              const Value cut = b.op("Slice", {next, b.int64s({0}), end, b.int64s({0})});
              next = b.op("Add", {next, b.op("ReduceMax", {cut}, {{"keepdims", int64_t{0}}})});
            }
            return std::vector<Value>{b.op("Tanh", {next}), count};
          });
      b.output("y" + std::to_string(i), results[0]);
    }
  };
}

// Merging would bring the host's numbers into each round.
TEST_P(CudaMergedLoopsTest, WhatTheHostMakesInARoundKeepsThemApart) {
  for (const bool cuts : {false, true}) {
    auto session = make(counting(cuts));
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->loop_reports().size(), cuts ? 5u : 1u);
    expect_cpus_bits(*session, counting(cuts), {{"x", square(1)}});
    session.reset();
  }
}

// Limits alone decide, and each is its own.
TEST_P(CudaMergedLoopsTest, LimitsAreKeptApart) {
  const Build limited = [](GraphBuilder& b) {
    const Value x = b.input("x", kSquare);
    const Value n = b.input("n", tensor_type(ElementType::kInt64, {}));
    for (int i = 0; i < 5; ++i) {
      const Value limit = i == 3 ? n : b.scalar(int64_t{3 - i});
      const auto results = b.while_loop(
          {.name = "loop" + std::to_string(i), .initial = {x}, .trip_limit = limit},
          [&](Value, ValueSpan c) {
            return WhileTest{b.scalar(true), {c[0]}};
          },
          [&](Value, ValueSpan f) { return std::vector<Value>{b.op("Tanh", {f[0]})}; });
      b.output("y" + std::to_string(i), results[0]);
    }
  };
  auto session = make(limited);
  ASSERT_NE(session, nullptr);
  for (const int64_t n : {-2, 0, 1, 9}) {
    expect_cpus_bits(*session, limited, {{"x", square(1)}, {"n", Tensor::scalar(n)}});
    const std::vector<LoopReport> reports = session->loop_reports();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].iterations, std::max<int64_t>(n, 3));
    EXPECT_EQ(reports[0].driven, "device") << reports[0].reason;
  }
}

TEST_P(CudaMergedLoopsTest, ACancelEndsThemWithinAnIteration) {
  const Build forever = [](GraphBuilder& b) {
    const Value x = b.input("x", kSquare);
    for (int i = 0; i < 5; ++i) {
      const auto results = b.while_loop(
          {.name = "loop" + std::to_string(i), .initial = {x}},
          [&](Value, ValueSpan c) {
            const Value most = b.op("ReduceMax", {c[0]}, {{"keepdims", int64_t{0}}});
            return WhileTest{b.op("Less", {most, b.scalar(i == 2 ? 4.0f : -4.0f)}), {c[0]}};
          },
          [&](Value, ValueSpan f) { return std::vector<Value>{b.op("Tanh", {f[0]})}; });
      b.output("y" + std::to_string(i), results[0]);
    }
  };
  auto session = make(forever);
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(session->loop_reports().size(), 1u);
  RunHandle handle = session->run_async({{"x", square(1)}}, [](Result<NamedTensors>) {});
  while (fake_->num_kernels() < 300) std::this_thread::yield();
  handle.cancel();
  const uint64_t cancelled = fake_->num_kernels();
  EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
  EXPECT_LE(fake_->num_kernels() - cancelled, 30u) << "the kernels of one iteration";
}

// With the kernels of a GPU, fused.
TEST(CudaMergedLoops, FusedKernelsOfTheGpuGiveThemTheSameBits) {
  const NamedTensors inputs = {{"x", square(1)}, {"bound", Tensor::scalar(2.0f)}};
  std::vector<NamedTensors> results;
  for (const bool merges : {true, false}) {
    FusingGpu gpu(3);
    SessionOptions options = gpu.options(true);
    options.loops = Loops::kDevice;
    options.merges_loops = merges;
    auto session = Session::create(library(), graph_of(squaring(8)), options);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    EXPECT_EQ((*session)->loop_reports().size(), merges ? 1u : 8u) << (*session)->placement_text();
    const auto outputs = (*session)->run(inputs);
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    NamedTensors& copies = results.emplace_back();
    for (const auto& [name, tensor] : *outputs) {
      copies.emplace_back(name, Tensor::copy_of(tensor.view()));
    }
    if (merges) {
      EXPECT_EQ((*session)->loop_reports()[0].driven, "device");
      EXPECT_GT(gpu.num_fused(), 0u);
    }
    EXPECT_THAT(gpu.cuda().violations(), ::testing::IsEmpty());
  }
  EXPECT_EQ(check::difference(results[0], results[1]), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaMergedLoopsTest, ::testing::Range<uint64_t>(1, 5));

}  // namespace
}  // namespace eddy::testing
