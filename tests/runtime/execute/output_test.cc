// Claim: outputs are made in the memory that the caller has bound for them, by whichever node of
// whichever branch or iteration makes them; nothing but a possible result is ever written there,
// and what stands elsewhere in the end is copied once. In every way, on the CPU and the virtual
// device.
#include "tests/runtime/testing/output_ways.h"

namespace eddy {
namespace {

using namespace testing;

class OutputTest : public OutputWays {};

TEST_P(OutputTest, EveryBranchWritesStraightIntoTheCallersMemory) {
  const auto build = [](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value s = b.input("s", kInt);
    const Value t = b.input("t", kInt);
    const CaseBody inner[] = {[&] { return std::vector<Value>{next(b, x)}; },
                              [&] { return std::vector<Value>{next(b, next(b, x))}; }};
    const CaseBody outer[] = {
        [&] { return std::vector<Value>{b.case_of({.selector = t}, inner)[0]}; },
        [&] { return std::vector<Value>{next(b, next(b, next(b, x)))}; },
        [&] { return std::vector<Value>{x}; }};
    b.output("y", b.case_of({.selector = s}, outer)[0]);
  };
  on_every_device(build, [this](Session& session) {
    std::vector<float> y(kSize, -1.0f);
    int64_t s = 0, t = 0;
    Bound bound(session);
    bound.bind_count(1, &s);
    bound.bind_count(2, &t);
    bound.bind_output(0, y.data());
    for (const auto& [outer, inner, expected] :
         {std::tuple{0, 0, 1}, {0, 1, 2}, {1, 0, 3}, {0, 1, 2}, {0, 1, 2}, {1, 1, 3}, {0, 0, 1}}) {
      s = outer;
      t = inner;
      bound.run();
      EXPECT_EQ(y, row(static_cast<float>(expected)));
      const auto writes = log_.take();
      ASSERT_EQ(writes.size(), static_cast<size_t>(expected));
      EXPECT_EQ(writes.back(), y.data());
      for (size_t i = 0; i + 1 < writes.size(); ++i) EXPECT_NE(writes[i], y.data());
    }
    s = 2;  // the branch that passes the caller's input on
    bound.run();
    EXPECT_EQ(y, row(0));
    EXPECT_TRUE(log_.take().empty());
  });
}

TEST_P(OutputTest, WhatBeforeMakesIsWrittenThereInEveryIteration) {
  const auto build = [](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value n = b.input("n", kInt);
    b.output("y", b.while_loop(
                      {.initial = {x}},
                      [&](Value i, ValueSpan c) {
                        return WhileTest{is_below(b, i, n), {away(b, c[0]), c[0]}};
                      },
                      [&](Value, ValueSpan f) {
                        return std::vector<Value>{b.op("Add", {f[1], b.scalar(10.0f)})};
                      })[0]);
  };
  on_every_device(build, [this](Session& session) {
    std::vector<float> y(kSize, -1.0f);
    Bound bound(session);
    bound.bind_output(0, y.data());
    for (int64_t n : {0, 1, 2, 5}) {
      bound.bind_count(1, &n);
      bound.run();
      EXPECT_EQ(y, row(static_cast<float>(10 * n + 1)));
      EXPECT_EQ(log_.take(), std::vector<const void*>(static_cast<size_t>(n) + 1, y.data()));
    }
  });
}

// One output of an iteration becomes another output after the next iteration.
TEST_P(OutputTest, OutputsThatStandInEachOthersMemoryStayWhatTheyAre) {
  for (const bool is_carried_first : {false, true}) {
    const auto build = [&](GraphBuilder& b) {
      const Value x = b.input("x", kRow);
      const Value n = b.input("n", kInt);
      const auto results = b.while_loop(
          {.initial = {x}},
          [&](Value i, ValueSpan c) {
            return WhileTest{is_below(b, i, n), {c[0], away(b, c[0])}};
          },
          [&](Value, ValueSpan f) { return std::vector<Value>{f[1]}; });
      b.output("first", results[is_carried_first ? 0 : 1]);
      b.output("second", results[is_carried_first ? 1 : 0]);
    };
    on_every_device(build, [&](Session& session) {
      for (const int bound_outputs : {3, 1, 2}) {
        std::vector<float> memory[2] = {row(-1.0f), row(-1.0f)};
        Bound bound(session);
        for (size_t o : {0, 1}) {
          if (bound_outputs >> o & 1) bound.bind_output(o, memory[o].data());
        }
        for (int64_t n : {0, 1, 2, 5, 6}) {
          bound.bind_count(1, &n);
          bound.run();
          for (size_t o : {0, 1}) {
            const bool is_carried = is_carried_first == (o == 0);
            const TensorView found = bound.call->output(o);
            const std::vector<float> values(found.as<float>(), found.as<float>() + kSize);
            EXPECT_EQ(values, row(static_cast<float>(is_carried ? n : n + 1)))
                << "output " << o << " after " << n << ", bound " << bound_outputs;
            if (bound_outputs >> o & 1) {
              EXPECT_EQ(memory[o], values);
            }
          }
        }
      }
    });
  }
}

void build_counter(GraphBuilder& b, bool is_in_place) {
  const Value x = b.input("x", kRow);
  const Value n = b.input("n", kInt);
  b.output("y", b.while_loop(
                    {.initial = {x}},
                    [&](Value i, ValueSpan c) {
                      return WhileTest{OutputWays::is_below(b, i, n), {c[0]}};
                    },
                    [&](Value, ValueSpan f) {
                      const char* name = is_in_place ? "Next" : "Away";
                      return std::vector<Value>{b.op(name, {f[0]}, {}, {.domain = "test"})};
                    })[0]);
}

TEST_P(OutputTest, ABodyInPlaceStaysInTheCallersMemory) {
  on_every_device([](GraphBuilder& b) { build_counter(b, true); },
                  [this](Session& session) {
                    std::vector<float> y(kSize, -1.0f);
                    Bound bound(session);
                    bound.bind_output(0, y.data());
                    for (int64_t n : {1, 2, 3, 8, 0, 1}) {
                      bound.bind_count(1, &n);
                      bound.run();
                      EXPECT_EQ(y, row(static_cast<float>(n)));
                      EXPECT_EQ(bound.x, row(0));
                      EXPECT_EQ(log_.take(),
                                std::vector<const void*>(static_cast<size_t>(n), y.data()));
                    }
                  });
}

TEST_P(OutputTest, ACarriedValueRotatesThroughTheCallersMemory) {
  on_every_device([](GraphBuilder& b) { build_counter(b, false); },
                  [this](Session& session) {
                    std::vector<float> y(kSize, -1.0f);
                    Bound bound(session);
                    bound.bind_output(0, y.data());
                    for (int64_t n : {1, 2, 3, 8, 0, 7}) {
                      bound.bind_count(1, &n);
                      bound.run();
                      EXPECT_EQ(y, row(static_cast<float>(n)));
                      EXPECT_EQ(bound.x, row(0));
                      const auto writes = log_.take();
                      ASSERT_EQ(writes.size(), static_cast<size_t>(n));
                      for (size_t i = 0; i < writes.size(); ++i)
                        EXPECT_EQ(writes[i] == y.data(), i % 2 == 0) << i;
                    }
                  });
}

TEST_P(OutputTest, RowsAreStackedInTheCallersMemory) {
  const auto build = [](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const auto out = b.while_loop(
        {.initial = {x}, .trip_limit = b.input("n", kInt), .num_scan_outputs = 1},
        [&](Value, ValueSpan c) {
          return WhileTest{b.scalar(true), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          const Value y = away(b, f[0]);
          return std::vector<Value>{y, y};
        });
    b.output("rows", out[1]);
  };
  on_every_device(build, [this](Session& session) {
    std::vector<float> rows(4 * kSize, -1.0f);
    Bound bound(session);
    const int64_t dims[] = {4, kSize};
    const TensorView view{rows.data(), dims, 2, ElementType::kFloat};
    ASSERT_TRUE(bound.call->bind_output(0, view).is_ok());
    for (int64_t n : {4, 4, 6, 4}) {
      bound.bind_count(1, &n);
      const Status status = bound.call->run();
      EXPECT_EQ(status.is_ok(), n == 4) << status.to_string();
      if (n != 4) continue;
      EXPECT_EQ(bound.call->copied_bytes(), 0u);
      for (int64_t i = 0; i < 4 * kSize; ++i) {
        EXPECT_EQ(rows[static_cast<size_t>(i)], static_cast<float>(i / kSize + 1));
      }
    }
    log_.take();
  });
}

TEST_P(OutputTest, OneValueMayBeSeveralOutputsAndBeCapturedElsewhere) {
  const auto build = [](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value made = next(b, x);
    const CaseBody bodies[] = {[&] { return std::vector<Value>{made}; },
                               [&] { return std::vector<Value>{next(b, made)}; }};
    const Value picked = b.case_of({.selector = b.input("s", kInt)}, bodies)[0];
    b.output("a", made);
    b.output("b", picked);
    b.output("c", made);
    b.output("d", b.op("Add", {picked, made}));
  };
  on_every_device(build, [this](Session& session) {
    std::vector<std::vector<float>> y(4, row(-1));
    Bound bound(session);
    for (size_t i = 0; i < y.size(); ++i) bound.bind_output(i, y[i].data());
    for (int64_t s : {0, 1, 1, 0, 1}) {
      bound.bind_count(1, &s);
      bound.run();
      const float picked = s == 0 ? 1.0f : 2.0f;
      EXPECT_EQ(y[0], row(1));
      EXPECT_EQ(y[1], row(picked));
      EXPECT_EQ(y[2], row(1));
      EXPECT_EQ(y[3], row(picked + 1));
      const auto writes = log_.take();
      EXPECT_TRUE(writes[0] == y[0].data() || writes[0] == y[2].data());
      if (s == 1) {
        EXPECT_EQ(writes[1], y[1].data());
      }
    }
  });
}

TEST_P(OutputTest, WhatASequenceKeepsIsNotWrittenAgain) {
  const auto build = [](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value n = b.input("n", kInt);
    const Value none = b.op("SequenceEmpty", std::span<const Value>());
    const auto out = b.while_loop(
        {.initial = {x, none}},
        [&](Value i, ValueSpan c) {
          const Value made = away(b, c[0]);
          return WhileTest{is_below(b, i, n), {made, c[1]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{f[0], b.op("SequenceInsert", {f[1], f[0]})};
        });
    b.output("y", out[0]);
    b.output("all", b.op("ConcatFromSequence", {out[1]}, {{"axis", int64_t{0}}}));
  };
  on_every_device(build, [this](Session& session) {
    std::vector<float> y(kSize, -1.0f);
    Bound bound(session);
    bound.bind_output(0, y.data());
    for (int64_t n : {1, 4, 3}) {
      bound.bind_count(1, &n);
      bound.run();
      EXPECT_EQ(y, row(static_cast<float>(n + 1)));
      const TensorView all = bound.call->output(1);
      ASSERT_EQ(all.count(), n * kSize);
      for (int64_t i = 0; i < all.count(); ++i) {
        EXPECT_EQ(all.as<float>()[i], static_cast<float>(i / kSize + 1));
      }
    }
    log_.take();
  });
}

TEST_P(OutputTest, OutputsMayStandWhereInputsStand) {
  const auto build = [](GraphBuilder& b) {
    const Value x = b.input("x", kRow);
    const Value z = b.input("z", kRow);
    const Value y = away(b, x);
    b.output("y", y);                      // bound to x
    b.output("sum", b.op("Add", {y, x}));  // reads x afterwards
    b.output("x", x);                      // bound to z
    b.output("z", z);                      // bound to w
  };
  on_every_device(build, [this](Session& session) {
    std::vector<float> x(kSize, 1.0f), z(kSize, 5.0f), w(kSize), sum(kSize);
    Bound bound(session);
    bound.bind_input(0, x.data());
    bound.bind_input(1, z.data());
    bound.bind_output(0, x.data());
    bound.bind_output(1, sum.data());
    bound.bind_output(2, z.data());
    bound.bind_output(3, w.data());
    bound.run();
    EXPECT_EQ(x, row(2));
    EXPECT_EQ(sum, row(3));
    EXPECT_EQ(z, row(1));
    EXPECT_EQ(w, row(5));
    log_.take();
  });
}

TEST_P(OutputTest, MemoryIsLeftAloneOnceItIsUnbound) {
  on_every_device([](GraphBuilder& b) { build_counter(b, false); },
                  [this](Session& session) {
                    std::vector<float> first(kSize), second(kSize);
                    const int64_t n = 5;
                    {
                      Bound bound(session);
                      bound.bind_count(1, &n);
                      bound.bind_output(0, first.data());
                      bound.run();
                      EXPECT_EQ(first, row(5));
                      first = row(42);
                      bound.bind_output(0, second.data());
                      bound.run();
                      EXPECT_EQ(second, row(5));
                      second = row(43);
                    }
                    const auto outputs = session.run(
                        {{"x", Tensor::of<float>({kSize}, row(1))}, {"n", Tensor::scalar(n)}});
                    ASSERT_TRUE(outputs.is_ok());
                    EXPECT_EQ(values<float>((*outputs)[0].second), row(6));
                    EXPECT_EQ(first, row(42));
                    EXPECT_EQ(second, row(43));
                    log_.take();
                  });
}

EDDY_IN_ALL_WAYS(OutputTest);

}  // namespace
}  // namespace eddy
