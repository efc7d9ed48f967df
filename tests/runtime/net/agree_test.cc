// Claim: ranks that differ (graph, options, order of communication, a rank whose session cannot be
// made) get no session, all of them the same error in one line that names the rank, and nothing is
// sent before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/check/rank_runner.h"

namespace eddy {
namespace {

using check::RankRunner;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const ValueType kPair = tensor_type(ElementType::kFloat, {2});

Value talk(GraphBuilder& b, const char* op, Value x, const char* name, int64_t channel,
           Attributes attributes = {}) {
  attributes.set("channel", channel);
  return b.op(op, {x}, attributes, {.name = name, .domain = "eddy"});
}

class AgreeTest : public ::testing::Test {
 protected:
  RankRunner ranks_{{.num_ranks = 3, .seed = 1}};

  void expect_refused(const RankRunner::Build& build, const std::string& why,
                      const RankRunner::Change& change = {}) {
    const auto statuses = ranks_.try_make(build, change);
    for (size_t r = 0; r < statuses.size(); ++r) {
      ASSERT_FALSE(statuses[r].is_ok()) << "rank " << r;
      EXPECT_THAT(statuses[r].to_string(), HasSubstr(why)) << "rank " << r;
    }
    EXPECT_EQ(ranks_.net().num_transfers(), 0u);
  }
};

Result<Graph> one_sum(const Library& library, float bias) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", kPair);
  const Value sum = talk(b, "AllReduce", x, "sum", 0);
  b.output("y", b.op("Add", {sum, b.scalar(bias)}));
  return b.finish();
}

TEST_F(AgreeTest, AnotherGraphIsNamed) {
  expect_refused(
      [](const Library& library, uint32_t rank) { return one_sum(library, rank == 2 ? 2.0f : 1); },
      "rank 2 has another graph than rank 0");
}

TEST_F(AgreeTest, OtherOptionsAreNamed) {
  expect_refused([](const Library& library, uint32_t) { return one_sum(library, 1); },
                 "rank 1 has other options than rank 0",
                 [](SessionOptions& options, uint32_t rank) {
                   if (rank == 1) options.ranks.num_run_slots = 3;
                 });
  expect_refused([](const Library& library, uint32_t) { return one_sum(library, 1); },
                 "there is no input 'z'",
                 [](SessionOptions& options, uint32_t rank) {
                   if (rank == 1) options.ranks.replicated = {"z"};
                 });
}

TEST_F(AgreeTest, ARankWithoutASessionIsNamed) {
  expect_refused(
      [](const Library& library, uint32_t rank) -> Result<Graph> {
        if (rank == 1) return not_found("there is no file model.onnx");
        return one_sum(library, 1);
      },
      "there is no file model.onnx");
  const auto statuses =
      ranks_.try_make([](const Library& library, uint32_t) { return one_sum(library, 1); },
                      [](SessionOptions& options, uint32_t rank) {
                        if (rank == 2) options.check = [] { return cancelled("enough"); };
                      });
  for (size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(statuses[r].to_string(), "cancelled: rank 2: enough");
  }
  EXPECT_EQ(statuses[2].to_string(), "cancelled: enough");
}

TEST_F(AgreeTest, SwappedOperationsOfAChannelAreNamed) {
  expect_refused(
      [](const Library& library, uint32_t rank) {
        GraphBuilder b(library.ops());
        const Value x = b.input("x", kPair);
        Value a, c;
        if (rank == 1) c = talk(b, "AllReduce", x, "c", 0, {{"reduction", std::string("max")}});
        a = talk(b, "AllReduce", x, "a", 0);
        if (rank != 1) c = talk(b, "AllReduce", x, "c", 0, {{"reduction", std::string("max")}});
        b.output("y", b.op("Add", {a, c}));
        return b.finish();
      },
      "the ranks' communication is unsafe: ",
      [](SessionOptions& options, uint32_t) { options.ranks.is_one_graph = false; });
}

TEST_F(AgreeTest, ACircleOfMessagesIsNamed) {
  expect_refused(
      [](const Library& library, uint32_t rank) {
        GraphBuilder b(library.ops());
        const int64_t next = (rank + 1) % 3, before = (rank + 2) % 3;
        const Value y = b.op("Recv", {}, {{"root", before}, {"type", kPair}},
                             {.name = "get", .domain = "eddy"});
        b.output("sent", b.op("Send", {y}, {{"root", next}}, {.name = "put", .domain = "eddy"}));
        return b.finish();
      },
      "waits in get for rank",
      [](SessionOptions& options, uint32_t) { options.ranks.is_one_graph = false; });
}

TEST_F(AgreeTest, ARankThatThereIsNotIsNamed) {
  expect_refused(
      [](const Library& library, uint32_t) {
        GraphBuilder b(library.ops());
        const Value x = b.input("x", kPair);
        b.output("y",
                 talk(b, "AllReduce", x, "sum", 0, {{"group", std::vector<int64_t>{0, 1, 2, 5}}}));
        return b.finish();
      },
      "its group has rank 5, which is none of 3 ranks");
}

TEST_F(AgreeTest, SessionsThatWereRefusedLeaveTheWorldAsItWas) {
  expect_refused(
      [](const Library& library, uint32_t rank) { return one_sum(library, rank == 2 ? 2.0f : 1); },
      "another graph");
  ASSERT_EQ(ranks_.make([](const Library& library, uint32_t) { return one_sum(library, 1); }), "");
  const auto results = ranks_.run([](uint32_t r) {
    return NamedTensors{{"x", Tensor::of<float>({2}, {1, static_cast<float>(r)})}};
  });
  for (const auto& result : results) {
    ASSERT_TRUE(result.is_ok());
    EXPECT_THAT((*result)[0].second.values<float>(), ::testing::ElementsAre(4, 4));
  }
}

// What data make unequal is found in the node (stops_test); what inputs make so, before any run.
TEST_F(AgreeTest, ShapesThatInputsMakeUnequalAreNamedAndNothingIsSent) {
  ASSERT_EQ(ranks_.make([](const Library& library, uint32_t) {
    GraphBuilder b(library.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 2}));
    const Value own =
        b.op("Identity", {b.input("own", tensor_type(ElementType::kFloat, {b.symbol("m")}))});
    const Value all = talk(b, "AllReduce", b.op("Neg", {x}), "sum", 0);
    b.output("y", all);
    b.output("mine", own);
    return b.finish();
  }),
            "");
  const auto given = [](int64_t n, int64_t m) {
    return NamedTensors{{"x", Tensor::zeros(ElementType::kFloat, Dims({n, 2}))},
                        {"own", Tensor::zeros(ElementType::kFloat, Dims({m}))}};
  };
  // Shapes that no node communicates may differ.
  for (const auto& result : ranks_.run([&](uint32_t r) { return given(3, r); })) {
    EXPECT_TRUE(result.is_ok()) << result.status().to_string();
  }
  const uint64_t sent = ranks_.net().num_transfers();
  for (const auto& result : ranks_.run([&](uint32_t r) { return given(r == 2 ? 4 : 3, 1); })) {
    EXPECT_EQ(result.status().to_string(),
              "invalid argument: node 'sum' communicates what has one shape on all ranks, but "
              "rank 2 was given inputs that make it [4,2], and rank 0 [3,2]");
  }
  EXPECT_EQ(ranks_.net().num_transfers(), sent);
  for (const auto& result : ranks_.run([&](uint32_t) { return given(5, 1); })) {
    EXPECT_TRUE(result.is_ok()) << result.status().to_string();
  }
}

// A loop of no iteration communicates nothing; one that runs finds it in the node.
TEST_F(AgreeTest, ShapesOfNodesThatMayNotRunMayDiffer) {
  ASSERT_EQ(ranks_.make(
                [](const Library& library, uint32_t) {
                  GraphBuilder b(library.ops());
                  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n")}));
                  const Value trips = b.input("trips", tensor_type(ElementType::kInt64, {}));
                  const auto made = b.while_loop(
                      {.name = "turns", .initial = {x}, .trip_limit = trips},
                      [&](Value, ValueSpan c) {
                        return WhileTest{b.scalar(true), {c[0]}};
                      },
                      [&](Value, ValueSpan f) {
                        return std::vector<Value>{talk(b, "AllReduce", f[0], "sum", 0)};
                      });
                  b.output("y", made[0]);
                  return b.finish();
                },
                [](SessionOptions& options, uint32_t) { options.ranks.replicated = {"trips"}; }),
            "");
  const auto given = [](uint32_t r, int64_t trips) {
    return NamedTensors{{"x", Tensor::zeros(ElementType::kFloat, Dims({2 + r}))},
                        {"trips", Tensor::of<int64_t>({}, {trips})}};
  };
  for (const auto& result : ranks_.run([&](uint32_t r) { return given(r, 0); })) {
    EXPECT_TRUE(result.is_ok()) << result.status().to_string();
  }
  for (const auto& result : ranks_.run([&](uint32_t r) { return given(r, 1); })) {
    // Of the rank that finds it first.
    EXPECT_THAT(result.status().to_string(),
                ContainsRegex("turns\\[0\\]/sum: rank [01]: ranks put in unlike values: rank 0 "
                              "float\\[2\\], rank 1 float\\[3\\]"));
  }
}

}  // namespace
}  // namespace eddy
