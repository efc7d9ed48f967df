// Claim: on random graphs of nested loops and branches, alias_sources() names exactly the values
// that a value takes over when the graph is run, each under its kind; what it gives no source is
// new. resolve_forwarded() names a value that is the same at every moment at which it is read.
//
// The model runs a graph by the rules at the head of graph.h, by position, on numbers that stand
// for contents: a node gives new ones, a view hands on its input's. It runs each loop for two
// iterations and each branch of a case-of once before it takes one.
#include "graph/ir/aliases.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "graph/base/random.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

constexpr int kIterations = 2;

class TokenRun {
 public:
  TokenRun(const Graph& graph, uint64_t seed)
      : graph_(graph), random_(seed), tokens_(graph.num_values(), 0) {}

  void run() {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      if (graph_.value(ValueId(v)).origin == ValueOrigin::kConstant) make(ValueId(v));
    }
    for (const ValueId input : graph_.inputs()) make(input);
    region(Graph::kRoot);
    for (uint32_t v = 0; v < graph_.num_values(); ++v) compare(ValueId(v));
  }
  size_t num_steps() const { return seen_.size(); }

 private:
  using Step = std::tuple<ValueId, AliasKind, RegionId>;

  void make(ValueId value) {
    tokens_[value.index()] = ++last_;
    seen_[value];
  }
  void take(ValueId value, ValueId from, uint64_t token, AliasKind kind, RegionId named) {
    tokens_[value.index()] = token;
    seen_[value].insert({from, kind, named});
  }
  void take(ValueId value, ValueId from, AliasKind kind, RegionId named) {
    take(value, from, token(from), kind, named);
  }
  uint64_t token(ValueId value) const {
    const ValueId root = resolve_forwarded(graph_, value);
    EXPECT_EQ(tokens_[root.index()], tokens_[value.index()]) << "value " << value.index();
    return tokens_[value.index()];
  }

  void region(RegionId id) {
    for (const NodeId node : graph_.region(id).nodes) {
      for (const ValueId input : graph_.node(node).inputs) {
        if (!input.is_none()) token(input);
      }
      switch (graph_.node(node).kind) {
        case NodeKind::kExec:
          exec(graph_.node(node));
          break;
        case NodeKind::kWhile:
          loop(graph_.node(node));
          break;
        case NodeKind::kCaseOf:
          choice(graph_.node(node));
          break;
      }
    }
  }

  void exec(const Node& node) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const bool is_view = node.op->is_view && i == 0;
      if (is_view) take(node.outputs[i], node.inputs[0], AliasKind::kView, node.region);
      if (!is_view) make(node.outputs[i]);
    }
  }

  void loop(const Node& node) {
    const Region& before = graph_.region(node.regions[0]);
    const Region& after = graph_.region(node.regions[1]);
    for (size_t k = 1; k < before.parameters.size(); ++k) {
      take(before.parameters[k], node.inputs[k], AliasKind::kInitial, node.region);
    }
    for (int i = 0;; ++i) {
      make(before.parameters[0]);
      region(node.regions[0]);
      if (i == kIterations) break;
      make(after.parameters[0]);
      for (size_t k = 1; k < after.parameters.size(); ++k) {
        take(after.parameters[k], before.results[k], AliasKind::kForwarded, node.regions[0]);
      }
      region(node.regions[1]);
      std::vector<uint64_t> next;  // all at once
      for (const ValueId result : after.results) next.push_back(token(result));
      for (size_t k = 1; k < before.parameters.size(); ++k) {
        take(before.parameters[k], after.results[k - 1], next[k - 1], AliasKind::kNext,
             node.regions[1]);
      }
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (k + 1 >= before.results.size()) {
        make(node.outputs[k]);
      } else {
        take(node.outputs[k], before.results[k + 1], AliasKind::kLeft, node.regions[0]);
      }
    }
  }

  void choice(const Node& node) {
    std::vector<std::optional<size_t>> ways;
    for (size_t branch = 0; branch < node.regions.size(); ++branch) ways.push_back(branch);
    if (node.inputs.size() > 1) ways.push_back(std::nullopt);
    std::swap(ways.back(), ways[random_.below(ways.size())]);
    for (const std::optional<size_t> way : ways) {
      if (way) region(node.regions[*way]);
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        if (way) {
          const RegionId taken = node.regions[*way];
          take(node.outputs[k], graph_.region(taken).results[k], AliasKind::kBranch, taken);
        } else {
          take(node.outputs[k], node.inputs[k + 1], AliasKind::kPassThrough, node.region);
        }
      }
    }
  }

  void compare(ValueId value) {
    const auto seen = seen_.find(value);
    ASSERT_NE(seen, seen_.end()) << "value " << value.index() << " was not run";
    std::set<Step> named;
    for (const AliasSource& source : alias_sources(graph_, value)) {
      named.insert({source.value, source.kind, source.region});
    }
    EXPECT_EQ(named, seen->second) << "value " << value.index();
  }

  const Graph& graph_;
  Random random_;
  uint64_t last_ = 0;
  std::vector<uint64_t> tokens_;            // by ValueId
  std::map<ValueId, std::set<Step>> seen_;  // what each has taken over
};

TEST(Aliases, AreWhatARunTakesOver) {
  size_t num_seen = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = nested_graph(seed, {.max_depth = 4, .max_nodes = 40});
    TokenRun run(graph, seed);
    run.run();
    num_seen += run.num_steps();
  }
  EXPECT_GT(num_seen, 300u * 5);
}

// Which of a loop's and its regions' values are made by the iteration itself.
TEST(Aliases, AreLocalWhereTheIterationMakesThem) {
  size_t num_local = 0, num_other = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = nested_graph(seed);
    for (uint32_t r = 1; r < graph.num_regions(); ++r) {
      const Region& region = graph.region(RegionId(r));
      const Node& owner = graph.node(region.owner);
      for (const ValueId result : region.results) {
        const ValueInfo& info = graph.value(resolve_forwarded(graph, result));
        bool is_made_here = info.origin == ValueOrigin::kNodeOutput;
        if (owner.kind == NodeKind::kWhile) {
          is_made_here &= info.region == owner.regions[0] || info.region == owner.regions[1];
        } else {
          is_made_here &= info.region == RegionId(r);
        }
        EXPECT_EQ(is_region_local(graph, result, RegionId(r)), is_made_here);
        ++(is_made_here ? num_local : num_other);
      }
    }
  }
  EXPECT_GT(num_local, 100u);
  EXPECT_GT(num_other, 100u);
}

}  // namespace
}  // namespace eddy
