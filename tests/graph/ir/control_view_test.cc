// Claim: the views give, under each name, the value that the builder was given or gave for it. The
// relation between regions equals a walk over their owners, one by one.
#include "graph/ir/control_view.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

using Ids = std::vector<ValueId>;

Ids ids(std::span<const Value> values) {
  Ids result;
  for (const Value value : values) result.push_back(value.id);
  return result;
}
Ids ids(std::span<const ValueId> values) { return {values.begin(), values.end()}; }

Value make(GraphBuilder& b, std::initializer_list<Value> from) {
  return b.op("Make", from, {{"size", int64_t{8}}}, {.domain = "nested"});
}
Value test(GraphBuilder& b, Value from) { return b.op("Test", {from}, {}, {.domain = "nested"}); }
// Creates a builder with the opset of the operators set.
GraphBuilder new_builder() {
  GraphBuilder b(nested_ops());
  b.set_opset("nested", 1);
  return b;
}
NodeId first_control(const Graph& graph) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).kind != NodeKind::kExec) return NodeId(n);
  }
  return {};
}

TEST(LoopView, GivesWhatTheBuilderWasGiven) {
  GraphBuilder b = new_builder();
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const Value limit = b.scalar(int64_t{5});
  Value iteration, after_iteration;
  WhileTest tested;
  Ids carried, received;
  std::vector<Value> given;
  const std::vector<Value> made = b.while_loop(
      {.initial = {x, make(b, {x})}, .trip_limit = limit, .num_scan_outputs = 2},
      [&](Value count, ValueSpan values) {
        iteration = count;
        carried = ids(values);
        return tested = {test(b, values[0]), {values[1], make(b, {x}), values[0]}};
      },
      [&](Value count, ValueSpan values) {
        after_iteration = count;
        received = ids(values);
        return given = {make(b, {x}), values[0], make(b, {values[1]}), make(b, {values[2]})};
      });
  b.output("y", made[0]);
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const LoopView loop(*graph, first_control(*graph));
  EXPECT_EQ(loop.trip_limit(), limit.id);
  EXPECT_EQ(loop.initial()[0], x.id);
  EXPECT_EQ(loop.num_carried(), 2u);
  EXPECT_EQ(loop.num_forwarded(), 3u);
  EXPECT_EQ(loop.iteration(), iteration.id);
  EXPECT_EQ(ids(loop.carried()), carried);
  EXPECT_EQ(loop.predicate(), tested.predicate.id);
  EXPECT_EQ(ids(loop.forwarded()), ids(tested.forwarded));
  EXPECT_EQ(loop.after_iteration(), after_iteration.id);
  EXPECT_EQ(ids(loop.received()), received);
  EXPECT_EQ(ids(loop.next()), ids(ValueSpan(given).first(2)));
  EXPECT_EQ(ids(loop.rows()), ids(ValueSpan(given).last(2)));
  EXPECT_EQ(ids(loop.outputs()), ids(ValueSpan(made).first(3)));
  EXPECT_EQ(ids(loop.stacked()), ids(ValueSpan(made).last(2)));
  EXPECT_EQ(role(*graph, Graph::kRoot), RegionRole::kRoot);
  EXPECT_EQ(role(*graph, loop.before_id()), RegionRole::kBefore);
  EXPECT_EQ(role(*graph, loop.after_id()), RegionRole::kAfter);
  EXPECT_TRUE(loop.has(loop.after_id()) && !loop.has(Graph::kRoot));
  EXPECT_TRUE(is_iteration(*graph, iteration.id) && is_iteration(*graph, after_iteration.id));
  EXPECT_FALSE(is_iteration(*graph, x.id));
  EXPECT_TRUE(is_carried(*graph, carried[0]));
  EXPECT_FALSE(is_carried(*graph, iteration.id) || is_carried(*graph, received[0]));
}

TEST(CaseView, GivesWhatTheBuilderWasGiven) {
  GraphBuilder b = new_builder();
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const Value selector = b.input("selector", tensor_type(ElementType::kInt64, {}));
  std::vector<Value> first, second;
  const std::vector<CaseBody> bodies = {[&] {
                                          return first = {make(b, {x}), x};
                                        },
                                        [&] {
                                          return second = {x, make(b, {x})};
                                        }};
  const std::vector<Value> made = b.case_of({.selector = selector, .pass_through = {x, x}}, bodies);
  b.output("y", made[1]);
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const CaseView choice(*graph, first_control(*graph));
  EXPECT_EQ(choice.selector(), selector.id);
  EXPECT_EQ(choice.num_branches(), 2u);
  EXPECT_EQ(ids(choice.results(0)), ids(first));
  EXPECT_EQ(ids(choice.results(1)), ids(second));
  EXPECT_TRUE(choice.has_pass_through());
  EXPECT_EQ(ids(choice.pass_through()), (Ids{x.id, x.id}));
  EXPECT_EQ(ids(choice.outputs()), ids(made));
  EXPECT_EQ(role(*graph, choice.node().regions[1]), RegionRole::kBranch);
  EXPECT_FALSE(are_in_one_iteration(*graph, choice.node().regions[0], choice.node().regions[1]));
}

// The region and all around it.
std::set<RegionId> regions_around(const Graph& graph, RegionId region) {
  std::set<RegionId> around = {region};
  while (!graph.region(region).owner.is_none()) {
    region = graph.node(graph.region(region).owner).region;
    around.insert(region);
  }
  return around;
}

void check_pair(const Graph& graph, RegionId a, RegionId b) {
  const RegionTree tree(graph);
  const std::set<RegionId> around_a = regions_around(graph, a), around_b = regions_around(graph, b);
  EXPECT_EQ(tree.is_within(a, b), around_a.contains(b));
  RegionId deepest = Graph::kRoot;
  for (const RegionId region : around_a) {
    const bool is_deeper = regions_around(graph, region).size() > tree.depth(deepest) + 1;
    if (around_b.contains(region) && is_deeper) deepest = region;
  }
  EXPECT_EQ(tree.common(a, b), deepest);
  const NodeId owner = graph.region(b).owner;
  const bool takes_turns = !owner.is_none() && owner == graph.region(a).owner &&
                           graph.node(owner).kind == NodeKind::kWhile;
  EXPECT_EQ(are_in_one_iteration(graph, a, b), a == b || takes_turns);
  if (around_a.contains(b)) {
    const NodeId holder = tree.container(a, b);
    EXPECT_EQ(holder.is_none(), a == b);
    EXPECT_TRUE(holder.is_none() || (graph.node(holder).region == b && tree.is_inside(a, holder)));
  }
}

TEST(RegionTree, SaysWhatTheOwnersSay) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = nested_graph(seed);
    for (uint32_t a = 0; a < graph.num_regions(); ++a) {
      EXPECT_EQ(RegionTree(graph).depth(RegionId(a)) + 1,
                regions_around(graph, RegionId(a)).size());
      for (uint32_t b = 0; b < graph.num_regions(); ++b) {
        check_pair(graph, RegionId(a), RegionId(b));
      }
      for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
        bool is_inside = false;
        for (const RegionId region : regions_around(graph, RegionId(a))) {
          is_inside |= graph.region(region).owner == NodeId(n);
        }
        EXPECT_EQ(RegionTree(graph).is_inside(RegionId(a), NodeId(n)), is_inside);
      }
    }
  }
}

TEST(CountUses, CountsEachReaderAndEachResultOnce) {
  GraphBuilder b = new_builder();
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const Value unread = make(b, {x});
  const Value read = make(b, {x, x});
  const Value chosen = b.if_else(
      test(b, read), [&] { return std::vector<Value>{read}; },
      [&] { return std::vector<Value>{x}; })[0];
  b.output("y", chosen);
  b.output("x again", read);
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const std::vector<uint32_t> uses = count_uses(*graph);
  EXPECT_EQ(uses[unread.id.index()], 0u);
  EXPECT_EQ(uses[x.id.index()], 4u);     // three reads, one result of a branch
  EXPECT_EQ(uses[read.id.index()], 3u);  // a read, a result of a branch, an output
  EXPECT_EQ(uses[chosen.id.index()], 1u);
}

TEST(NodeFacts, TellStaticNodesAndHostReads) {
  GraphBuilder b = new_builder();
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const Value open = b.input("open", tensor_type(ElementType::kFloat, {kUnknownDim}));
  const Value fixed = make(b, {x});
  b.output("fixed", fixed);
  b.output("open too", b.op("Step", {open, x}, {}, {.domain = "nested"}));
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_TRUE(is_static_node(*graph, graph->node(NodeId(0))));
  EXPECT_FALSE(is_static_node(*graph, graph->node(NodeId(1))));
  EXPECT_TRUE(is_static_pair(*graph, x.id, fixed.id));
  EXPECT_FALSE(is_static_pair(*graph, open.id, open.id));
  EXPECT_FALSE(has_host_values(*graph, graph->node(NodeId(0))));
}

}  // namespace
}  // namespace eddy
