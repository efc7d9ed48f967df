#include "tests/graph/schedule/streams/plans.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "graph/analysis/rank.h"
#include "graph/analysis/topological_order.h"
#include "graph/schedule/streams/command_list.h"
#include "graph/schedule/streams/issue_order.h"

namespace eddy::testing {

PlannedDag plan(const Dag& dag, const StreamOptions& options) {
  PlannedDag result;
  const std::vector<uint32_t> order = topological_order(dag);
  std::vector<double> ranks;
  if (!options.costs.empty()) ranks = cost_ranks(dag, order, options.costs);
  result.order = issue_order(unit_ranks(dag, order), ranks);
  result.streams = assign_streams(dag, result.order, options);
  result.syncs = plan_syncs(dag, result.streams, result.order);
  result.commands = command_list(result.order, result.streams, result.syncs);
  return result;
}

Proof prove(const Dag& dag, const std::vector<Program::Step>& commands) {
  std::vector<RequiredOrder> required;
  for (const Edge& edge : dag.edges()) required.push_back({edge.from, edge.to});
  return prove_order(dag.num_nodes(), commands, required);
}

std::vector<std::vector<uint32_t>> nodes_of_streams(const StreamAssignment& streams) {
  std::vector<std::vector<uint32_t>> nodes(streams.num_streams);
  for (uint32_t node = 0; node < streams.stream_of_node.size(); ++node) {
    streams.for_each_stream_of(node, [&](uint32_t stream) { nodes[stream].push_back(node); });
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

Placement random_placement(Random& random, uint32_t num_nodes, uint32_t num_devices) {
  Placement placement;
  for (uint32_t node = 0; node < num_nodes; ++node) {
    const uint32_t first = static_cast<uint32_t>(random.below(num_devices));
    placement.devices.push_back(first);
    for (uint32_t device = 0; device < num_devices; ++device) {
      if (device != first && random.below(5) == 0) placement.further.push_back({node, device});
    }
  }
  return placement;
}

namespace {

class Queues {
 public:
  Queues(uint32_t num_nodes, const std::vector<Program::Step>& commands)
      : times_(num_nodes), streams_of_node_(num_nodes) {
    for (const Program::Step& command : commands) {
      queues_[command.stream].push_back(command);
      if (command.op == Program::Op::kRecord) recorded_later_.insert(command.operand);
      if (command.op == Program::Op::kLaunch) {
        streams_of_node_[command.operand].push_back(command.stream);
      }
    }
  }

  std::vector<NodeTimes> run(Random& random) {
    while (!queues_.empty()) {
      std::vector<uint32_t> ready;
      for (const auto& [stream, queue] : queues_) {
        if (can_advance(stream)) ready.push_back(stream);
      }
      if (ready.empty()) return {};
      advance(ready[random.below(ready.size())]);
    }
    return times_;
  }

 private:
  bool can_advance(uint32_t stream) const {
    const Program::Step& command = queues_.at(stream).front();
    if (command.op == Program::Op::kWait) {
      return happened_.contains(command.operand) || !recorded_later_.contains(command.operand);
    }
    if (command.op == Program::Op::kRecord || running_.contains(command.operand)) return true;
    const std::vector<uint32_t>& joint = streams_of_node_[command.operand];
    return std::all_of(joint.begin(), joint.end(), [&](uint32_t other) {
      const auto queue = queues_.find(other);
      return queue != queues_.end() && queue->second.front().op == Program::Op::kLaunch &&
             queue->second.front().operand == command.operand;
    });
  }
  // A launch takes two steps, so that others can come in between.
  void advance(uint32_t stream) {
    ++now_;
    const Program::Step command = queues_.at(stream).front();
    if (command.op == Program::Op::kRecord) happened_.insert(command.operand);
    if (command.op != Program::Op::kLaunch) return pop(stream);
    if (running_.insert(command.operand).second) {
      times_[command.operand].start = now_;
      return;
    }
    times_[command.operand].end = now_;
    for (uint32_t joint : streams_of_node_[command.operand]) pop(joint);
  }
  void pop(uint32_t stream) {
    queues_.at(stream).pop_front();
    if (queues_.at(stream).empty()) queues_.erase(stream);
  }

  std::map<uint32_t, std::deque<Program::Step>> queues_;
  std::vector<NodeTimes> times_;
  std::vector<std::vector<uint32_t>> streams_of_node_;
  std::set<uint32_t> recorded_later_;
  std::set<uint32_t> happened_;
  std::set<uint32_t> running_;
  uint64_t now_ = 0;
};

}  // namespace

std::vector<NodeTimes> run_queues(uint32_t num_nodes, const std::vector<Program::Step>& commands,
                                  Random& random) {
  return Queues(num_nodes, commands).run(random);
}

}  // namespace eddy::testing
