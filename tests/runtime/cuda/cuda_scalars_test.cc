// Claim: scalar arithmetic runs on the host, but in loops that a GPU (a fake driver's) drives by
// itself because it runs there, too: a decoder's tokens and counters. Where something else must be
// the host's, or no device drives loops, it stays there; values are the CPU's either way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 7, kWidth = 8;

class CudaScalarsTest : public CudaSessionFixture {
 protected:
  // Two runs give the CPU's bits; the first loop's report, and where nodes are.
  std::pair<LoopReport, std::string> run(const Build& build, Loops loops, int64_t limit) {
    use_fake();
    auto cpu = std::move(*Session::create(library(), graph_of(build), {}));
    auto session = make_or_null(graph_of(build), {.loops = loops});
    if (session == nullptr) return {};
    const NamedTensors inputs = {{"first", Tensor::of<int64_t>({1}, std::vector<int64_t>{3})},
                                 {"limit", Tensor::scalar(limit)}};
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto outputs = session->run(inputs);
      EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      if (!outputs.is_ok()) return {};
      EXPECT_EQ(check::difference(*cpu->run(inputs), *outputs), "");
    }
    return {session->loop_reports().at(0), session->placement_text()};
  }
};

// The next token is the largest of a row that the last one chooses; token 0 or the limit ends it.
// `slices`: the row is also cut where a counter says, which the host must read.
Build decoder(bool slices) {
  return [slices](GraphBuilder& b) {
    const Value first = b.input("first", tensor_type(ElementType::kInt64, {1}));
    const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
    std::vector<float> table;
    for (int64_t i = 0; i < kTokens * kWidth; ++i) {
      table.push_back(static_cast<float>((i * 37 + 11) % 53) - 20.0f);
    }
    const Value rows = b.tensor<float>({kTokens, kWidth}, table);
    const Value zero = b.scalar(int64_t{0});
    const auto results = b.while_loop(
        {.name = "write", .initial = {first, zero}, .trip_limit = limit, .num_scan_outputs = 2},
        [&](Value, ValueSpan v) {
          const Value is_end = b.op("Equal", {v[0], zero});
          const Value goes_on = b.op("Squeeze", {b.op("Not", {is_end}), b.int64s({0})});
          return WhileTest{goes_on, {v[0], v[1]}};
        },
        [&](Value iteration, ValueSpan v) {
          Value row = b.op("Gather", {rows, v[0]});
          if (slices) {
            const Value end = b.op("Add", {v[1], b.scalar(int64_t{3})});
            row = b.op("Slice", {row, b.int64s({0}), b.op("Unsqueeze", {end, b.int64s({0})}),
                                 b.int64s({1})});
          }
          const Value best = b.op("ArgMax", {row}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
          const Value is_late = b.op("GreaterOrEqual", {iteration, b.scalar(int64_t{9})});
          const Value wrapped = b.op("Mod", {b.op("Add", {best, v[1]}), b.scalar(kTokens)});
          const Value token = b.op("Where", {is_late, zero, wrapped});
          return std::vector<Value>{token, b.op("Add", {v[1], b.scalar(int64_t{1})}), token, row};
        });
    b.output("tokens", results[2]);
    if (!slices) b.output("rows", results[3]);
    b.output("count", results[1]);
  };
}

TEST_P(CudaScalarsTest, ADecodersTokensAreTheDevicesThatDrivesIt) {
  for (const int64_t limit : {0, 1, 6, 40}) {
    const auto [report, placement] = run(decoder(false), Loops::kAuto, limit);
    EXPECT_EQ(report.driven, "device") << report.reason;
    EXPECT_THAT(placement, HasSubstr(" 0 on the CPU"));
  }
}

TEST_P(CudaScalarsTest, WhereTheHostMustReadThemTheyAreItsOwn) {
  const auto [report, placement] = run(decoder(true), Loops::kAuto, 4);
  EXPECT_EQ(report.driven, "host");
  EXPECT_THAT(placement, ::testing::Not(HasSubstr(" 0 on the CPU")));
}

TEST_P(CudaScalarsTest, WhereTheHostDrivesAllLoopsTheyAreItsOwn) {
  const auto [report, placement] = run(decoder(false), Loops::kHost, 6);
  EXPECT_EQ(report.driven, "host");
  EXPECT_THAT(placement, ::testing::Not(HasSubstr(" 0 on the CPU")));
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaScalarsTest, ::testing::Range(uint64_t{1}, uint64_t{4}));

}  // namespace
}  // namespace eddy::testing
