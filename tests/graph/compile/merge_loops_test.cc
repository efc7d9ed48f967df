// Claim: loops beside each other become one that gives each of them what it gave alone, bit for bit
// and after as many iterations, on random graphs too; a loop that needs another's results stays
// apart; a loop that cannot be merged reports why.
//
// EDDY_MERGE_SEEDS=N tries N graphs.
#include "graph/compile/merge_loops.h"

#include <cstdlib>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const ValueType kRow = tensor_type(ElementType::kFloat, {3});
const ValueType kCount = tensor_type(ElementType::kInt64, {});

std::vector<NodeId> loops_of(const Graph& graph) {
  std::vector<NodeId> loops;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const bool is_loop = graph.node(NodeId(n)).kind == NodeKind::kWhile;
    if (is_loop && why_not_merged(graph, NodeId(n)).empty()) loops.push_back(NodeId(n));
  }
  return loops;
}

std::vector<std::string> names_of(const Graph& graph, std::span<const NodeId> ids) {
  std::vector<std::string> names;
  for (const NodeId id : ids) names.push_back(graph.node(id).name);
  return names;
}

// A graph of loops beside and behind each other, with all that a predicate may be.
class Author {
 public:
  Author(GraphBuilder& builder, uint64_t seed) : b_(builder), random_(seed) {}

  void run() {
    for (int i = 0; i < 2; ++i) rows_.push_back(b_.input("x" + std::to_string(i), kRow));
    limit_ = b_.input("n", kCount);
    const auto num_steps = 3 + random_.below(8);
    for (uint64_t i = 0; i < num_steps; ++i) {
      if (random_.below(3) == 0) {
        rows_.push_back(b_.op("Add", {row(), row()}));
      } else {
        loop("l" + std::to_string(i));
      }
    }
    for (size_t i = 2; i < rows_.size(); ++i) b_.output("r" + std::to_string(i), rows_[i]);
    for (size_t i = 0; i < counts_.size(); ++i) b_.output("c" + std::to_string(i), counts_[i]);
  }

 private:
  Value row() { return rows_[random_.below(rows_.size())]; }

  // Carries a row, how often it went round, and a bool that decides in some.
  void loop(const std::string& name) {
    WhileOptions options{.name = name, .initial = {row(), b_.scalar(int64_t{0})}};
    const auto kind = random_.below(6);
    const Value outer = row();
    const Value bound = b_.scalar(static_cast<float>(random_.below(40)));
    const Value times = b_.scalar(static_cast<int64_t>(1 + random_.below(4)));
    const bool is_vector = random_.below(3) == 0;
    if (random_.below(2) == 0) options.trip_limit = limit(is_vector);
    if (kind == 5) {
      options.initial.push_back(random_.below(4) == 0 ? b_.scalar(false) : b_.scalar(true));
    }
    const bool is_mixed = random_.below(2) == 0;
    const auto before = [&, kind](Value iteration, ValueSpan carried) {
      return WhileTest{predicate(kind, is_vector, iteration, carried, bound, times),
                       {carried.begin(), carried.end()}};
    };
    const auto after = [&, kind](Value iteration, ValueSpan forwarded) {
      std::vector<Value> next = {b_.op("Add", {b_.op("Mul", {forwarded[0], outer}), outer}),
                                 b_.op("Add", {forwarded[1], b_.scalar(int64_t{1})})};
      if (is_mixed) {
        next[0] = b_.op("Sub", {next[0], b_.cast(iteration, ElementType::kFloat)});
      }
      if (kind == 5) next.push_back(small(next[0], bound));
      return next;
    };
    const auto made = b_.while_loop(options, before, after);
    if (made.empty()) return;
    rows_.push_back(made[0]);
    counts_.push_back(made[1]);
  }

  Value limit(bool is_vector) {
    const Value limit =
        random_.below(2) == 0 ? limit_ : b_.scalar(static_cast<int64_t>(random_.below(6)));
    return is_vector ? b_.op("Reshape", {limit, b_.int64s({1})}) : limit;
  }

  Value small(Value row, Value bound) {
    const Value size = b_.op("ReduceMax", {b_.op("Abs", {row})}, {{"keepdims", int64_t{0}}});
    return b_.op("Less", {size, bound});
  }

  Value predicate(uint64_t kind, bool is_vector, Value iteration, ValueSpan carried, Value bound,
                  Value times) {
    Value goes_on;
    switch (kind) {
      case 0:  // of what is carried, but never for ever
        goes_on = b_.op(
            "And", {small(carried[0], bound), b_.op("Less", {carried[1], b_.scalar(int64_t{9})})});
        break;
      case 1:
        goes_on = b_.op("Less", {iteration, times});
        break;
      case 2:  // would be true again: only the first false counts
        goes_on = b_.op("Not", {b_.op("Equal", {iteration, times})});
        break;
      case 3:
        goes_on = b_.op("Less", {carried[1], times});
        break;
      case 4:
        goes_on = b_.op(
            "And", {b_.op("Less", {carried[1], b_.scalar(int64_t{5})}), small(carried[0], bound)});
        break;
      default:  // carried
        return b_.op("And", {carried[2], b_.op("Less", {carried[1], b_.scalar(int64_t{7})})});
    }
    return is_vector ? b_.op("Reshape", {goes_on, b_.int64s({1})}) : goes_on;
  }

  GraphBuilder& b_;
  Random random_;
  std::vector<Value> rows_;
  std::vector<Value> counts_;
  Value limit_;
};

class MergeLoopsTest : public ::testing::Test {
 protected:
  Graph make(uint64_t seed) {
    GraphBuilder b(library_.ops());
    Author(b, seed).run();
    Result<Graph> graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << "seed " << seed << ": " << graph.status().to_string();
    return std::move(*graph);
  }

  std::unique_ptr<Session> session(Graph graph) {
    SessionOptions options;
    options.num_threads = 1;
    auto session = Session::create(library_, std::move(graph), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return session.is_ok() ? std::move(*session) : nullptr;
  }

  static NamedTensors inputs(Random& random) {
    NamedTensors made;
    for (int i = 0; i < 2; ++i) {
      std::vector<float> row;
      for (int k = 0; k < 3; ++k) row.push_back(random.uniform(-2.0f, 2.0f));
      made.emplace_back("x" + std::to_string(i), Tensor::of<float>({3}, std::span(row)));
    }
    made.emplace_back("n", Tensor::scalar(static_cast<int64_t>(random.below(6)) - 1));
    return made;
  }

  static void expect_same(const NamedTensors& a, const NamedTensors& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const TensorView left = a[i].second.view();
      const TensorView right = b[i].second.view();
      ASSERT_EQ(left.size_bytes(), right.size_bytes()) << a[i].first;
      EXPECT_EQ(std::memcmp(left.data, right.data, left.size_bytes()), 0) << a[i].first;
    }
  }

  Library library_;
};

// Each round merges the most that can be, until nothing is left to merge.
TEST_F(MergeLoopsTest, MergedLoopsGiveWhatEachGaveAlone) {
  const char* const text = std::getenv("EDDY_MERGE_SEEDS");
  const uint64_t num_seeds = text == nullptr ? 150 : std::strtoull(text, nullptr, 10);
  size_t num_merged = 0;
  for (uint64_t seed = 0; seed < num_seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph merged = make(seed);
    for (std::vector<NodeId> siblings = find_siblings(merged, loops_of(merged)); !siblings.empty();
         siblings = find_siblings(merged, loops_of(merged))) {
      num_merged += siblings.size();
      const size_t num_loops = loops_of(merged).size();
      Result<Graph> made = merge_loops(std::move(merged), library_.ops(), siblings, "");
      ASSERT_TRUE(made.is_ok()) << made.status().to_string();
      merged = std::move(*made);
      ASSERT_EQ(loops_of(merged).size(), num_loops - siblings.size()) << "none is merged again";
    }
    const auto plain_session = session(make(seed));
    const auto merged_session = session(std::move(merged));
    ASSERT_NE(plain_session, nullptr);
    ASSERT_NE(merged_session, nullptr);
    Random random(seed);
    for (int run = 0; run < 4; ++run) {
      const NamedTensors given = inputs(random);
      auto plain_outputs = plain_session->run(given);
      auto merged_outputs = merged_session->run(given);
      ASSERT_TRUE(plain_outputs.is_ok()) << plain_outputs.status().to_string();
      ASSERT_TRUE(merged_outputs.is_ok()) << merged_outputs.status().to_string();
      expect_same(*plain_outputs, *merged_outputs);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(num_merged, 2 * num_seeds);
}

// a and b beside each other, c behind a, and a node between that needs a.
TEST_F(MergeLoopsTest, ALoopThatNeedsAnotherStaysApartAndWaitsBehind) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kRow);
  const auto loop = [&](const char* name, Value from) {
    return b.while_loop(
        {.name = name, .initial = {from}, .trip_limit = b.scalar(int64_t{3})},
        [&](Value, ValueSpan c) {
          return WhileTest{b.scalar(true), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {f[0], x}, {}, {.name = "step"})};
        })[0];
  };
  const Value a = loop("a", x);
  const Value between = b.op("Neg", {a}, {}, {.name = "between"});
  const Value other = loop("b", x);
  b.output("y", b.op("Add", {loop("c", between), other}));
  Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const std::vector<NodeId> siblings = find_siblings(*graph, loops_of(*graph));
  EXPECT_THAT(names_of(*graph, siblings), ElementsAre("a", "b"));
  Result<Graph> merged = merge_loops(std::move(*graph), library_.ops(), siblings, "gpu");
  ASSERT_TRUE(merged.is_ok()) << merged.status().to_string();
  std::vector<std::string> paths;
  std::vector<std::string> hinted;
  for (uint32_t n = 0; n < merged->num_nodes(); ++n) {
    const Node& node = merged->node(NodeId(n));
    if (node.kind == NodeKind::kWhile || node.name == "between") paths.push_back(node.name);
    if (node.name.ends_with("/step")) {
      EXPECT_EQ(merged->path(NodeId(n)), "a+b/" + node.name);
    }
    if (node.device == "gpu") hinted.push_back(node.op->name);
  }
  EXPECT_THAT(paths, UnorderedElementsAre("a+b", "between", "c"));
  EXPECT_THAT(hinted, ElementsAre("Less", "And", "Less", "And", "Or", "Where", "Where"));
}

TEST_F(MergeLoopsTest, WhatCannotBeMergedSaysWhy) {
  const auto why = [&](auto&& build) {
    GraphBuilder b(library_.ops());
    build(b, b.input("x", kRow));
    Result<Graph> graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    for (uint32_t n = 0; n < graph->num_nodes(); ++n) {
      const Node& node = graph->node(NodeId(n));
      if (node.kind == NodeKind::kWhile && node.region == Graph::kRoot) {
        return why_not_merged(*graph, NodeId(n));
      }
    }
    return std::string("no loop");
  };
  const auto always = [](GraphBuilder& b) {
    return [&b](Value, ValueSpan c) { return WhileTest{b.scalar(true), {c[0]}}; };
  };
  const auto same = [](Value, ValueSpan f) { return std::vector<Value>{f[0]}; };
  EXPECT_EQ(why([&](GraphBuilder& b, Value x) {
              b.output("y", b.while_loop({.initial = {x}}, always(b), same)[0]);
            }),
            "");
  EXPECT_EQ(why([&](GraphBuilder& b, Value x) {
              const auto rows = [](Value, ValueSpan f) { return std::vector<Value>{f[0], f[0]}; };
              b.output("y",
                       b.while_loop({.initial = {x}, .num_scan_outputs = 1}, always(b), rows)[1]);
            }),
            "it stacks rows");
  EXPECT_EQ(why([&](GraphBuilder& b, Value x) {
              const auto other = [&](Value, ValueSpan c) {
                return WhileTest{b.scalar(true), {b.op("Neg", {c[0]})}};
              };
              b.output("y", b.while_loop({.initial = {x}}, other, same)[0]);
            }),
            "it forwards other values");
  EXPECT_EQ(why([&](GraphBuilder& b, Value x) {
              const auto longer = [&](Value, ValueSpan f) {
                return std::vector<Value>{b.op("Concat", {f[0], f[0]}, {{"axis", int64_t{0}}})};
              };
              b.output("y", b.while_loop({.initial = {x}}, always(b), longer)[0]);
            }),
            "a value that it carries has no fixed shape");
  EXPECT_EQ(why([&](GraphBuilder& b, Value x) {
              const auto inner = [&](Value, ValueSpan f) {
                return b.while_loop({.initial = {f[0]}}, always(b), same);
              };
              b.output("y", b.while_loop({.initial = {x}}, always(b), inner)[0]);
            }),
            "there are loops or branches inside");
}

TEST_F(MergeLoopsTest, OneLoopHasNoSiblings) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kRow);
  const auto before = [&](Value, ValueSpan c) { return WhileTest{b.scalar(true), {c[0]}}; };
  const auto after = [](Value, ValueSpan f) { return std::vector<Value>{f[0]}; };
  b.output("y", b.while_loop({.initial = {x}}, before, after)[0]);
  Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_THAT(find_siblings(*graph, loops_of(*graph)), IsEmpty());
}

}  // namespace
}  // namespace eddy
