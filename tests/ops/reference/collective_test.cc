// Claim: run_collective combines in the order of ranks, with the arithmetic of each type (16-bit
// floats in float, whole numbers that wrap, NaN kept by min and max); gathers, scatters and swaps
// parts along any axis and boxes of any size; ReduceScatter is a part of AllReduce, AllToAll twice
// is nothing; ranks that put in unlike values are an error; and a session without ranks has no
// kernel.
#include "ops/reference/eddy/collective.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/ir/half.h"
#include "ops/contract/registry.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One value for each rank.
template <typename T>
struct Ranks {
  using Kept = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  std::vector<int64_t> dims;
  std::vector<std::vector<Kept>> data;

  std::vector<TensorView> views() {
    std::vector<TensorView> result;
    for (auto& each : data) {
      result.push_back(
          {each.data(), dims.data(), static_cast<int32_t>(dims.size()), element_type_of<T>()});
    }
    return result;
  }
};

Collective make(const char* op, Attributes attributes = {}) {
  auto read = read_collective(op, attributes);
  EXPECT_TRUE(read.is_ok()) << read.status().to_string();
  return *read;
}
Attributes reducing(const char* reduction) { return {{"reduction", std::string(reduction)}}; }

// What the rank at `place` gets, of shape `dims`.
template <typename T>
std::vector<typename Ranks<T>::Kept> get(const Collective& collective, Ranks<T>& ranks,
                                         size_t place, std::vector<int64_t> dims,
                                         size_t root_place = 0) {
  Ranks<T> result{std::move(dims), {}};
  int64_t count = 1;
  for (const int64_t dim : result.dims) count *= dim;
  result.data.resize(1);
  result.data[0].resize(static_cast<size_t>(count));
  const std::vector<TensorView> views = ranks.views();
  const Status status = run_collective(collective, {views, place, root_place}, result.views()[0]);
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  return result.data[0];
}

TEST(Collective, SumsAreMadeInTheOrderOfRanks) {
  Ranks<float> x{{2}, {{1e8f, 1.0f}, {-1e8f, 2.0f}, {1.0f, 3.0f}}};
  EXPECT_THAT(get(make("AllReduce"), x, 1, {2}), ElementsAre(1.0f, 6.0f));
  std::swap(x.data[1], x.data[2]);
  EXPECT_THAT(get(make("AllReduce"), x, 1, {2}), ElementsAre(0.0f, 6.0f));
  EXPECT_THAT(get(make("AllReduce", reducing("average")), x, 0, {2}), ElementsAre(0.0f, 2.0f));
}

TEST(Collective, HalfFloatsAreCombinedInFloatAndRoundedOnce) {
  // 2048 + 1 is 2048 in float16, so rounding after each step would lose both ones.
  Ranks<Float16> x{{1}, {{Float16(2048)}, {Float16(1)}, {Float16(1)}}};
  EXPECT_EQ(static_cast<float>(get(make("AllReduce"), x, 0, {1})[0]), 2050.0f);
  Ranks<Bfloat16> y{{1}, {{Bfloat16(256)}, {Bfloat16(1)}, {Bfloat16(1)}}};
  EXPECT_EQ(static_cast<float>(get(make("AllReduce"), y, 0, {1})[0]), 258.0f);
}

TEST(Collective, WholeNumbersWrap) {
  Ranks<int8_t> x{{1}, {{100}, {100}, {3}}};
  EXPECT_EQ(get(make("AllReduce"), x, 0, {1})[0], static_cast<int8_t>(203));
  EXPECT_EQ(get(make("AllReduce", reducing("prod")), x, 0, {1})[0], static_cast<int8_t>(30000));
  Ranks<int64_t> y{{1}, {{std::numeric_limits<int64_t>::max()}, {1}}};
  EXPECT_EQ(get(make("AllReduce"), y, 0, {1})[0], std::numeric_limits<int64_t>::min());
  Ranks<uint64_t> z{{1}, {{std::numeric_limits<uint64_t>::max()}, {5}}};
  EXPECT_EQ(get(make("AllReduce", reducing("max")), z, 0, {1})[0],
            std::numeric_limits<uint64_t>::max());
}

TEST(Collective, MinAndMaxKeepNaN) {
  Ranks<float> x{{3}, {{1, NAN, 5}, {2, 1, NAN}}};
  for (const char* reduction : {"min", "max"}) {
    const auto y = get(make("AllReduce", reducing(reduction)), x, 0, {3});
    EXPECT_EQ(y[0], reduction[1] == 'i' ? 1.0f : 2.0f);
    EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]));
  }
}

TEST(Collective, BoolsAreCombinedByAndAndOr) {
  Ranks<bool> x{{4}, {{0, 0, 1, 1}, {0, 1, 0, 1}}};
  EXPECT_THAT(get(make("AllReduce", reducing("and")), x, 0, {4}), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(get(make("AllReduce", reducing("or")), x, 1, {4}), ElementsAre(0, 1, 1, 1));
}

TEST(Collective, PartsLieAlongTheAxisInTheOrderOfRanks) {
  Ranks<int32_t> x{{2, 2}, {{1, 2, 3, 4}, {5, 6, 7, 8}}};
  EXPECT_THAT(get(make("AllGather"), x, 1, {4, 2}), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  const Attributes last = {{"axis", int64_t{-1}}};
  EXPECT_THAT(get(make("AllGather", last), x, 0, {2, 4}), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
  EXPECT_THAT(get(make("ReduceScatter", last), x, 1, {2, 1}), ElementsAre(8, 12));
  EXPECT_THAT(get(make("AllToAll"), x, 0, {2, 2}), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(get(make("AllToAll", last), x, 1, {2, 2}), ElementsAre(2, 6, 4, 8));
  EXPECT_THAT(get(make("Broadcast"), x, 0, {2, 2}, 1), ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(
      get<bool>(make("Barrier"), *std::make_unique<Ranks<bool>>(Ranks<bool>{{1}, {{0}}}), 0, {})[0],
      1);
}

// Against each other, over random shapes.
TEST(Collective, ReduceScatterIsAPartOfAllReduceAndAllToAllUndoesItself) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const size_t n = 1 + random.below(5), axis = random.below(3);
    Ranks<float> x;
    for (size_t i = 0; i < 3; ++i) x.dims.push_back(static_cast<int64_t>(random.below(4)));
    x.dims[axis] *= static_cast<int64_t>(n);
    const auto count = static_cast<size_t>(x.dims[0] * x.dims[1] * x.dims[2]);
    x.data.assign(n, std::vector<float>(count));
    for (auto& each : x.data) {
      for (float& value : each) value = random.uniform(-1, 1);
    }
    const Attributes along = {{"axis", static_cast<int64_t>(axis)}};
    std::vector<int64_t> part = x.dims;
    part[axis] /= static_cast<int64_t>(n);
    Ranks<float> parts{part, {}}, swapped{x.dims, {}};
    for (size_t place = 0; place < n; ++place) {
      parts.data.push_back(get(make("ReduceScatter", along), x, place, part));
      swapped.data.push_back(get(make("AllToAll", along), x, place, x.dims));
    }
    EXPECT_EQ(get(make("AllGather", along), parts, 0, x.dims),
              get(make("AllReduce"), x, 0, x.dims));
    for (size_t place = 0; place < n; ++place) {
      EXPECT_EQ(get(make("AllToAll", along), swapped, place, x.dims), x.data[place]);
    }
  }
}

// Rows 0-1 and 2-3; each wants its neighbour's row beside its own.
TEST(Collective, AnExchangeGivesEachRankItsBox) {
  const Attributes boxes = {{"size", int64_t{2}},
                            {"from", std::vector<int64_t>{0, 0, 2, 2, 2, 0, 2, 2}},
                            {"to", std::vector<int64_t>{0, 0, 3, 2, 1, 0, 3, 1}}};
  Ranks<int32_t> x{{2, 2}, {{1, 2, 3, 4}, {5, 6, 7, 8}}};
  EXPECT_THAT(get(make("Exchange", boxes), x, 0, {3, 2}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(get(make("Exchange", boxes), x, 1, {3, 1}), ElementsAre(3, 5, 7));
  const std::vector<TensorView> views = x.views();
  EXPECT_THAT(run_collective(make("Exchange", boxes), {views, 1, 0}, views[0]).to_string(),
              HasSubstr("the output of place 1 of the group is [2,2], but its box [1:4, 0:1]"));
}

TEST(Collective, RanksThatPutInUnlikeValuesAreAnError) {
  Ranks<float> x{{2}, {{1, 2}}}, y{{3}, {{1, 2, 3}}};
  std::vector<TensorView> views = {x.views()[0], y.views()[0]};
  const Status status = run_collective(make("AllReduce"), {views, 0, 0}, views[0]);
  EXPECT_THAT(status.to_string(), HasSubstr("place 1 of the group float[3], place 0 float[2]"));
  views = {y.views()[0], y.views()[0]};
  EXPECT_THAT(run_collective(make("AllToAll"), {views, 0, 0}, views[0]).to_string(),
              HasSubstr("axis 0 of size 3 can't be cut into equal parts for 2 ranks"));
}

TEST(Collective, WithoutRanksThereIsNoKernel) {
  OpTable ops;
  ASSERT_TRUE(add_standard_schemas(ops).is_ok());
  KernelRegistry kernels;
  add_reference_kernels(kernels);
  for (const char* op : {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AllToAll",
                         "Exchange", "Send", "Recv", "Barrier", "Rank"}) {
    const OpDef* def = ops.find_or_null("eddy", op, 1);
    ASSERT_NE(def, nullptr) << op;
    EXPECT_EQ(def->may_wait, std::string(op) != "Rank") << op;
    const Attributes none;
    const auto bound = kernels.bind({*def, none, 1, "node", {}, {}, {}});
    ASSERT_FALSE(bound.is_ok());
    EXPECT_THAT(bound.status().to_string(), HasSubstr(std::string(op) + " needs ranks"));
  }
}

}  // namespace
}  // namespace eddy
