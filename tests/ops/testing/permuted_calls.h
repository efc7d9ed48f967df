// PermutedCall: a call of eddy.PermutedMatMul, and random ones whose parts fit.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "graph/base/random.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {

struct PermutedCall {
  TestTensor a, b;
  std::optional<TestTensor> bias = {}, addend = {};
  std::vector<int64_t> perm_a = {}, perm_b = {}, perm_y = {};
  std::vector<int64_t> place_a = {}, place_b = {};
  float alpha = 1;

  OpCall call() const {
    OpCall call;
    call.op = "PermutedMatMul";
    call.domain = "eddy";
    call.inputs = {a, b};
    if (bias || addend) call.inputs.push_back(bias ? TestValue(*bias) : TestValue());
    if (addend) call.inputs.push_back(*addend);
    const auto set = [&](const char* name, const std::vector<int64_t>& perm) {
      if (!perm.empty()) call.attributes.set(name, perm);
    };
    set("perm_a", perm_a);
    set("perm_b", perm_b);
    set("perm_y", perm_y);
    set("place_a", place_a);
    set("place_b", place_b);
    if (alpha != 1) call.attributes.set("alpha", alpha);
    return call;
  }
};

// Of rank 2 to 4, broadcast axes of matrices among them; each part is there or not. Matrices have
// sides of up to `max_side`.
inline PermutedCall random_permuted_call(ElementType element, Random& random,
                                         uint64_t max_side = 7) {
  const auto size = [&] { return static_cast<int64_t>(1 + random.below(7)); };
  const auto side = [&] { return static_cast<int64_t>(1 + random.below(max_side)); };
  const auto order_of = [&](size_t rank) {
    std::vector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = rank; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return random.below(4) == 0 ? std::vector<int64_t>() : order;
  };
  // The tensor whose axes in that order have these sizes.
  const auto source = [&](const Dims& dims, const std::vector<int64_t>& order) {
    Dims from = dims;
    for (size_t i = 0; i < order.size(); ++i) {
      from[static_cast<int>(order[i])] = dims[static_cast<int>(i)];
    }
    return TestTensor::random(element, from, random, -1, 1);
  };
  const size_t a_rank = 2 + random.below(3), b_rank = 2 + random.below(3);
  const size_t rank = std::max(a_rank, b_rank);
  Dims a, b, y;
  for (size_t i = 0; i + 2 < rank; ++i) {
    const int64_t each = size();
    const bool in_a = i + a_rank >= rank, in_b = i + b_rank >= rank;
    const uint64_t broadcast = random.below(4);  // 0: A's is 1; 1: B's
    const int64_t of_a = in_b && broadcast == 0 ? 1 : each,
                  of_b = in_a && broadcast == 1 ? 1 : each;
    if (in_a) a.push_back(of_a);
    if (in_b) b.push_back(of_b);
    y.push_back(std::max(in_a ? of_a : 1, in_b ? of_b : 1));
  }
  const int64_t m = side(), n = side(), k = side();
  a.push_back(m), a.push_back(k);
  b.push_back(k), b.push_back(n);
  y.push_back(m), y.push_back(n);
  PermutedCall one{.a = TestTensor::random(element, {1}, random, -1, 1),
                   .b = TestTensor::random(element, {1}, random, -1, 1)};
  one.perm_a = order_of(a_rank);
  one.perm_b = order_of(b_rank);
  one.perm_y = order_of(rank);
  one.a = source(a, one.perm_a);
  one.b = source(b, one.perm_b);
  if (random.below(2) == 0) one.bias = TestTensor::random(element, {n}, random, -1, 1);
  Dims made = y;
  for (size_t i = 0; i < one.perm_y.size(); ++i) {
    made[static_cast<int>(i)] = y[static_cast<int>(one.perm_y[i])];
  }
  if (random.below(2) == 0) one.addend = TestTensor::random(element, made, random, -1, 1);
  return one;
}

// Has the operand, of these sizes as the product reads it, lie somewhere in a larger tensor.
inline void place_at_random(TestTensor& x, std::vector<int64_t>& perm, std::vector<int64_t>& place,
                            Random& random) {
  std::vector<int64_t> dims;
  for (int i = 0; i < x.dims().rank(); ++i) {
    dims.push_back(x.dims()[perm.empty() ? i : static_cast<int>(perm[static_cast<size_t>(i)])]);
  }
  std::vector<size_t> order(dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const auto first = static_cast<int64_t>(random.below(5));
  std::vector<int64_t> strides(dims.size());
  int64_t stride = random.below(3) == 0 ? 2 : 1, last = first;
  for (const size_t axis : order) {
    strides[axis] = stride;
    last += (dims[axis] - 1) * stride;
    stride *= dims[axis] + static_cast<int64_t>(random.below(3));
  }
  place = {first};
  for (size_t i = 0; i < dims.size(); ++i) place.insert(place.end(), {dims[i], strides[i]});
  perm.clear();
  const Dims larger = {last + 1 + static_cast<int64_t>(random.below(4))};
  x = TestTensor::random(x.element(), larger, random, -1, 1);
}

// Such a call of which one operand or both lie in larger tensors, with a factor.
inline PermutedCall random_placed_call(ElementType element, Random& random, uint64_t max_side = 7) {
  PermutedCall one = random_permuted_call(element, random, max_side);
  const uint64_t which = random.below(3);
  if (which != 0) place_at_random(one.a, one.perm_a, one.place_a, random);
  if (which != 1) place_at_random(one.b, one.perm_b, one.place_b, random);
  if (random.below(2) == 0) one.alpha = 0.625f;
  return one;
}

}  // namespace eddy::testing
