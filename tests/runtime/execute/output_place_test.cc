// Claim: no output is copied that need not be. For a loop with a trip count that is known when it
// begins, the iteration that makes an output writes the caller's memory and no other does; for a
// loop that data decide, the output stays in one of two places; beside sequences as without them.
// And where the output is another owner's value, the copy is right, also into that owner's memory.
#include <algorithm>
#include <array>
#include <functional>
#include <tuple>

#include "tests/runtime/testing/allocation_counter.h"
#include "tests/runtime/testing/output_ways.h"

namespace eddy {
namespace {

using namespace testing;

class OutputPlaceTest : public OutputWays {
 protected:
  static bool is_parallel() { return GetParam().assignment == Assignment::kRank; }

  // x -> x + 1, `n` times.
  using Loop = std::function<Value(GraphBuilder& b, Value x, Value n)>;

  // Every write but the last goes elsewhere.
  void expect_last_writes(const float* to, size_t count) {
    const auto writes = log_.take();
    ASSERT_EQ(writes.size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(writes[i] == to, i + 1 == count) << i;
  }
};

// What the importer makes of ONNX's Loop with a trip count, and the builder's own way.
Value trips_by_limit(GraphBuilder& b, Value x, Value n) {
  return b.while_loop(
      {.initial = {x}, .trip_limit = n},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{b.op("Away", {f[0]}, {}, {.domain = "test"})};
      })[0];
}

Value trips_by_carried(GraphBuilder& b, Value x, Value n, bool is_passed_on) {
  const Value yes = b.op("LessOrEqual", {b.scalar<int64_t>(0), b.op("Abs", {n})});
  return b.while_loop(
      {.initial = {yes, x}, .trip_limit = n},
      [&](Value, ValueSpan c) {
        return WhileTest{c[0], {c[0], c[1]}};
      },
      [&](Value, ValueSpan f) {
        const Value next = is_passed_on ? b.op("Identity", {f[0]}) : b.scalar(true);
        return std::vector<Value>{next, b.op("Away", {f[1]}, {}, {.domain = "test"})};
      })[1];
}

Value trips_by_bound(GraphBuilder& b, Value x, Value n) {
  return b.while_loop(
      {.initial = {x}},
      [&](Value i, ValueSpan c) {
        return WhileTest{b.op("Less", {i, n}), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{b.op("Away", {f[0]}, {}, {.domain = "test"})};
      })[0];
}

TEST_P(OutputPlaceTest, TheLastOfASettledNumberOfIterationsWritesThere) {
  const Loop ways[] = {trips_by_limit, trips_by_bound,
                       [](auto& b, Value x, Value n) { return trips_by_carried(b, x, n, true); },
                       [](auto& b, Value x, Value n) { return trips_by_carried(b, x, n, false); }};
  for (const Loop& loop : ways) {
    const auto build = [&](GraphBuilder& b) {
      const Value x = b.input("x", kRow);
      b.output("y", loop(b, x, b.input("n", kInt)));
    };
    on_every_device(build, [&](Session& session) {
      std::vector<float> y = row(-1);
      Bound bound(session);
      bound.bind_output(0, y.data());
      for (int64_t n : {1, 2, 3, 8, 0, 2, 7, -1}) {
        const size_t trips = static_cast<size_t>(std::max<int64_t>(n, 0));
        bound.bind_count(1, &n);
        bound.run();
        EXPECT_EQ(y, row(static_cast<float>(trips)));
        EXPECT_EQ(bound.x, row(0));
        EXPECT_EQ(bound.call->copied_bytes(), trips == 0 ? sizeof(float) * kSize : 0);
        expect_last_writes(y.data(), trips);
      }
    });
  }
}

TEST_P(OutputPlaceTest, ALoopThatStartsFalseMakesNothing) {
  const auto build = [&](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value n = b.input("n", kInt);
    const Value goes_on = b.op("Less", {b.scalar<int64_t>(2), n});
    const auto out = b.while_loop(
        {.initial = {goes_on, x}, .trip_limit = n},
        [&](Value, ValueSpan c) {
          return WhileTest{c[0], {c[1]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.scalar(true), away(b, f[0])};
        });
    b.output("y", out[0]);
  };
  on_every_device(build, [&](Session& session) {
    std::vector<float> y = row(-1);
    Bound bound(session);
    bound.bind_output(0, y.data());
    for (int64_t n : {4, 1, 3, 2}) {
      const size_t trips = n > 2 ? static_cast<size_t>(n) : 0;
      bound.bind_count(1, &n);
      bound.run();
      EXPECT_EQ(y, row(static_cast<float>(trips)));
      expect_last_writes(y.data(), trips);
    }
  });
}

// a, b, c = b, f(a), a: what is made is an output one, two or three iterations later; of all three
// at once, no memory is written too early.
TEST_P(OutputPlaceTest, ValuesThatAreCarriedOnForIterationsAreMadeInPlace) {
  const auto build = [&](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value n = b.input("n", kInt);
    const auto out = b.while_loop(
        {.initial = {x, x, x}, .trip_limit = n},
        [&](Value, ValueSpan c) {
          return WhileTest{b.scalar(true), {c[0], c[1], c[2]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{f[1], away(b, f[0]), f[0]};
        });
    for (size_t o = 0; o < 3; ++o) b.output(std::string(1, static_cast<char>('a' + o)), out[o]);
  };
  on_every_device(build, [&](Session& session) {
    for (int which = 1; which < 8; ++which) {
      std::vector<float> memory[3] = {row(-1), row(-1), row(-1)};
      Bound bound(session);
      for (size_t o = 0; o < 3; ++o) {
        if (which >> o & 1) bound.bind_output(o, memory[o].data());
      }
      for (int64_t n : {3, 4, 5, 9, 0, 1, 2, 6, 6}) {
        bound.bind_count(1, &n);
        bound.run();
        float a = 0, b = 0, c = 0;
        for (int64_t i = 0; i < n; ++i) std::tie(a, b, c) = std::tuple(b, a + 1, a);
        const float expected[] = {a, b, c};
        size_t unmade = 0;  // outputs that are still the input
        for (size_t o = 0; o < 3; ++o) {
          if (!(which >> o & 1)) continue;
          EXPECT_EQ(memory[o], row(expected[o])) << "output " << o << " after " << n;
          unmade += n < std::array{2, 1, 3}[o];
        }
        EXPECT_EQ(bound.call->copied_bytes(), unmade * sizeof(float) * kSize)
            << which << " after " << n;
      }
    }
    log_.take();
  });
}

TEST_P(OutputPlaceTest, LoopsInLoopsAndBranchesKnowTheirLastIterationsToo) {
  const auto build = [&](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value n = b.input("n", kInt);
    const Value m = b.input("m", kInt);
    const auto inner = [&](Value v) { return trips_by_limit(b, v, m); };
    const CaseBody bodies[] = {
        [&] { return std::vector<Value>{inner(x)}; },
        [&] {
          return std::vector<Value>{b.while_loop(
              {.initial = {x}, .trip_limit = n},
              [&](Value, ValueSpan c) {
                return WhileTest{b.scalar(true), {c[0]}};
              },
              [&](Value, ValueSpan f) { return std::vector<Value>{inner(f[0])}; })[0]};
        }};
    b.output("y", b.case_of({.selector = b.op("Less", {b.scalar<int64_t>(0), n})}, bodies)[0]);
  };
  on_every_device(build, [&](Session& session) {
    std::vector<float> y = row(-1);
    Bound bound(session);
    bound.bind_output(0, y.data());
    for (const auto& [n, m] : std::vector<std::pair<int64_t, int64_t>>{
             {2, 3}, {0, 4}, {3, 2}, {4, 1}, {0, 3}, {1, 1}, {5, 4}}) {
      bound.bind_count(1, &n);
      bound.bind_count(2, &m);
      bound.run();
      const int64_t writes = (n == 0 ? 1 : n) * m;
      EXPECT_EQ(y, row(static_cast<float>(writes)));
      EXPECT_EQ(bound.call->copied_bytes(), 0u);
      expect_last_writes(y.data(), static_cast<size_t>(writes));
    }
  });
}

// A loop that data decide: during an iteration it is unknown whether it is the last.
Value trips_by_data(GraphBuilder& b, Value x, Value n, bool is_in_place) {
  return b.while_loop(
      {.initial = {x}},
      [&](Value i, ValueSpan c) {
        return WhileTest{OutputWays::is_below(b, i, n), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const char* const op = is_in_place ? "Next" : "Away";
        return std::vector<Value>{b.op(op, {f[0]}, {}, {.domain = "test"})};
      })[0];
}

TEST_P(OutputPlaceTest, WhatDataDecideStaysInOneOfTwoPlaces) {
  for (const bool is_in_place : {false, true}) {
    const auto build = [&](GraphBuilder& b) {
      const Value x = b.input("x", kRow);
      b.output("y", trips_by_data(b, x, b.input("n", kInt), is_in_place));
    };
    on_every_device(build, [&](Session& session) {
      std::vector<float> y = row(-1), spare = row(-1);
      Bound bound(session);
      bound.bind_output(0, y.data(), spare.data());
      for (int64_t n : {1, 2, 3, 8, 0, 7, 1, 4}) {
        bound.bind_count(1, &n);
        bound.run();
        const TensorView found = bound.call->output(0);
        ASSERT_TRUE(found.data == y.data() || found.data == spare.data());
        EXPECT_EQ(found.data == y.data() ? y : spare, row(static_cast<float>(n)));
        EXPECT_EQ(bound.call->copied_bytes(), n == 0 ? sizeof(float) * kSize : 0);
        for (const void* written : log_.take()) {
          EXPECT_TRUE(written == y.data() || written == spare.data());
        }
      }
      bound.bind_output(0, y.data());  // without the spare again
      const int64_t n = 2;
      bound.bind_count(1, &n);
      spare = row(77);
      bound.run();
      EXPECT_EQ(y, row(2));
      EXPECT_EQ(spare, row(77));
      EXPECT_EQ(bound.call->copied_bytes(), is_in_place ? 0 : sizeof(float) * kSize);
      log_.take();
    });
  }
}

TEST_P(OutputPlaceTest, NothingIsAllocatedForBoundLoopsOnceTheyAreWarm) {
  for (const bool is_settled : {true, false}) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", kRow);
    const Value n = b.input("n", kInt);
    b.output("y", is_settled ? trips_by_limit(b, x, n) : trips_by_data(b, x, n, false));
    auto session = make_session(b);
    ASSERT_NE(session, nullptr);
    std::vector<float> y = row(-1), spare = row(-1);
    Bound bound(*session);
    bound.bind_output(0, y.data(), spare.data());
    const int64_t counts[] = {5, 6, 1, 2, 5, 6};
    const auto run_all = [&] {
      for (const int64_t& count : counts) {
        bound.bind_count(1, &count);
        bound.run();
        log_.forget();
      }
    };
    run_all();
    run_all();
    const uint64_t before = num_allocations();
    const uint64_t system_before = session->memory().num_system_allocations;
    run_all();
    EXPECT_EQ(session->memory().num_system_allocations, system_before);
    // A run of several threads may take a task or a queue's entry.
    const bool is_alone = GetParam().loops == Loops::kDevice && !is_parallel();
    EXPECT_LE(num_allocations() - before, is_alone ? 0u : 20 * std::size(counts));
  }
}

TEST_P(OutputPlaceTest, SparesThatDoNotFitAreRefused) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kRow);
  b.output("y", away(b, x));
  auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  auto call = std::move(*session->prepare());
  std::vector<float> memory = row(0), other = row(0);
  const int64_t half[] = {kSize / 2};
  const TensorView view{memory.data(), kDims, 1, ElementType::kFloat};
  const auto refusal = [&](const TensorView& a, const TensorView& spare) {
    const Status status = call->bind_output(0, a, spare);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(refusal(view, view),
            "output 'y' was given spare memory that overlaps the other; give memory apart from it, "
            "or none");
  EXPECT_EQ(refusal({memory.data(), half, 1, ElementType::kFloat}, view),
            "output 'y' is float[24], but memory for float[12] was given");
  EXPECT_EQ(refusal(view, {other.data(), half, 1, ElementType::kFloat}),
            "output 'y' was given memory for float[24] and spare memory for float[12]; give two "
            "alike, or one");
  EXPECT_EQ(refusal(view, {other.data(), kDims, 1, ElementType::kInt32}),
            "output 'y' was given memory for float[24] and spare memory for int32[24]; give two "
            "alike, or one");
  EXPECT_EQ(refusal(view, {nullptr, kDims, 1, ElementType::kFloat}),
            "the spare place of output 'y' was given a null pointer; give memory for float[24]");
  EXPECT_EQ(refusal({nullptr, kDims, 1, ElementType::kFloat}, view),
            "output 'y' was given a null pointer; give memory for float[24]");
  EXPECT_EQ(call->bind_input(0, {nullptr, kDims, 1, ElementType::kFloat}).message(),
            "input 'x' was given a null pointer; give memory for float[24]");
  EXPECT_EQ(call->bind_output(1, view, view).message(), "there is no output 1; the graph has 1");
  EXPECT_EQ(call->run().message(), "input 'x' (float[24]) is missing");
}

TEST_P(OutputPlaceTest, AnotherOutputsMemoryMayOverlapTheSpare) {
  const auto build = [&](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value n = b.input("n", kInt);
    b.output("y", trips_by_data(b, x, n, false));
    b.output("z", away(b, x));
  };
  on_every_device(build, [&](Session& session) {
    std::vector<float> y = row(-1), z = row(-1);
    Bound bound(session);
    bound.bind_output(0, y.data(), z.data());
    bound.bind_output(1, z.data());
    for (int64_t n : {1, 2, 3}) {
      bound.bind_count(1, &n);
      bound.run();
      EXPECT_EQ(bound.call->output(0).data, y.data());
      EXPECT_EQ(y, row(static_cast<float>(n)));
      EXPECT_EQ(z, row(1));
    }
    log_.take();
  });
}

// `before` makes one output, and its carried value is the other; their shapes are unknown.
TEST_P(OutputPlaceTest, ValuesOfUnknownShapeThatFollowEachOtherStayApart) {
  for (const bool is_settled : {false, true}) {
    const auto build = [&](GraphBuilder& b) {
      const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("size")}));
      const Value n = b.input("n", kInt);
      const auto out = b.while_loop(
          {.initial = {x}},
          [&](Value i, ValueSpan c) {
            const Value goes_on = is_settled ? b.op("Less", {i, n}) : is_below(b, i, n);
            return WhileTest{goes_on, {away(b, c[0]), c[0]}};
          },
          [&](Value, ValueSpan f) { return std::vector<Value>{f[0]}; });
      b.output("made", out[0]);
      b.output("carried", out[1]);
    };
    on_every_device(build, [&](Session& session) {
      for (int which = 1; which < 16; ++which) {  // bound outputs, and those with spares
        Bound bound(session);
        for (int64_t n : {0, 1, 2, 3, 1, 2, 0, 1}) {
          std::vector<float> memory[4] = {row(-1), row(-1), row(-1), row(-1)};
          bound.bind_count(1, &n);
          for (size_t o = 0; o < 2; ++o) {
            float* const spare = (which >> (o + 2) & 1) == 0 ? nullptr : memory[2 * o + 1].data();
            if (which >> o & 1) bound.bind_output(o, memory[2 * o].data(), spare);
          }
          bound.run();
          for (size_t o = 0; o < 2; ++o) {
            const TensorView found = bound.call->output(o);
            ASSERT_EQ(found.count(), kSize);
            const std::vector<float> values(found.as<float>(), found.as<float>() + kSize);
            EXPECT_EQ(values, row(static_cast<float>(o == 0 ? n + 1 : n)))
                << "output " << o << " after " << n << ", bound " << which;
          }
        }
      }
      log_.take();
    });
  }
}

// The sequence keeps what it was given, though the same memory is written again or handed out.
TEST_P(OutputPlaceTest, TensorsBesideSequencesAreMadeInPlaceAndSequencesKeepTheirs) {
  for (const bool is_settled : {true, false}) {
    const auto build = [&](GraphBuilder& b) {
      const Value x = b.input("x", kRow);
      const Value n = b.input("n", kInt);
      const Value none = b.op("SequenceEmpty", std::span<const Value>());
      const auto out = b.while_loop(
          {.initial = {x, none}},
          [&](Value i, ValueSpan c) {
            const Value goes_on = is_settled ? b.op("Less", {i, n}) : is_below(b, i, n);
            return WhileTest{goes_on, {c[0], c[1]}};
          },
          [&](Value, ValueSpan f) {
            const Value made = away(b, f[0]);
            return std::vector<Value>{made, b.op("SequenceInsert", {f[1], made})};
          });
      b.output("all", out[1]);
      b.output("y", out[0]);
      b.output("maybe", b.op("Optional", {out[0]}));
      b.output("z", away(b, x));
    };
    on_every_device(build, [&](Session& session) {
      std::vector<float> y = row(-1), z = row(-1);
      Bound bound(session);
      bound.bind_output(1, y.data());
      bound.bind_output(3, z.data());
      for (int64_t n : {1, 2, 5, 0, 3}) {
        bound.bind_count(1, &n);
        bound.run();
        EXPECT_EQ(y, row(static_cast<float>(n)));
        EXPECT_EQ(z, row(1));
        // z is made in place; y as well, but what the sequence and the optional have is theirs.
        const auto writes = log_.take();
        EXPECT_EQ(std::ranges::count(writes, z.data()), 1);
        EXPECT_EQ(std::ranges::count(writes, y.data()), n == 0 ? 0 : 1);
        const Tensor maybe = bound.call->value(2);
        const Tensor all = bound.call->value(0);
        std::ranges::fill(y, -2.0f);  // the caller's own
        ASSERT_EQ(all.elements().size(), static_cast<size_t>(n));
        for (size_t i = 0; i < all.elements().size(); ++i) {
          EXPECT_EQ(values<float>(all.elements()[i]), row(static_cast<float>(i + 1)));
        }
        EXPECT_EQ(values<float>(maybe), row(static_cast<float>(n)));
      }
    });
  }
}

TEST_P(OutputPlaceTest, SequencesAndNothingMayBeBoundAsInputs) {
  GraphBuilder b(library_.ops());
  const Value list = b.input("list", ValueType::sequence_of(kRow));
  const Value x = b.input("x", kRow);
  b.output("longer", b.op("SequenceInsert", {list, x}));
  b.output("first", b.op("SequenceAt", {list, b.scalar<int64_t>(0)}));
  auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  auto call = std::move(*session->prepare());
  std::vector<float> first = row(-1);
  const TensorView view{first.data(), kDims, 1, ElementType::kFloat};
  ASSERT_TRUE(call->bind_output(1, view).is_ok());
  const auto tensor = [](float value) { return Tensor::of<float>({kSize}, row(value)); };
  for (float value : {3.0f, 4.0f}) {
    const Tensor given = Tensor::sequence(ElementType::kFloat, {tensor(value), tensor(8)});
    const Tensor x_given = tensor(9);
    ASSERT_TRUE(call->bind_input(0, given).is_ok());
    ASSERT_TRUE(call->bind_input(1, x_given).is_ok());
    ASSERT_TRUE(call->run().is_ok());
    EXPECT_EQ(first, row(value));
    const Tensor longer = call->value(0);
    ASSERT_EQ(longer.elements().size(), 3u);
    EXPECT_EQ(values<float>(longer.elements()[2]), row(9));
  }
  const Tensor of_another_kind = tensor(1), nothing;
  EXPECT_EQ(call->bind_input(0, of_another_kind).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(call->bind_input(0, nothing).code(), StatusCode::kInvalidArgument);
}

// The output is the input's own memory; or the middle of it.
TEST_P(OutputPlaceTest, WhatNobodyMakesIsCopiedRightAlsoIntoTheInputsMemory) {
  const auto build = [&](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value n = b.input("n", kInt);
    const CaseBody bodies[] = {[&] { return std::vector<Value>{x}; },
                               [&] { return std::vector<Value>{away(b, x)}; }};
    b.output("looped", trips_by_limit(b, x, n));
    b.output("picked", b.case_of({.selector = n}, bodies)[0]);
    b.output("passed", x);
    b.output("constant", b.constant(Tensor::of<float>({kSize}, row(6)).view()));
  };
  on_every_device(build, [&](Session& session) {
    for (size_t output = 0; output < 4; ++output) {
      for (const size_t shift : {0, 8}) {
        for (int64_t n : {0, 1}) {
          std::vector<float> memory(kSize + 8);
          for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
          std::vector<float> expected(memory.begin(), memory.begin() + kSize);
          if (output == 3) expected = row(6);
          if (output < 2 && n == 1) {
            for (float& value : expected) value += 1;
          }
          Bound bound(session);
          bound.bind_input(0, memory.data());
          bound.bind_count(1, &n);
          bound.bind_output(output, memory.data() + shift);
          bound.run();
          const std::vector<float> found(memory.begin() + static_cast<ptrdiff_t>(shift),
                                         memory.begin() + static_cast<ptrdiff_t>(shift) + kSize);
          EXPECT_EQ(found, expected) << "output " << output << " at " << shift << ", n " << n;
        }
      }
    }
    log_.take();
  });
}

EDDY_IN_ALL_WAYS(OutputPlaceTest);

}  // namespace
}  // namespace eddy
