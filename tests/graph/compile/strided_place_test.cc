// Claim: where a value is said to lie, its elements lie: random chains of moves are made one by one
// with numbers that say where each element came from. What is not known, or not even enough, is
// the root; a constant factor is found on either side.
#include "graph/compile/strided_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using Ints = std::vector<int64_t>;

int64_t product(const Ints& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Element i of the result is element at[i] of what was moved.
struct Moved {
  Value value;
  Ints dims, at;
};

// `from` says, for an index of the result, which index of the input it comes from.
Moved move(const Moved& x, Value value, Ints dims, const std::function<Ints(const Ints&)>& from) {
  Moved made{value, std::move(dims), {}};
  for (int64_t i = 0; i < product(made.dims); ++i) {
    Ints index(made.dims.size());
    int64_t rest = i;
    for (size_t axis = index.size(); axis-- > 0; rest /= made.dims[axis]) {
      index[axis] = rest % made.dims[axis];
    }
    const Ints in_x = from(index);
    int64_t place = 0;
    for (size_t axis = 0; axis < in_x.size(); ++axis) place = place * x.dims[axis] + in_x[axis];
    made.at.push_back(x.at[static_cast<size_t>(place)]);
  }
  return made;
}

class StridedPlaceTest : public ::testing::Test {
 protected:
  StridedPlaceTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  static Value list(GraphBuilder& b, const Ints& ints) {
    return b.vector(std::span<const int64_t>(ints));
  }
  static Moved reshaped(GraphBuilder& b, const Moved& x, const Ints& dims) {
    return {b.op("Reshape", {x.value, list(b, dims)}), dims, x.at};
  }
  static Moved turned(GraphBuilder& b, const Moved& x, Random& random) {
    Ints perm(x.dims.size());
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t i = perm.size(); i > 1; --i) std::swap(perm[i - 1], perm[random.below(i)]);
    Ints dims;
    for (const int64_t axis : perm) dims.push_back(x.dims[static_cast<size_t>(axis)]);
    return move(x, b.op("Transpose", {x.value}, {{"perm", perm}}), dims, [&](const Ints& index) {
      Ints from(index.size());
      for (size_t i = 0; i < index.size(); ++i) from[static_cast<size_t>(perm[i])] = index[i];
      return from;
    });
  }
  static Moved gathered(GraphBuilder& b, const Moved& x, Random& random) {
    const size_t axis = random.below(x.dims.size());
    const auto at = static_cast<int64_t>(random.below(static_cast<uint64_t>(x.dims[axis])));
    const int64_t index = random.below(2) == 0 ? at : at - x.dims[axis];
    const bool keeps = random.below(2) == 0;
    Ints dims = x.dims;
    dims[axis] = 1;
    if (!keeps) dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
    const Value from = keeps ? list(b, {index}) : b.scalar(index);
    const Value made = b.op("Gather", {x.value, from}, {{"axis", static_cast<int64_t>(axis)}});
    return move(x, made, dims, [&](const Ints& of) {
      Ints in = of;
      keeps ? void(in[axis] = at) : void(in.insert(in.begin() + static_cast<ptrdiff_t>(axis), at));
      return in;
    });
  }
  static Moved sliced(GraphBuilder& b, const Moved& x, Random& random) {
    const size_t axis = random.below(x.dims.size());
    const auto size = static_cast<uint64_t>(x.dims[axis]);
    const auto start = static_cast<int64_t>(random.below(size));
    const auto step = static_cast<int64_t>(1 + random.below(3));
    const int64_t end = start + 1 + static_cast<int64_t>(random.below(size));
    const int64_t stop = std::min(end, x.dims[axis]);
    Ints dims = x.dims;
    dims[axis] = (stop - start + step - 1) / step;
    const int64_t given = random.below(2) == 0 ? start : start - x.dims[axis];
    const Value made = b.op("Slice", {x.value, list(b, {given}), list(b, {end}),
                                      list(b, {static_cast<int64_t>(axis)}), list(b, {step})});
    return move(x, made, dims, [&](const Ints& of) {
      Ints in = of;
      in[axis] = start + of[axis] * step;
      return in;
    });
  }
  static Moved part(GraphBuilder& b, const Moved& x, Random& random) {
    const size_t axis = random.below(x.dims.size());
    const int64_t size = x.dims[axis];
    const auto first = static_cast<int64_t>(random.below(static_cast<uint64_t>(size)));
    const Value inputs[] = {x.value, list(b, {first, size - first})};
    Ints dims = x.dims;
    dims[axis] = size - first;
    const auto parts =
        b.ops("Split", inputs, {{"axis", static_cast<int64_t>(axis)}}, {.num_outputs = 2});
    return move(x, parts[1], dims, [&](const Ints& of) {
      Ints in = of;
      in[axis] += first;
      return in;
    });
  }
  // The same elements in two axes for one, or in one for two.
  static Moved regrouped(GraphBuilder& b, const Moved& x, Random& random) {
    Ints dims = x.dims;
    const size_t axis = random.below(dims.size());
    if (random.below(2) == 0 && axis + 1 < dims.size()) {
      dims[axis] *= dims[axis + 1];
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis) + 1);
    } else if (dims.size() < 5) {
      const int64_t by = dims[axis] % 2 == 0 ? 2 : 1;
      dims[axis] /= by;
      dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), by);
    }
    return reshaped(b, x, dims);
  }
  static Moved any_move(GraphBuilder& b, const Moved& x, Random& random) {
    if (x.dims.empty()) return reshaped(b, x, {1, 1});
    switch (random.below(6)) {
      case 0:
        return gathered(b, x, random);
      case 1:
        return sliced(b, x, random);
      case 2:
        return part(b, x, random);
      case 3:
        return regrouped(b, x, random);
      default:
        return turned(b, x, random);
    }
  }

  OpTable ops_;
};

Ints elements_of(const StridedPlace& place) {
  Ints at = {place.first};
  for (size_t axis = 0; axis < place.dims.size(); ++axis) {
    Ints next;
    for (const int64_t base : at) {
      for (int64_t i = 0; i < place.dims[axis]; ++i) next.push_back(base + i * place.strides[axis]);
    }
    at = next;
  }
  return at;
}

TEST_F(StridedPlaceTest, RandomMovesLieWhereTheyAreSaidTo) {
  constexpr uint64_t kSeed = 28;
  Random random(kSeed);
  int num_far = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(kSeed));
    GraphBuilder b(ops_);
    std::vector<Moved> chain(1);
    for (size_t i = 0; i < 3; ++i)
      chain[0].dims.push_back(static_cast<int64_t>(1 + random.below(6)));
    chain[0].at.resize(static_cast<size_t>(product(chain[0].dims)));
    std::iota(chain[0].at.begin(), chain[0].at.end(), 0);
    chain[0].value = b.input("x", tensor_type(ElementType::kFloat, Dims(chain[0].dims)));
    for (size_t i = 0; i < 1 + random.below(5); ++i) {
      chain.push_back(any_move(b, chain.back(), random));
    }
    b.output("y", b.op("Neg", {chain.back().value}));
    const Result<Graph> graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    const auto place = find_place(*graph, chain.back().value.id, [](NodeId) { return true; });
    EXPECT_EQ(place.dims, chain.back().dims);
    const auto root =
        std::ranges::find(chain, place.root, [](const Moved& m) { return m.value.id; });
    ASSERT_NE(root, chain.end());
    EXPECT_THAT(place.passed, SizeIs(chain.end() - root - 1));
    Ints at;
    for (const int64_t i : elements_of(place)) at.push_back(root->at[static_cast<size_t>(i)]);
    EXPECT_EQ(at, chain.back().at);
    num_far += root == chain.begin() ? 1 : 0;
  }
  EXPECT_GT(num_far, 200) << "few go up to the input";
}

TEST_F(StridedPlaceTest, AFactorIsAConstantOfOneFloat) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2, 3}));
  const Value one = b.input("one", tensor_type(ElementType::kFloat, {}));
  const Value scaled = b.op("Mul", {b.scalar(3.0f), b.op("Div", {x, b.scalar(2.0f)})});
  const Value others[] = {b.op("Mul", {x, one}), b.op("Div", {b.scalar(2.0f), x}),
                          b.op("Mul", {x, b.tensor<float>({3}, {1, 2, 3})}),
                          b.op("Div", {x, b.scalar(0.0f)}),
                          b.op("Mul", {x, b.tensor<float>({1, 1, 1}, {2})})};
  b.output("scaled", scaled);
  for (size_t i = 0; i < std::size(others); ++i) b.output("y" + std::to_string(i), others[i]);
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto any = [](NodeId) { return true; };
  const StridedPlace place = find_place(*graph, scaled.id, any);
  EXPECT_EQ(place.root, x.id);
  EXPECT_EQ(place.factor, 1.5);
  EXPECT_THAT(place.strides, ElementsAre(3, 1));
  for (const Value& other : others) EXPECT_EQ(find_place(*graph, other.id, any).root, other.id);
}

TEST_F(StridedPlaceTest, WhatIsNotKnownIsTheRoot) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {4, 3}));
  const Value open = b.input("open", tensor_type(ElementType::kFloat, {b.symbol("n"), 3}));
  const Value at = b.input("at", tensor_type(ElementType::kInt64, {}));
  const Value roots[] = {
      b.op("Transpose", {open}),
      b.op("Gather", {x, at}),
      b.op("Gather", {x, b.int64s({0, 2})}),
      b.op("Slice", {x, b.int64s({3}), b.int64s({0}), b.int64s({0}), b.int64s({-1})}),
      b.op("Slice", {x, b.int64s({0}), b.int64s({0})}),
      b.op("Reshape", {b.op("Transpose", {x}), b.int64s({12})})};
  for (size_t i = 0; i < std::size(roots); ++i) {
    b.output("y" + std::to_string(i), b.op("Neg", {roots[i]}));
  }
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  for (const Value& root : roots) {
    EXPECT_EQ(find_place(*graph, root.id, [](NodeId) { return true; }).root, root.id);
  }
  const Value turned = roots[0];
  EXPECT_EQ(find_place(*graph, turned.id, [](NodeId) { return false; }).root, turned.id);
}

}  // namespace
}  // namespace eddy
