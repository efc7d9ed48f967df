// Claim: eddy.hpp says all that the C interface says, in C++: errors with their parts and places,
// attributes, rows and runs by callback, streams, traces; and it frees what it was given.
#include "runtime/api/c/eddy.hpp"

#include "runtime/api/c/eddy_dlpack.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Cpp : public testing::Test {
 protected:
  eddy::Graph counting() {
    eddy::Graph g(library);
    const eddy::ValueId x = g.input("x", eddy::type(EDDY_FLOAT, {}));
    const eddy::ValueId table = g.input("table", eddy::type(EDDY_FLOAT, {4}));
    g.at("prog.edy", 3, 5, "while x < 9");
    eddy_while loop = {};
    loop.num_rows = 1;
    loop.name = "count";
    const auto outputs = g.while_loop(
        {x},
        [&](auto, const auto& carried) {
          return eddy::Graph::Test{g.op("Less", {carried[0], g.constant(9.0f)}), carried};
        },
        [&](auto i, const auto& carried) {
          g.at("prog.edy", 4);
          const eddy::ValueId row = g.op("Gather", {table, i});
          return std::vector<eddy::ValueId>{g.op("Add", {carried[0], row}), row};
        },
        loop);
    g.at_nowhere();
    g.output("y", outputs[0]);
    g.output("rows", outputs[1]);
    return g;
  }
  void bind(eddy::Run& run, const float& x) {
    static const std::vector<int64_t> scalar, four = {4};
    run.bind_input(0, eddy::tensor(&x, scalar));
    run.bind_input(1, eddy::tensor(table, four));
  }

  eddy::Context context;
  eddy::Library library{context};
  float table[4] = {1, 2, 3, 4};
};

TEST_F(Cpp, AnErrorHasParts) {
  const eddy::Session session(counting(), {{"loops", "host"}});
  eddy::Run run(session);
  const float x = -9;
  bind(run, x);
  try {
    run.execute();
    FAIL() << "index 4 of 4 elements";
  } catch (const eddy::Error& error) {
    EXPECT_EQ(error.code(), EDDY_INVALID_ARGUMENT);  // the index is of the caller's data
    EXPECT_EQ(error.file(), "prog.edy");
    EXPECT_EQ(error.line(), 4u);
    ASSERT_EQ(error.parts().size(), 2u);
    ASSERT_NE(error.loop(), nullptr);
    EXPECT_EQ(error.loop()->name, "count");
    EXPECT_EQ(error.loop()->iteration, 4);
    ASSERT_NE(error.node(), nullptr);
    EXPECT_EQ(error.region(), nullptr);
    EXPECT_THAT(error.what(), HasSubstr(error.reason()));
    EXPECT_THAT(error.what(), HasSubstr("prog.edy:4: in iteration 4 of 'while x < 9'"));
  }
}

TEST_F(Cpp, AnErrorWithoutAPlaceHasNone) {
  try {
    eddy::Session::load(library, "/no/such.onnx");
    FAIL();
  } catch (const eddy::Error& error) {
    EXPECT_EQ(error.file(), "");
    EXPECT_TRUE(error.parts().empty());
    EXPECT_EQ(error.loop(), nullptr);
  }
}

TEST_F(Cpp, AttributesOfEveryKind) {
  eddy::Graph g(library);
  const eddy::ValueId x = g.input("x", eddy::type(EDDY_FLOAT, {2, 3}));
  const std::vector<int64_t> perm = {1, 0}, one = {1};
  const eddy::ValueId t = g.op("Transpose", {x}, eddy::Attributes().set("perm", perm).node());
  EXPECT_EQ(g.type(t).dims[0], 3);
  const eddy::ValueId s = g.op("Softmax", {t}, eddy::Attributes().set("axis", 0).node());
  const eddy::ValueId l = g.op("LeakyRelu", {s}, eddy::Attributes().set("alpha", 0.5).node());
  const float filled = 7;
  const eddy::ValueId dims = g.op("Shape", {l});
  g.output("y", g.op("ConstantOfShape", {dims},
                     eddy::Attributes().set("value", eddy::tensor(&filled, one)).node()));
  const eddy::ValueId floats =
      g.op("Constant", {}, eddy::Attributes().set("value_floats", std::vector<float>{1, 2}).node());
  g.output("floats", floats);
  const eddy::Session session(g);
  eddy::Run run(session);
  const std::vector<int64_t> shape = {2, 3};
  const float xs[6] = {};
  run.bind_input(0, eddy::tensor(xs, shape));
  run.execute();
  EXPECT_EQ(run.output(0).values<float>(), std::vector<float>(6, 7));
  EXPECT_THAT(run.output(1).values<float>(), ElementsAre(1, 2));
  eddy::Attributes bad;
  bad.set("names", std::vector<std::string>{"a"});
  EXPECT_THROW(g.op("Relu", {x}, bad.node()), eddy::Error);
}

TEST_F(Cpp, RowsAreCalledForAndTheFunctionGoesWithThem) {
  const eddy::Session session(counting());
  EXPECT_FALSE(session.can_stream(0));
  EXPECT_TRUE(session.can_stream(1));
  EXPECT_THAT(session.plan_svg(), HasSubstr("<svg"));
  std::vector<float> seen;
  auto alive = std::make_shared<int>(0);
  {
    const eddy::Executor inline_(EDDY_EXECUTOR_INLINE);
    const eddy::Rows rows(2, inline_, [&seen, alive](const eddy::Value& row) {
      seen.push_back(row.values<float>()[0]);
    });
    eddy::Run run(session);
    const float x = 0;
    bind(run, x);
    run.stream_output(1, rows);
    run.execute();
  }
  // Rows that waited when the run ended come all the same; then the function goes.
  for (int i = 0; i < 1000 && alive.use_count() > 1; ++i) usleep(10'000);
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4));
}

TEST_F(Cpp, RunsOfAStreamAndTraces) {
  const eddy::Session session(counting(), {{"loops", "host"}});
  eddy::Run run(session);
  const float x = 0;
  bind(run, x);
  run.start_trace();
  const eddy::Executor thread(EDDY_EXECUTOR_THREAD);
  int code = -1;
  {
    const eddy::Stream stream(session);
    run.submit_on(stream, thread, [&](eddy_code of) { code = of; });
    run.wait();
    run.submit_on(stream);
    run.wait();
  }
  EXPECT_THAT(run.stop_trace(), HasSubstr("count[3]"));
  EXPECT_THROW(eddy::Stream(session, &code), eddy::Error);
}

TEST_F(Cpp, AContextTakesOptionsAndAnAllocatorAndAnOutputAPlace) {
  eddy::Context own({{"threads", "1"}});
  eddy_allocator allocator = {};
  std::atomic<int> num_blocks{0};
  allocator.user = &num_blocks;
  allocator.allocate = [](void* user, size_t size_bytes, size_t alignment) {
    ++*static_cast<std::atomic<int>*>(user);
    return std::aligned_alloc(alignment, size_bytes);
  };
  allocator.release = [](void* user, void* memory, size_t) {
    --*static_cast<std::atomic<int>*>(user);
    std::free(memory);
  };
  own.set_allocator(allocator);
  {
    const eddy::Library other(own);
    eddy::Graph g(other);
    const eddy::ValueId x = g.input("x", eddy::type(EDDY_FLOAT, {}));
    g.output("y", g.op("Mul", {g.op("Mul", {x, x}), x}));
    const eddy::Session session(g);
    eddy::Run run(session);
    const float two = 2;
    float y = 0;
    static const std::vector<int64_t> scalar;
    run.bind_input(0, eddy::tensor(&two, scalar));
    run.place_output(
        0, [](void* user, size_t, const eddy_tensor*, size_t) { return user; }, &y);
    run.execute();
    EXPECT_EQ(y, 8.0f);
    EXPECT_GT(num_blocks, 0);
  }
  EXPECT_EQ(num_blocks, 0);
}

TEST_F(Cpp, ValuesOfAllKindsComeAndGoAndRunsByNamesHaveTheirOptions) {
  const eddy::Value words = eddy::Value::of_strings({"a", "", "bcd"}, {3});
  EXPECT_THAT(words.strings(), ElementsAre("a", "", "bcd"));
  EXPECT_THROW(eddy::Value::of_strings({"a"}, {2}), std::invalid_argument);
  EXPECT_EQ(eddy::Value::none().kind(), 0);
  const float two = 2;
  static const std::vector<int64_t> scalar;
  const eddy_tensor of = eddy::tensor(&two, scalar);
  const eddy::Value number = eddy::Value::copy(of);
  const eddy::Value list = eddy::Value::sequence(EDDY_FLOAT, {number, number});
  EXPECT_EQ(list.kind(), 2);
  ASSERT_EQ(list.length(), 2u);
  EXPECT_THAT(list.at(1).values<float>(), ElementsAre(2.0f));
  bool is_released = false;
  {
    const eddy::Value borrowed = eddy::Value::borrow(
        of, [](void* user) { *static_cast<bool*>(user) = true; }, &is_released);
    const eddy::Value again = eddy::Value::from_dlpack(borrowed.to_dlpack());
    EXPECT_THAT(again.values<float>(), ElementsAre(2.0f));
    const eddy::Value versioned = eddy::Value::from_dlpack(borrowed.to_dlpack_versioned());
    EXPECT_THAT(versioned.values<float>(), ElementsAre(2.0f));
  }
  EXPECT_TRUE(is_released);

  eddy::Graph g(library);
  const eddy::ValueId x = g.input("x", eddy::type(EDDY_FLOAT, {}));
  g.output("y", g.op("Mul", {x, x}));
  g.output("z", g.op("Neg", {x}));
  const eddy::Session session(g);
  const std::vector<eddy::Value> made =
      session.run({{"x", number}}, {"z", "y"}, {sizeof(eddy_run_options), 1'000'000'000, 1});
  ASSERT_EQ(made.size(), 2u);
  EXPECT_THAT(made[0].values<float>(), ElementsAre(-2.0f));
  EXPECT_THAT(made[1].values<float>(), ElementsAre(4.0f));
  const std::string bytes = g.export_bytes();
  const eddy::Session other(eddy::Graph::import_bytes(library, bytes.data(), bytes.size()));
  eddy::Run run(other);
  EXPECT_GE(run.fd(), 0);
  run.bind_input(0, number);
  run.submit(eddy_run_options{sizeof(eddy_run_options), 0, -1});
  run.wait();
  EXPECT_TRUE(run.poll());
  EXPECT_THAT(run.output(0).values<float>(), ElementsAre(4.0f));
  other.trim();
  EXPECT_TRUE(other.close());
}

TEST_F(Cpp, TypesArePrintedAndJoinedAndFitOneAnother) {
  const auto printed = [](const eddy_type& type) { return eddy::print(type, "real"); };
  const eddy_type row = eddy::type(EDDY_DOUBLE, {3, 1});
  const eddy_type wide = eddy::type(EDDY_DOUBLE, {3, EDDY_UNKNOWN_DIM});
  eddy_type any = row;
  any.rank = EDDY_UNRANKED;
  EXPECT_EQ(printed(eddy::type(EDDY_DOUBLE, {})), "real");
  EXPECT_EQ(printed(wide), "real[3, ?]");
  EXPECT_EQ(printed(any), "real[...]");

  EXPECT_EQ(printed(eddy::join(row, row)), "real[3, 1]");
  EXPECT_EQ(printed(eddy::join(row, eddy::type(EDDY_DOUBLE, {3, 2}))), "real[3, ?]");
  EXPECT_EQ(printed(eddy::join(wide, row)), "real[3, ?]");
  EXPECT_EQ(printed(eddy::join(row, eddy::type(EDDY_DOUBLE, {3}))), "real[...]");
  EXPECT_EQ(printed(eddy::join(any, row)), "real[...]");

  for (const eddy_type& of : {row, wide, any}) EXPECT_TRUE(eddy::fits(row, of)) << printed(of);
  EXPECT_FALSE(eddy::fits(wide, row));
  EXPECT_FALSE(eddy::fits(any, wide));
  EXPECT_FALSE(eddy::fits(eddy::type(EDDY_DOUBLE, {3}), wide));
  EXPECT_FALSE(eddy::fits(eddy::type(EDDY_FLOAT, {3, 1}), row));

  const std::vector<int64_t> dims = {2, 2};
  EXPECT_EQ(printed(eddy::type(eddy::tensor(table, dims))), "real[2, 2]");
}

}  // namespace
