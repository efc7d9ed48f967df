#include "graph/schedule/memory/spare_blocks.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

class SpareBlocks {
 public:
  SpareBlocks(const Graph& graph, const RegionTree& tree, const NodeOrder& order,
              const Storages& storages)
      : graph_(graph), tree_(tree), order_(order), storages_(storages), uses_(graph.num_values()) {
    const auto add = [this](ValueId value, RegionId region, NodeId node) {
      if (!value.is_none()) uses_[value.index()].push_back({region, node});
    };
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      for (const ValueId value : node.inputs) add(value, node.region, NodeId(n));
      for (const ValueId value : node.outputs) add(value, node.region, NodeId(n));
    }
    for (uint32_t r = 0; r < graph.num_regions(); ++r) {
      for (const ValueId value : graph.region(RegionId(r)).results)
        add(value, RegionId(r), NodeId());
    }
  }

  bool is_needless(const Storage& storage, ValueId holder) const {
    const Writer writer = find_writer(storage, holder);
    if (writer.node.is_none()) return false;
    for (const ValueId name : names(holder, writer)) {
      for (const Use& use : uses_[name.index()]) {
        if (!is_over(use, writer)) return false;
      }
    }
    if (writer.region == writer.before) return true;
    for (const ValueId name : names(storage.value, writer)) {
      for (const Use& use : uses_[name.index()]) {
        if (is_elsewhere(use, writer)) return false;
      }
    }
    return true;
  }

 private:
  struct Use {
    RegionId region;
    NodeId node;  // none: the end of the region
  };
  // A storage's writer, as the loop sees it: the node of `before` or `after` that writes it, maybe
  // within.
  struct Writer {
    NodeId loop;
    RegionId before, after;
    RegionId region;  // one of them
    NodeId node;
  };

  Writer find_writer(const Storage& storage, ValueId holder) const {
    const NodeId owner = tree_.owner(graph_.value(holder).region);
    const LoopView loop(graph_, owner);
    Writer writer{owner, loop.before_id(), loop.after_id(), {}, {}};
    const NodeId maker = graph_.value(storage.value).producer;
    const RegionId inside = graph_.node(maker).region;
    writer.region = tree_.is_within(inside, writer.after) ? writer.after : writer.before;
    writer.node = node_at({inside, maker}, writer.region);
    return writer;
  }
  // The node of `region` that uses it, maybe within.
  NodeId node_at(const Use& use, RegionId region) const {
    return use.region == region ? use.node : tree_.container(use.region, region);
  }

  // What stands for the same instance within the iteration, in the loop.
  std::vector<ValueId> names(ValueId first, const Writer& writer) const {
    std::vector<ValueId> found = {first};
    for (size_t i = 0; i < found.size(); ++i) {
      for (const ValueId next : storages_.names_of[found[i].index()]) {
        const ValueInfo& info = graph_.value(next);
        const bool is_turn = info.origin == ValueOrigin::kParameter && info.region == writer.before;
        const bool is_new = std::find(found.begin(), found.end(), next) == found.end();
        if (!is_turn && is_new && tree_.is_inside(info.region, writer.loop)) found.push_back(next);
      }
    }
    return found;
  }

  // In every order, when the writer starts. What is outside of the loop is no part of its
  // iteration.
  bool is_over(const Use& use, const Writer& writer) const {
    if (!tree_.is_within(use.region, writer.region)) {
      return writer.region == writer.after || !tree_.is_inside(use.region, writer.loop);
    }
    const NodeId node = node_at(use, writer.region);
    return !node.is_none() && order_.precedes(node, writer.node);
  }
  // Whether the use is on another stream of the writer's region.
  bool is_elsewhere(const Use& use, const Writer& writer) const {
    if (!tree_.is_within(use.region, writer.region)) return false;
    const NodeId node = node_at(use, writer.region);
    return !node.is_none() && order_.stream(node) != order_.stream(writer.node);
  }

  const Graph& graph_;
  const RegionTree& tree_;
  const NodeOrder& order_;
  const Storages& storages_;
  std::vector<std::vector<Use>> uses_;  // by ValueId
};

}  // namespace

void drop_spare_blocks(const Graph& graph, const RegionTree& tree, const NodeOrder& order,
                       Storages& storages) {
  const bool has_any = std::any_of(storages.all.begin(), storages.all.end(),
                                   [](const Storage& storage) { return !storage.holders.empty(); });
  if (!has_any) return;
  const SpareBlocks spare(graph, tree, order, storages);
  for (Storage& storage : storages.all) {
    if (storage.reason != NoBlock::kHasBlock) continue;
    EDDY_CHECK(storage.holders.size() <= kMaxHolders) << "more holders than are planned";
    std::erase_if(storage.holders,
                  [&](ValueId holder) { return spare.is_needless(storage, holder); });
  }
}

}  // namespace eddy
