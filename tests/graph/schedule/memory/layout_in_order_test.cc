// Claim: blocks that are placed one by one lie apart wherever their lives may overlap, in any order
// of completion that streams and waits allow, and share bytes where lives surely follow each other.
#include "graph/schedule/memory/layout_in_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/base/random.h"
#include "graph/ir/region_tree.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

constexpr uint64_t kAlignment = 64;

// Lives of random nodes of one graph, each in a region of the graph.
class RandomLives {
 public:
  RandomLives(const Graph& graph, const Schedule& schedule, uint64_t seed)
      : tree_(graph), order_(graph, schedule), lifetimes_(tree_, order_), random_(seed) {
    for (int i = 0; i < 80; ++i) add(graph);
    for (size_t b = 0; b < lives_.size(); ++b) blocks_[b].life = &lives_[b];
  }
  const std::vector<OrderedBlock>& blocks() const { return blocks_; }
  const Lifetimes& lifetimes() const { return lifetimes_; }
  bool may_overlap(size_t a, size_t b) const { return lifetimes_.overlap(lives_[a], lives_[b]); }

 private:
  void add(const Graph& graph) {
    const RegionId home(static_cast<uint32_t>(random_.below(graph.num_regions())));
    const std::vector<NodeId>& nodes = graph.region(home).nodes;
    if (nodes.empty()) return;
    std::vector<NodeId> touches;
    for (uint64_t i = 0; i <= random_.below(4); ++i) {
      touches.push_back(nodes[random_.below(nodes.size())]);
    }
    const auto position = [&](NodeId node) { return order_.issue_position(node); };
    std::ranges::sort(touches, {}, position);
    std::vector<Access> accesses;
    for (const NodeId node : touches) accesses.push_back({home, node, node == touches[0]});
    if (random_.below(20) == 0) accesses.push_back({home, NodeId(), false});
    lives_.push_back(lifetimes_.lifetime(home, accesses));
    const uint64_t size = kAlignment * (1 + random_.below(4));
    blocks_.push_back({size, nullptr, position(touches[0]), position(touches.back())});
  }

  const RegionTree tree_;
  const NodeOrder order_;
  const Lifetimes lifetimes_;
  Random random_;
  std::vector<Lifetime> lives_;
  std::vector<OrderedBlock> blocks_;
};

TEST(LayoutInOrderTest, OnlyBlocksWhoseLivesFollowEachOtherShareBytes) {
  uint64_t num_shared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    const RandomLives lives(graph, schedule_graph(graph, nested_options(seed)), seed);
    const std::vector<OrderedBlock>& blocks = lives.blocks();
    const Layout layout = lay_out_in_order(blocks, lives.lifetimes());
    ASSERT_EQ(layout.offsets_bytes.size(), blocks.size());
    for (size_t a = 0; a < blocks.size(); ++a) {
      const uint64_t begin = layout.offsets_bytes[a], end = begin + blocks[a].size_bytes;
      EXPECT_EQ(begin % kAlignment, 0u);
      EXPECT_LE(end, layout.peak_bytes);
      for (size_t b = 0; b < a; ++b) {
        const uint64_t other = layout.offsets_bytes[b];
        if (other >= end || begin >= other + blocks[b].size_bytes) continue;
        EXPECT_FALSE(lives.may_overlap(a, b)) << "blocks " << b << " and " << a;
        ++num_shared;
      }
    }
  }
  EXPECT_GT(num_shared, 1000u) << "the lives must be worth placing";
}

TEST(LayoutInOrderTest, NoBlocksTakeNoBytes) {
  const Graph graph = nested_graph(0);
  const RandomLives lives(graph, schedule_graph(graph, nested_options(0)), 0);
  EXPECT_EQ(lay_out_in_order({}, lives.lifetimes()).peak_bytes, 0u);
}

}  // namespace
}  // namespace eddy
