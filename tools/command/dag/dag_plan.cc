#include "tools/command/dag/dag_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "graph/analysis/rank.h"
#include "graph/analysis/topological_order.h"
#include "graph/analysis/transitive_reduction.h"
#include "graph/base/check.h"
#include "graph/schedule/streams/command_list.h"
#include "graph/schedule/streams/issue_order.h"
#include "graph/schedule/streams/matching_assignment.h"

namespace eddy {
namespace {

StreamOptions stream_options(const DagFile& file, const DagPlanOptions& options) {
  StreamOptions result;
  result.policy = options.policy;
  result.max_streams = options.max_streams;
  if (options.rank_by_costs) result.costs = file.costs;
  result.commands = file.commands;
  result.devices = file.devices;
  result.further_devices = file.further_devices;
  return result;
}

Status check_options(const DagFile& file, const DagPlanOptions& options) {
  if (options.rank_by_costs && file.costs.empty() && file.num_nodes > 0) {
    return invalid_argument("ranking by costs needs \"costs\" in the DAG file");
  }
  return Status::ok();
}

// The steps of plan_dag, sharing what they make.
class DagPlanner {
 public:
  DagPlanner(const DagFile& file, const DagPlanOptions& options)
      : file_(file), options_(options), stream_options_(stream_options(file, options)) {}

  Result<DagPlan> run() {
    EDDY_RETURN_IF_ERROR(check_options(file_, options_));
    EDDY_RETURN_IF_ERROR(step("build", &DagPlanner::build));
    EDDY_RETURN_IF_ERROR(step("rank", &DagPlanner::rank));
    EDDY_RETURN_IF_ERROR(step("reduce", &DagPlanner::reduce));
    EDDY_RETURN_IF_ERROR(step("order", &DagPlanner::order));
    EDDY_RETURN_IF_ERROR(step("assign", &DagPlanner::assign));
    EDDY_RETURN_IF_ERROR(step("synchronise", &DagPlanner::synchronise));
    EDDY_RETURN_IF_ERROR(step("prove", &DagPlanner::prove));
    return std::move(plan_);
  }

 private:
  Status step(const char* name, Status (DagPlanner::*action)()) {
    const auto start = std::chrono::steady_clock::now();
    Status status = (this->*action)();
    const auto elapsed = std::chrono::steady_clock::now() - start;
    plan_.steps.push_back(
        {name, std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count()});
    return status;
  }

  Status build() {
    EDDY_ASSIGN_OR_RETURN(dag_, build_dag(file_.num_nodes, file_.edges));
    return Status::ok();
  }
  Status rank() {
    const std::vector<uint32_t> order = topological_order(dag_);
    plan_.unit_ranks = unit_ranks(dag_, order);
    EDDY_CHECK(plan_.unit_ranks.size() == file_.num_nodes) << "a node without a rank";
    if (options_.rank_by_costs) plan_.cost_ranks = cost_ranks(dag_, order, file_.costs);
    for (double rank : plan_.cost_ranks) {
      if (!std::isfinite(rank)) return invalid_argument("the costs of a chain add up to infinity");
    }
    return Status::ok();
  }
  Status reduce() {
    reduced_ = transitive_reduction(dag_);
    EDDY_CHECK(reduced_.num_nodes() == dag_.num_nodes() && reduced_.num_edges() <= dag_.num_edges())
        << "a reduction to " << reduced_.num_edges() << " edges";
    plan_.reduced_edges = reduced_.num_edges();
    return Status::ok();
  }
  Status order() {
    plan_.issue_order = issue_order(plan_.unit_ranks, plan_.cost_ranks);
    EDDY_DCHECK(is_topological(dag_, plan_.issue_order)) << "a node is issued before a parent";
    return Status::ok();
  }
  Status assign();
  void list_streams_by_device();
  Status synchronise() {
    plan_.syncs = plan_syncs(reduced_, plan_.streams, plan_.issue_order);
    return Status::ok();
  }
  Status prove();

  const DagFile& file_;
  const DagPlanOptions& options_;
  StreamOptions stream_options_;
  Dag dag_;
  Dag reduced_;
  DagPlan plan_;
};

Status DagPlanner::assign() {
  if (options_.policy != AssignPolicy::kMatching) {
    plan_.streams = assign_streams(dag_, plan_.issue_order, stream_options_);
    plan_.matching = matching_size(reduced_, stream_options_);
    list_streams_by_device();
    return Status::ok();
  }
  MatchingAssignment matched = assign_by_matching(reduced_, plan_.issue_order, stream_options_);
  plan_.matching = matched.matching_size;
  plan_.streams = std::move(matched.streams);
  list_streams_by_device();
  // Each claim where it holds: a cap puts chains together.
  const FewestStreams fewest = plan_.streams.fewest;
  if (matched.above_fewest > 0 && fewest != FewestStreams::kCapped) {
    plan_.notices.push_back("matching: two nodes may share several devices; at most " +
                            std::to_string(matched.above_fewest) +
                            " waits above the fewest, streams not proved fewest");
  } else {
    plan_.notices.push_back(streams_notice(fewest));
  }
  return Status::ok();
}

// Puts each node's streams into the order in which the file lists its devices.
void DagPlanner::list_streams_by_device() {
  std::vector<NodeStream>& further = plan_.streams.further;
  EDDY_CHECK(further.size() == file_.listed_devices.size() &&
             plan_.streams.stream_of_node.size() == file_.num_nodes)
      << further.size() << " further streams for " << file_.listed_devices.size() << " devices";
  std::vector<uint32_t> stream_on(file_.device_names.size());  // of the node at hand, by device
  for (size_t first = 0, end = 0; first < further.size(); first = end) {
    for (; end < further.size() && further[end].node == further[first].node; ++end) {
      stream_on[plan_.streams.device_of_stream[further[end].stream]] = further[end].stream;
    }
    // Both lists go by node and have one entry for each of its further devices.
    for (size_t i = first; i < end; ++i) {
      EDDY_DCHECK(further[i].node == file_.listed_devices[i].node) << "node " << further[i].node;
      further[i].stream = stream_on[file_.listed_devices[i].device];
    }
  }
}

Status DagPlanner::prove() {
  const std::vector<Program::Step> commands =
      command_list(plan_.issue_order, plan_.streams, plan_.syncs);
  std::vector<RequiredOrder> required;
  required.reserve(file_.edges.size());
  // The edges as given: the proof rests on nothing that planning derived from them.
  for (const Edge& edge : file_.edges) required.push_back({edge.from, edge.to});
  plan_.proof = prove_order(file_.num_nodes, commands, required);
  return Status::ok();
}

}  // namespace

Result<DagPlan> plan_dag(const DagFile& file, const DagPlanOptions& options) {
  return DagPlanner(file, options).run();
}

}  // namespace eddy
