// Claim: what once broke stays mended: memory that outlives its owner, late cancels, closing from
// inside, streams that fork behind queued work. Each test is one finding of a hostile review.
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "graph/base/processor.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

const ValueType kInt = tensor_type(ElementType::kInt64, {});

void pass_time(int rounds) {
  for (int k = 0; k < rounds; ++k) cpu_relax();
}

class RegressionTest : public WaysTest {};

// the loop's output c0 is "forwarded only", and Concat in `before` takes its buffer
TEST_P(RegressionTest, AppendInBeforeWhileForwarded) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 2}));
  const Value y = b.input("y", tensor_type(ElementType::kFloat, {1, 2}));
  const auto out = b.while_loop(
      {.initial = {x}},
      [&](Value i, ValueSpan c) {
        const Value t = b.op("Concat", {c[0], y}, {{"axis", int64_t{0}}});
        return WhileTest{b.op("Less", {i, b.scalar<int64_t>(3)}), {t, c[0]}};
      },
      [&](Value, ValueSpan f) { return std::vector<Value>{f[0]}; });
  b.output("kept", out[1]);
  auto s = make_session(b);
  ASSERT_NE(s, nullptr);
  auto o1 =
      s->run({{"x", Tensor::of<float>({1, 2}, {1, 1})}, {"y", Tensor::of<float>({1, 2}, {2, 2})}});
  ASSERT_TRUE(o1.is_ok());
  EXPECT_EQ(values<float>((*o1)[0].second), (std::vector<float>{1, 1, 2, 2, 2, 2, 2, 2}));
  for (int k = 0; k < 3; ++k) {
    auto o2 = s->run(
        {{"x", Tensor::of<float>({1, 2}, {7, 7})}, {"y", Tensor::of<float>({1, 2}, {9, 9})}});
    ASSERT_TRUE(o2.is_ok());
  }
  EXPECT_EQ(values<float>((*o1)[0].second), (std::vector<float>{1, 1, 2, 2, 2, 2, 2, 2}));
}

TEST_P(RegressionTest, TempAppendInBeforeWhileForwarded) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 2}));
  const auto out = b.while_loop(
      {.initial = {x}},
      [&](Value i, ValueSpan c) {
        const Value t = b.op("Neg", {c[0]});
        const Value u = b.op("Concat", {t, x}, {{"axis", int64_t{0}}});
        return WhileTest{b.op("Less", {i, b.scalar<int64_t>(3)}), {t, u}};
      },
      [&](Value, ValueSpan f) { return std::vector<Value>{f[1]}; });
  b.output("t", out[0]);
  auto s = make_session(b);
  auto o1 = s->run({{"x", Tensor::of<float>({1, 2}, {1, 1})}});
  ASSERT_TRUE(o1.is_ok());
  const auto first = values<float>((*o1)[0].second);
  for (int k = 0; k < 3; ++k)
    ASSERT_TRUE(s->run({{"x", Tensor::of<float>({1, 2}, {7, 7})}}).is_ok());
  EXPECT_EQ(values<float>((*o1)[0].second), first);
}

TEST_P(RegressionTest, BoundConcatLeaksTheCallersMemory) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 2}));
  const Value t = b.op("Neg", {x});
  b.output("y", b.op("Concat", {t, x}, {{"axis", int64_t{0}}}));
  auto s = make_session(b);
  float in[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int64_t small[2] = {1, 2}, twice[2] = {2, 2};
  std::vector<float> victim(4, 0.0f), other(4, 0.0f);
  {
    auto call = std::move(*s->prepare());
    ASSERT_TRUE(call->bind_input(0, {in, small, 2, ElementType::kFloat}).is_ok());
    ASSERT_TRUE(call->bind_output(0, {victim.data(), twice, 2, ElementType::kFloat}).is_ok());
    ASSERT_TRUE(call->run().is_ok());
    EXPECT_EQ(victim, (std::vector<float>{-1, -2, 1, 2}));
    ASSERT_TRUE(call->bind_output(0, {other.data(), twice, 2, ElementType::kFloat}).is_ok());
    victim.assign(4, 42.0f);
    ASSERT_TRUE(call->run().is_ok());
    EXPECT_EQ(other, (std::vector<float>{-1, -2, 1, 2}));
    EXPECT_EQ(victim, std::vector<float>(4, 42.0f));
  }
  ASSERT_TRUE(s->run({{"x", Tensor::of<float>({1, 2}, {3, 4})}}).is_ok());
  EXPECT_EQ(victim, std::vector<float>(4, 42.0f));
  EXPECT_EQ(other, (std::vector<float>{-1, -2, 1, 2}));
}

TEST_P(RegressionTest, BoundOutputOfWrongShapeIsRefused) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n")}));
  b.output("y", b.op("Neg", {x}));
  auto s = make_session(b);
  float in[4] = {1, 2, 3, 4}, out[4] = {};
  int64_t n2 = 2, n4 = 4;
  auto call = std::move(*s->prepare());
  ASSERT_TRUE(call->bind_input(0, {in, &n2, 1, ElementType::kFloat}).is_ok());
  ASSERT_TRUE(call->bind_output(0, {out, &n4, 1, ElementType::kFloat}).is_ok());
  EXPECT_EQ(call->run().code(), StatusCode::kInvalidArgument);  // the run makes [2], memory is [4]
}

// The fault campaign binds tensors that it moves afterwards, and their shapes with them.
TEST_P(RegressionTest, AShapeThatWasBoundMayGo) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n")}));
  b.output("y", b.op("Neg", {x}));
  auto s = make_session(b);
  float in[2] = {1, 2}, out[2] = {}, spare[2] = {};
  auto call = std::move(*s->prepare());
  for (const bool has_spare : {false, true}) {
    int64_t of_input = 2, of_output = 2, of_spare = 2;
    const TensorView place{out, &of_output, 1, ElementType::kFloat};
    ASSERT_TRUE(call->bind_input(0, {in, &of_input, 1, ElementType::kFloat}).is_ok());
    const Status bound =
        has_spare ? call->bind_output(0, place, {spare, &of_spare, 1, ElementType::kFloat})
                  : call->bind_output(0, place);
    ASSERT_TRUE(bound.is_ok()) << bound.to_string();
    of_input = of_output = of_spare = 7;
    const Status status = call->run();
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    EXPECT_EQ(call->output(0).shape()[0], 2);
    EXPECT_EQ(call->output(0).as<float>()[1], -2.0f);
  }
}

TEST_P(RegressionTest, SequencesOutliveTheSessionThatMadeThem) {
  const ValueType seq = ValueType::sequence_of(tensor_type(ElementType::kFloat, {2}));
  GraphBuilder a(library_.ops());
  const Value x = a.input("x", tensor_type(ElementType::kFloat, {2}));
  const Value n = a.op("Neg", {x});
  const Value both[] = {n, n};
  a.output("s", a.op("SequenceConstruct", both));
  auto sa = make_session(a);
  GraphBuilder c(library_.ops());
  const Value s = c.input("s", seq);
  const Value y = c.input("x", tensor_type(ElementType::kFloat, {2}));
  c.output("r", c.op("SequenceInsert", {s, y}));
  auto sc = make_session(c);
  NamedTensors result;
  {
    auto made = sa->run({{"x", Tensor::of<float>({2}, {1, 2})}});
    ASSERT_TRUE(made.is_ok());
    auto r = sc->run({{"s", (*made)[0].second}, {"x", Tensor::of<float>({2}, {1, 2})}});
    ASSERT_TRUE(r.is_ok());
    result = std::move(*r);
  }
  sa.reset();
  EXPECT_EQ(result[0].second.elements()[0].values<float>()[0], -1.0f);
}

std::unique_ptr<Session> tiny(RegressionTest&, const Library& library,
                              const SessionOptions& options) {
  GraphBuilder b(library.ops());
  b.output("y", b.op("Neg", {b.input("x", tensor_type(ElementType::kFloat, {2}))}));
  return std::move(*Session::create(library, std::move(*b.finish()), options));
}

TEST_P(RegressionTest, CancelInACallbackDoesNotPoisonTheNextRun) {
  auto s = tiny(*this, library_, options());
  auto h = s->run_async({{"x", Tensor::of<float>({2}, {1, 2})}},
                        [&](Result<NamedTensors>) { s->cancel_all(); });
  EXPECT_TRUE(h.wait().is_ok());
  auto o = s->run({{"x", Tensor::of<float>({2}, {1, 2})}});
  EXPECT_TRUE(o.is_ok()) << o.status().to_string();
}

TEST_P(RegressionTest, LateCancelDoesNotPoison) {
  auto s = tiny(*this, library_, options());
  int poisoned = 0;
  for (int i = 0; i < 3000; ++i) {
    auto h = s->run_async({{"x", Tensor::of<float>({2}, {1, 2})}}, {});
    pass_time(i % 997 * 2);
    h.cancel();
    (void)h.wait();
    if (!s->run({{"x", Tensor::of<float>({2}, {1, 2})}}).is_ok()) ++poisoned;
  }
  EXPECT_EQ(poisoned, 0);
}

TEST_P(RegressionTest, CancelAllBesideEndingRuns) {
  auto s = tiny(*this, library_, options());
  std::atomic<bool> stop{false};
  std::thread t([&] {
    while (!stop) {
      s->cancel_all();
      (void)s->describe_runs();
    }
  });
  std::atomic<int> num_callbacks{0};
  std::atomic<int> num_wrong{0};
  const auto callback = [&](Result<NamedTensors> o) {
    ++num_callbacks;
    const float* const y = o.is_ok() ? (*o)[0].second.view().as<float>() : nullptr;
    const bool is_right =
        y != nullptr ? y[0] == -1 && y[1] == -2 : o.status().code() == StatusCode::kCancelled;
    if (!is_right) ++num_wrong;
  };
  std::vector<RunHandle> hs;
  for (int i = 0; i < 5000; ++i) {
    hs.push_back(s->run_async({{"x", Tensor::of<float>({2}, {1, 2})}}, callback));
    if (i % 40 == 39) {
      for (auto& h : hs) (void)h.wait();
      hs.clear();
    }
  }
  for (auto& h : hs) (void)h.wait();
  stop = true;
  t.join();
  EXPECT_EQ(num_callbacks, 5000);
  EXPECT_EQ(num_wrong, 0);
  EXPECT_TRUE(s->run({{"x", Tensor::of<float>({2}, {1, 2})}}).is_ok());
}

TEST_P(RegressionTest, RunAsyncBesideClose) {
  for (int round = 0; round < 100; ++round) {
    auto s = tiny(*this, library_, options());
    std::atomic<int> calls{0};
    int asked = 0;
    std::thread t([&] {
      usleep(static_cast<useconds_t>(round) * 7);
      s->close();
    });
    for (; asked < 100; ++asked)
      s->run_async({{"x", Tensor::of<float>({2}, {1, 2})}}, [&](Result<NamedTensors>) { ++calls; });
    t.join();
    s.reset();
    EXPECT_EQ(calls, asked);
  }
}

TEST_P(RegressionTest, CloseInACallbackReturns) {
  alarm(20);
  auto s = tiny(*this, library_, options());
  (void)
      s->run_async({{"x", Tensor::of<float>({2}, {1, 2})}}, [&](Result<NamedTensors>) {
         s->close();
       }).wait();
  alarm(0);
}

TEST_P(RegressionTest, ACallbackMayThrow) {
  auto s = tiny(*this, library_, options());
  (void)
      s->run_async({{"x", Tensor::of<float>({2}, {1, 2})}}, [&](Result<NamedTensors>) {
         throw 1;
       }).wait();
}

TEST_P(RegressionTest, NoRunsInFlightAllowed) {
  alarm(20);
  SessionOptions o = options();
  o.max_runs_in_flight = 0;
  auto s = tiny(*this, library_, o);
  EXPECT_TRUE(s->run({{"x", Tensor::of<float>({2}, {1, 2})}}).is_ok());
  alarm(0);
}

TEST_P(RegressionTest, TimeoutCoversWaitingForATurn) {
  alarm(20);
  SessionOptions o = options();
  o.max_runs_in_flight = 1;
  GraphBuilder b(library_.ops());
  const Value yes = b.input("yes", tensor_type(ElementType::kBool, {}));
  const auto out = b.while_loop(
      {.initial = {b.scalar(0.0f)}},
      [&](Value, ValueSpan c) {
        return WhileTest{yes, {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
      });
  b.output("y", out[0]);
  auto s = std::move(*Session::create(library_, std::move(*b.finish()), o));
  auto h = s->run_async({{"yes", Tensor::scalar(true)}}, {});
  RunOptions r;
  r.timeout = std::chrono::milliseconds(20);
  const auto refused = s->run({{"yes", Tensor::scalar(true)}}, r);
  EXPECT_EQ(refused.status().code(), StatusCode::kDeadlineExceeded);
  h.cancel();
  EXPECT_EQ(h.wait().code(), StatusCode::kCancelled);
  alarm(0);
}

TEST_P(RegressionTest, HostWorkOnForkedStreamsOfALoop) {
  ASSERT_TRUE(library_
                  .add_host_function("inc",
                                     [](std::span<const TensorView> in) -> Result<int64_t> {
                                       return *in[0].as<int64_t>() + 1;
                                     })
                  .is_ok());
  GraphBuilder b(library_.ops());
  const auto inc = [&](Value v) {
    return b.op("HostPredicate", {v}, {{"name", "inc"}, {"type", kInt}}, {.domain = "eddy"});
  };
  const Value z = b.scalar<int64_t>(0);
  const auto out = b.while_loop(
      {.initial = {z, z, z}, .trip_limit = b.input("n", kInt)},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c.begin(), c.end()}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{inc(f[0]), inc(inc(f[1])), inc(f[2])};
      });
  for (int i = 0; i < 3; ++i) b.output("o" + std::to_string(i), out[static_cast<size_t>(i)]);
  auto s = make_session(b);
  auto o = s->run({{"n", Tensor::scalar<int64_t>(50000)}});
  ASSERT_TRUE(o.is_ok()) << o.status().to_string();
  EXPECT_EQ((*o)[0].second.values<int64_t>()[0], 50000);
  EXPECT_EQ((*o)[1].second.values<int64_t>()[0], 100000);
  EXPECT_EQ((*o)[2].second.values<int64_t>()[0], 50000);
}

Tensor strs(std::vector<std::string> v) {
  const int64_t n = static_cast<int64_t>(v.size());
  return Tensor::copy_of({v.data(), &n, 1, ElementType::kString});
}
// 40 doublings of a string tensor, each of which fits as tensors go, and rows of a loop.
TEST_P(RegressionTest, CharactersOfStringsStayWithinTheLimit) {
  const std::string text(10'000, 'x');
  GraphBuilder doubled(library_.ops());
  Value v = doubled.input("x", tensor_type(ElementType::kString, {1}));
  for (int i = 0; i < 12; ++i) v = doubled.op("Concat", {v, v}, {{"axis", int64_t{0}}});
  doubled.output("y", v);
  GraphBuilder stacked(library_.ops());
  const Value x = stacked.input("x", tensor_type(ElementType::kString, {1}));
  const auto rows = stacked.while_loop(
      {.initial = {x}, .trip_limit = stacked.scalar(int64_t{4096}), .num_scan_outputs = 1},
      [&](Value, ValueSpan c) {
        return WhileTest{stacked.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{f[0], f[0]};
      });
  stacked.output("rows", rows[1]);
  for (GraphBuilder* b : {&doubled, &stacked}) {
    SessionOptions limited = options();
    limited.memory_limit_bytes = size_t{8} << 20;  // of the 40 MB that the last one takes
    auto graph = b->finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library_, std::move(*graph), limited);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    const auto outputs = (*session)->run({{"x", strs({text})}});
    ASSERT_FALSE(outputs.is_ok());
    EXPECT_EQ(outputs.status().code(), StatusCode::kResourceExhausted);
    EXPECT_NE(outputs.status().message().find("within the limit"), std::string::npos)
        << outputs.status().to_string();
    EXPECT_LE((*session)->memory().peak_bytes, size_t{8} << 20);
  }
}

TEST_P(RegressionTest, StringsThroughLoopsAndStacks) {
  GraphBuilder b(library_.ops());
  const ValueType text = tensor_type(ElementType::kString, {2});
  const Value x = b.input("x", text), y = b.input("y", text);
  const auto out = b.while_loop(
      {.initial = {x, y}, .trip_limit = b.input("n", kInt), .num_scan_outputs = 1},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0], c[1]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{f[1], b.op("Identity", {f[0]}),
                                  b.op("Concat", {f[0], f[1]}, {{"axis", int64_t{0}}})};
      });
  b.output("a", out[0]);
  b.output("s", out[2]);
  b.output("same", out[0]);
  b.output("in", x);
  auto s = make_session(b);
  for (int64_t n : {0, 1, 7, 100, 0, 3}) {
    auto o = s->run({{"x", strs({"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "b"})},
                     {"y", strs({"c", "dddddddddddddddddddddddddddddddddddddddd"})},
                     {"n", Tensor::scalar(n)}});
    ASSERT_TRUE(o.is_ok()) << o.status().to_string();
    EXPECT_EQ((*o)[0].second.view().as<std::string>()[0][0], n % 2 ? 'c' : 'a');
    EXPECT_EQ((*o)[1].second.dims(), (Dims{n, 4}));
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ((*o)[1].second.view().as<std::string>()[static_cast<size_t>(i * 4)][0],
                i % 2 ? 'c' : 'a');
  }
}

TEST_P(RegressionTest, CancelAtRandomMoments) {
  GraphBuilder b(library_.ops());
  const Value n = b.input("n", kInt);
  const auto out = b.while_loop(
      {.initial = {b.scalar(0.0f), b.scalar(0.0f)}, .trip_limit = n, .num_scan_outputs = 1},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0], c[1]}};
      },
      [&](Value, ValueSpan f) {
        const auto in = b.while_loop(
            {.initial = {f[0]}, .trip_limit = b.scalar<int64_t>(5)},
            [&](Value, ValueSpan c) {
              return WhileTest{b.scalar(true), {c[0]}};
            },
            [&](Value, ValueSpan g) {
              return std::vector<Value>{b.op("Add", {g[0], b.scalar(1.0f)})};
            });
        return std::vector<Value>{
            in[0], b.op("Neg", {b.op("Neg", {b.op("Add", {f[1], b.scalar(1.0f)})})}), in[0]};
      });
  b.output("a", out[0]);
  b.output("b", out[1]);
  b.output("c", out[2]);
  auto s = make_session(b);
  int ok = 0, cancelled = 0, dead = 0;
  for (int i = 0; i < 1500; ++i) {
    RunOptions r;
    if (i % 2) r.timeout = std::chrono::microseconds(i % 300);
    auto h = s->run_async({{"n", Tensor::scalar<int64_t>(200)}}, {}, r);
    pass_time(i % 733 * 5);
    if (i % 3) h.cancel();
    const Status st = h.wait();
    if (st.is_ok())
      ++ok;
    else if (st.code() == StatusCode::kCancelled)
      ++cancelled;
    else if (st.code() == StatusCode::kDeadlineExceeded)
      ++dead;
    else
      ADD_FAILURE() << st.to_string();
    if (i % 5 == 0) {
      auto o = s->run({{"n", Tensor::scalar<int64_t>(20)}});
      ASSERT_TRUE(o.is_ok()) << i << " " << o.status().to_string();
      EXPECT_EQ((*o)[0].second.values<float>()[0], 100.0f);
      EXPECT_EQ((*o)[1].second.values<float>()[0], 20.0f);
    }
  }
  EXPECT_EQ(ok + cancelled + dead, 1500);
}

TEST_P(RegressionTest, AForkWaitsForWhatItsParentHasQueued) {
  ASSERT_TRUE(library_
                  .add_host_function("slow",
                                     [](std::span<const TensorView> in) -> Result<int64_t> {
                                       usleep(2000);
                                       return *in[0].as<int64_t>();
                                     })
                  .is_ok());
  GraphBuilder b(library_.ops());
  const Value slow = b.op("HostPredicate", {b.input("n", kInt)}, {{"name", "slow"}, {"type", kInt}},
                          {.domain = "eddy"});
  const Value one = b.scalar<int64_t>(1);
  const auto out = b.while_loop(
      {.initial = {slow, slow}},
      [&](Value i, ValueSpan c) {
        return WhileTest{b.op("Less", {i, b.scalar<int64_t>(3)}),
                         {b.op("Neg", {b.op("Neg", {b.op("Add", {c[0], one})})}),
                          b.op("Neg", {b.op("Neg", {b.op("Add", {c[1], one})})})}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{f[0], f[1]};
      });
  b.output("a", out[0]);
  b.output("b", out[1]);
  auto s = make_session(b);
  for (int64_t n : {5, 70, 900}) {
    auto o = s->run({{"n", Tensor::scalar(n)}});
    ASSERT_TRUE(o.is_ok()) << o.status().to_string();
    EXPECT_EQ((*o)[0].second.values<int64_t>()[0], n + 4);
    EXPECT_EQ((*o)[1].second.values<int64_t>()[0], n + 4);
  }
}

EDDY_IN_ALL_WAYS(RegressionTest);
}  // namespace
}  // namespace eddy
