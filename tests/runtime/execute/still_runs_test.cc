// Claim: values that never move are right in every run of one session, whatever
// becomes of them: carried by loops of no, one or several iterations and read behind them, passed
// through cases or made in their branches, seen, carried and computed under other shapes, as
// outputs in memory of the session's or of the caller's, bound in one run and not in the next.
#include <array>

#include "graph/base/random.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

constexpr int64_t kSize = 4;
using Four = std::array<float, 4>;

Four map(const Four& a, const Four& b, float (*function)(float, float)) {
  Four made;
  for (size_t i = 0; i < made.size(); ++i) made[i] = function(a[i], b[i]);
  return made;
}
Four plus(const Four& a, const Four& b) {
  return map(a, b, [](float p, float q) { return p + q; });
}
Four all(float value) { return {value, value, value, value}; }

struct Inputs {
  Four x;
  int64_t trips;
  int64_t choice;
};

// By name: the expected outputs of the graph below.
std::vector<std::pair<std::string, Four>> expect(const Inputs& in) {
  const Four y = plus(in.x, all(1));
  const Four z = plus(in.x, in.x);
  Four a = y, b = z;
  for (int64_t i = 0; i < in.trips; ++i) {
    const Four next = plus(b, all(1));
    b = a;
    a = next;
  }
  Four w = y;
  for (int64_t i = 0; i < in.trips; ++i) w = plus(w, z);
  Four turned = y, turns = z;
  for (int64_t i = 0; i < in.trips; ++i) {
    turned = {turned[0], turned[2], turned[1], turned[3]};
    turns = plus(turns, turned);
  }
  const Four chosen = in.choice == 0 ? plus(y, z) : in.choice == 1 ? plus(z, z) : y;
  Four first = chosen, second = y;
  for (int64_t i = 0; i < in.trips; ++i) {
    const Four next = plus(second, y);
    second = plus(first, second);
    first = next;
  }
  const Four picked = in.choice == 0 ? plus(y, z) : in.choice == 1 ? y : z;
  return {{"a", a},
          {"b", b},
          {"behind", plus(y, b)},
          {"w", w},
          {"u", z},
          {"picked", picked},
          {"turned", turned},
          {"turns", turns},
          {"kept", plus(plus(first, second), chosen)},
          {"last", plus(plus(w, y), z)}};
}

class StillRunsTest : public WaysTest {
 protected:
  std::unique_ptr<Session> make() {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {kSize}));
    const Value trips = b.input("trips", tensor_type(ElementType::kInt64, {}));
    const Value choice = b.input("choice", tensor_type(ElementType::kInt64, {}));
    const auto shaped = [&](Value value, std::initializer_list<int64_t> dims) {
      return b.op("Reshape", {value, b.int64s(dims)});
    };
    const auto sum = [&](Value p, Value q) { return b.op("Add", {p, q}); };
    const Value y = sum(x, b.scalar(1.0f));
    const Value z = sum(x, x);
    const auto forever = [&](Value, ValueSpan c) {
      return WhileTest{b.scalar(true), {c.begin(), c.end()}};
    };
    const auto swapped =
        b.while_loop({.initial = {y, z}, .trip_limit = trips}, forever, [&](Value, ValueSpan c) {
          return std::vector<Value>{sum(c[1], b.scalar(1.0f)), c[0]};
        });
    b.output("a", swapped[0]);
    b.output("b", swapped[1]);
    b.output("behind", sum(y, swapped[1]));
    const Value y22 = shaped(y, {2, 2});
    const auto grown =
        b.while_loop({.initial = {y22}, .trip_limit = trips}, forever, [&](Value, ValueSpan c) {
          return std::vector<Value>{sum(c[0], shaped(z, {2, 2}))};
        });
    const Value w = shaped(grown[0], {kSize});
    b.output("w", w);
    b.output("u", shaped(shaped(z, {2, 2}), {kSize}));
    const std::vector<CaseBody> branches = {
        [&] { return std::vector<Value>{sum(shaped(y22, {kSize}), z)}; },
        [&] { return std::vector<Value>{shaped(y22, {kSize})}; }};
    const auto picked = b.case_of({.selector = choice, .pass_through = {z}}, branches);
    b.output("picked", picked[0]);
    const auto turned =
        b.while_loop({.initial = {y, z}, .trip_limit = trips}, forever, [&](Value, ValueSpan c) {
          const Value turn =
              b.op("Transpose", {shaped(c[0], {2, 2})}, {{"perm", std::vector<int64_t>{1, 0}}});
          return std::vector<Value>{shaped(turn, {kSize}), sum(c[1], shaped(turn, {kSize}))};
        });
    b.output("turned", turned[0]);
    b.output("turns", turned[1]);
    // Neither the branches' results nor the loop's leave the graph.
    const std::vector<CaseBody> inner = {[&] { return std::vector<Value>{sum(y, z)}; },
                                         [&] { return std::vector<Value>{sum(z, z)}; }};
    const auto chosen = b.case_of({.selector = choice, .pass_through = {y}}, inner);
    const auto kept = b.while_loop({.initial = {chosen[0], y}, .trip_limit = trips}, forever,
                                   [&](Value, ValueSpan c) {
                                     return std::vector<Value>{sum(c[1], y), sum(c[0], c[1])};
                                   });
    b.output("kept", sum(sum(kept[0], kept[1]), chosen[0]));
    b.output("last", sum(sum(w, y), z));
    return make_session(b);
  }
  static NamedTensors tensors(const Inputs& in) {
    return {{"x", Tensor::of<float>({kSize}, in.x)},
            {"trips", Tensor::scalar(in.trips)},
            {"choice", Tensor::scalar(in.choice)}};
  }
};

TEST_P(StillRunsTest, WhateverBecomesOfThem) {
  Random random(17);
  const auto session = make();
  ASSERT_NE(session, nullptr);
  const auto call = std::move(*session->prepare());
  std::array<std::array<Four, 2>, 10> memory{};
  const int64_t dims[] = {kSize};
  for (int run = 0; run < 300; ++run) {
    const Inputs in{{random.uniform(-1, 1), 2, random.uniform(-1, 1), 3},
                    static_cast<int64_t>(random.below(4)),
                    static_cast<int64_t>(random.below(4)) - 1};
    const auto expected = expect(in);
    const std::string which = "run " + std::to_string(run) + ", " + std::to_string(in.trips) +
                              " trips, choice " + std::to_string(in.choice) + ": ";
    const NamedTensors inputs = tensors(in);
    if (random.below(2) == 0) {
      const auto outputs = session->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      for (size_t o = 0; o < expected.size(); ++o) {
        EXPECT_EQ(values<float>((*outputs)[o].second),
                  std::vector<float>(expected[o].second.begin(), expected[o].second.end()))
            << which << expected[o].first;
      }
      continue;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_TRUE(call->bind_input(i, inputs[i].second).is_ok());
    }
    for (size_t o = 0; o < expected.size(); ++o) {  // once bound, they stay so
      const auto view = [&](size_t k) {
        return TensorView{memory[o][k].data(), dims, 1, ElementType::kFloat};
      };
      const uint64_t way = random.below(4);
      if (way == 1) {
        ASSERT_TRUE(call->bind_output(o, view(0)).is_ok());
      }
      if (way == 2) {
        ASSERT_TRUE(call->bind_output(o, view(1), view(0)).is_ok());
      }
    }
    ASSERT_TRUE(call->run().is_ok());
    for (size_t o = 0; o < expected.size(); ++o) {
      const auto* found = call->output(o).as<float>();
      EXPECT_EQ(std::vector<float>(found, found + kSize),
                std::vector<float>(expected[o].second.begin(), expected[o].second.end()))
          << which << expected[o].first;
    }
  }
}

EDDY_IN_ALL_WAYS(StillRunsTest);

}  // namespace
}  // namespace eddy
