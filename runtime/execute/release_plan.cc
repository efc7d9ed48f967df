#include "runtime/execute/release_plan.h"

#include <algorithm>

#include "runtime/execute/temporaries.h"

namespace eddy {
namespace {

constexpr size_t kMaxClocks = size_t{1} << 24;
constexpr size_t kWindow = 64;  // nodes looked at behind the last reader

bool is_fixed(const ValueType& type) { return type.is_tensor() && type.tensor.is_static(); }

// The order of one region's launches: launch b is behind launch a when its clock has seen a.
class RegionOrder {
 public:
  RegionOrder(const Program& program, const Program::Block& block,
              std::vector<uint32_t>& position_of_node)
      : num_streams_(static_cast<uint32_t>(block.streams.size())), position_(position_of_node) {
    const auto num_nodes = static_cast<size_t>(std::ranges::count_if(
        block.steps, [](const Program::Step& step) { return is_node(step.op); }));
    is_known_ = num_streams_ == 1 || num_nodes * num_streams_ <= kMaxClocks;
    if (is_known_) walk(program, block);
  }

  // The first launch that is behind all of `nodes`; none where there is no such launch nearby.
  NodeId find_behind(const std::vector<NodeId>& nodes) const {
    if (!is_known_) return {};
    size_t first = 0;
    for (NodeId node : nodes) first = std::max<size_t>(first, position_[node.index()]);
    if (num_streams_ == 1) return launches_[first];
    const size_t end = std::min(launches_.size(), first + kWindow);
    for (size_t at = first; at < end; ++at) {
      const auto is_seen = [&](NodeId node) { return is_behind(at, position_[node.index()]); };
      if (std::ranges::all_of(nodes, is_seen)) return launches_[at];
    }
    return {};
  }

 private:
  bool is_behind(size_t later, size_t earlier) const {
    const uint32_t stream = streams_[earlier];
    return clocks_[later * num_streams_ + stream] >= counts_[earlier];
  }

  void walk(const Program& program, const Program::Block& block) {
    std::vector<uint32_t> now(size_t{num_streams_} * num_streams_, 0);  // by stream
    std::vector<uint32_t> recorded(size_t{block.num_events} * num_streams_, 0);
    const auto row = [&](std::vector<uint32_t>& table, uint32_t i) {
      return std::span(table).subspan(size_t{i} * num_streams_, num_streams_);
    };
    for (const Program::Step& step : block.steps) {
      const auto stream = local_stream(block, step.stream);
      const auto clock = row(now, stream);
      if (is_node(step.op)) {
        const NodeId node = node_of(program, step);
        ++clock[stream];
        position_[node.index()] = static_cast<uint32_t>(launches_.size());
        launches_.push_back(node);
        streams_.push_back(stream);
        counts_.push_back(clock[stream]);
        if (num_streams_ > 1) clocks_.insert(clocks_.end(), clock.begin(), clock.end());
      } else if (step.op == Program::Op::kRecord) {
        std::ranges::copy(clock, row(recorded, step.operand).begin());
      } else if (step.op == Program::Op::kWait) {
        const auto other = row(recorded, step.operand);
        for (uint32_t s = 0; s < num_streams_; ++s) clock[s] = std::max(clock[s], other[s]);
      }
    }
  }

  const uint32_t num_streams_;
  bool is_known_ = false;
  std::vector<uint32_t>& position_;  // of nodes, among the launches of their region
  std::vector<NodeId> launches_;
  std::vector<uint32_t> streams_, counts_;  // by launch; counts: how many its stream has run
  std::vector<uint32_t> clocks_;            // by launch and stream
};

// What happens to one value, under all its names.
struct Use {
  std::vector<NodeId> readers;        // in the region where it is defined
  std::vector<NodeId> after_readers;  // defined in `before`: in that loop's `after`
  bool is_forwarded = false;          // defined in `before`: the loop's results may take it
  bool is_kept = false;               // moved on at the end of a region
};

class Releases {
 public:
  Releases(const Graph& graph, const Plan& plan)
      : graph_(graph), plan_(plan), uses_(graph.num_values()), result_(graph.num_nodes()) {}

  ReleasePlan make() {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(n));
      for (ValueId value : node.inputs) {
        if (!value.is_none()) read(value, node.region, NodeId(n));
      }
    }
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      read_results(RegionId(r));
      keep_retained(plan_.program.blocks[r]);
    }
    by_region_.resize(graph_.num_regions());
    for (uint32_t v = 0; v < graph_.num_values(); ++v) sort_in(ValueId(v));
    std::vector<uint32_t> positions(graph_.num_nodes(), 0);
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      if (by_region_[r].empty()) continue;
      const RegionOrder order(plan_.program, plan_.program.blocks[r], positions);
      for (const auto& [value, readers] : by_region_[r]) {
        const NodeId node = order.find_behind(*readers);
        // What an open loop's tail lets go of must be what it waits for itself.
        const bool is_known = !is_pipelined(plan_.program, plan_.program.blocks[r]) ||
                              std::ranges::find(*readers, node) != readers->end();
        if (!node.is_none() && is_known) result_[node.index()].push_back(value);
      }
    }
    return std::move(result_);
  }

 private:
  bool is_before(RegionId region) const {
    const NodeId owner = graph_.region(region).owner;
    return !owner.is_none() && graph_.node(owner).kind == NodeKind::kWhile &&
           graph_.node(owner).regions[0] == region;
  }
  // True when `inner` is the `after` of the loop whose `before` is `outer`.
  bool is_after_of(RegionId inner, RegionId outer) const {
    return inner != outer && graph_.region(inner).owner == graph_.region(outer).owner &&
           is_before(outer);
  }

  // `node`, which stands in `region`, reads the value.
  void read(ValueId name, RegionId region, NodeId node) {
    const ValueId value = resolve_forwarded(graph_, name);
    const RegionId home = graph_.value(value).region;
    if (graph_.value(value).origin == ValueOrigin::kConstant) return;
    Use& use = uses_[value.index()];
    while (region != home && !is_after_of(region, home)) {
      node = graph_.region(region).owner;
      region = graph_.node(node).region;
    }
    (region == home ? use.readers : use.after_readers).push_back(node);
  }

  void read_results(RegionId region) {
    const Region& self = graph_.region(region);
    for (size_t k = 0; k < self.results.size(); ++k) {
      const ValueId value = resolve_forwarded(graph_, self.results[k]);
      const RegionId home = graph_.value(value).region;
      Use& use = uses_[value.index()];
      if (home == region && is_before(region) && k > 0) {
        use.is_forwarded = true;
      } else if (home == region || is_after_of(region, home)) {
        use.is_kept = true;
      } else if (!self.owner.is_none()) {
        read(value, graph_.node(self.owner).region, self.owner);
      }
    }
  }

  // Read by others than those that read it by name; made anew in the next iteration.
  void keep_retained(const Program::Block& block) {
    for (const Program::Step& step : block.steps) {
      if (step.op != Program::Op::kRetain) continue;
      for (const Program::Alias& alias : plan_.program.launches[step.operand].aliases) {
        uses_[resolve_forwarded(graph_, ValueId(alias.from)).index()].is_kept = true;
      }
    }
  }

  // Puts the value where its release is looked for, if it may be released at all.
  void sort_in(ValueId value) {
    const ValueInfo& info = graph_.value(value);
    if (is_fixed(info.type) || resolve_forwarded(graph_, value) != value) return;
    const bool is_parameter =
        info.origin == ValueOrigin::kParameter && info.region != Graph::kRoot && info.index > 0;
    if (info.origin != ValueOrigin::kNodeOutput && !is_parameter) return;
    Use& use = uses_[value.index()];
    if (use.is_kept) return;
    if (!use.after_readers.empty()) {
      const NodeId loop = graph_.region(info.region).owner;
      by_region_[graph_.node(loop).regions[1].index()].emplace_back(value, &use.after_readers);
      return;
    }
    if (use.is_forwarded) return;
    if (use.readers.empty() && !is_parameter) use.readers.push_back(info.producer);
    if (!use.readers.empty()) by_region_[info.region.index()].emplace_back(value, &use.readers);
  }

  const Graph& graph_;
  const Plan& plan_;
  std::vector<Use> uses_;  // by the ValueId that names resolve to
  std::vector<std::vector<std::pair<ValueId, const std::vector<NodeId>*>>> by_region_;
  ReleasePlan result_;
};

}  // namespace

ReleasePlan plan_releases(const Graph& graph, const Plan& plan) {
  return Releases(graph, plan).make();
}

}  // namespace eddy
