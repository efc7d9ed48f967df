#include "graph/compile/node_work.h"

#include <algorithm>
#include <optional>

#include "graph/base/check.h"
#include "graph/schedule/costs/cost_model.h"

namespace eddy {
namespace {

constexpr size_t kMaxSeen = 1 << 16;  // decisions of one control node that are looked at

std::optional<int64_t> constant_limit(const Graph& graph, const Node& loop) {
  EDDY_CHECK(loop.kind == NodeKind::kWhile) << loop.name << " has no trip limit";
  if (loop.inputs.empty() || loop.inputs[0].is_none()) return std::nullopt;
  const ValueInfo& value = graph.value(loop.inputs[0]);
  if (value.origin != ValueOrigin::kConstant) return std::nullopt;
  const TensorView view = graph.constant(value.constant).view();
  if (view.data == nullptr || view.element != ElementType::kInt64 || view.count() != 1) {
    return std::nullopt;
  }
  return std::max<int64_t>(0, view.as<int64_t>()[0]);
}

Decision decision_of(const Graph& graph, NodeId id, const CostTable* measured_or_null,
                     bool& is_guessed) {
  const Node& node = graph.node(id);
  EDDY_CHECK(node.kind != NodeKind::kExec) << node.name << " decides nothing";
  const bool is_loop = node.kind == NodeKind::kWhile;
  Decision decision;
  is_guessed = false;
  if (measured_or_null != nullptr) {
    const auto likely = measured_or_null->distributions.find(graph.path(id));
    if (likely != measured_or_null->distributions.end()) {
      for (const auto& [value, probability] : likely->second) {
        decision.distribution.push_back(
            {is_loop ? std::max<int64_t>(0, value) : value, probability});
      }
      return decision;
    }
    const auto seen = measured_or_null->decisions.find(graph.path(id));
    if (seen != measured_or_null->decisions.end()) {
      const size_t count = std::min(seen->second.size(), kMaxSeen);
      decision.trace.assign(seen->second.begin(),
                            seen->second.begin() + static_cast<ptrdiff_t>(count));
      for (int64_t& value : decision.trace) value = is_loop ? std::max<int64_t>(0, value) : value;
      return decision;
    }
  }
  is_guessed = true;
  if (is_loop) {
    const auto guessed = static_cast<int64_t>(kGuessedTrips);
    const int64_t limit = constant_limit(graph, node).value_or(INT64_MAX);
    is_guessed = limit > guessed;
    decision.trace = {std::min(limit, guessed)};
  } else {
    for (size_t r = 0; r < node.regions.size(); ++r) {
      decision.trace.push_back(static_cast<int64_t>(r));
    }
  }
  return decision;
}

// An operator that was faster on several workers takes as many as it made use of.
FluidDemand demand_of(const MeasuredCost& cost, double num_units) {
  if (cost.all_ns <= 0 || cost.all_ns >= cost.ns) return {.solo_ns = cost.ns};
  const double units = std::max(1.0, std::min(cost.ns / cost.all_ns, num_units));
  return {.solo_ns = cost.ns / units, .units = units};
}

}  // namespace

NodeWork measured_work(const Graph& graph, const CostTable* measured_or_null) {
  NodeWork work;
  work.nodes.resize(graph.num_nodes());
  work.controls.resize(graph.num_nodes());
  const std::vector<double> costs = estimate_costs_ns(graph, measured_or_null);
  EDDY_CHECK(costs.size() == graph.num_nodes()) << costs.size() << " costs";
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).kind == NodeKind::kExec) {
      work.nodes[n].solo_ns = costs[n];
      continue;
    }
    ControlWork& control = work.controls[n];
    control.decision = decision_of(graph, NodeId(n), measured_or_null, control.is_guessed);
    // By tests/bench/predict_bench, for a few carried scalars.
    control.enter.solo_ns = control.leave.solo_ns = 30;
    control.test.solo_ns = 4;
    control.advance.solo_ns = 6;
    control.select.solo_ns = 4;
    control.finish.solo_ns = 8;
  }
  return work;
}

NodeWork work_on(const Graph& graph, const FluidMachine& machine,
                 const CostTable* measured_or_null) {
  NodeWork work = measured_work(graph, measured_or_null);
  if (machine.flops_per_ns <= 0 || machine.bytes_per_ns <= 0) {
    for (uint32_t n = 0; measured_or_null != nullptr && n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      if (node.kind != NodeKind::kExec) continue;
      const MeasuredCost* const cost = measured_cost_or_null(*measured_or_null, graph, node);
      if (cost != nullptr) work.nodes[n] = demand_of(*cost, machine.num_units);
    }
    return work;
  }
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec) {
      // Decided where kernels run; the machine has the costs of decisions.
      work.controls[n] = {{.units = 0},
                          {.units = 0},
                          {.units = 0},
                          {.units = 0},
                          {.units = 0},
                          {.units = 0},
                          std::move(work.controls[n].decision),
                          work.controls[n].is_guessed};
      continue;
    }
    if (node.op->is_view) {
      work.nodes[n] = {.units = 0};
      continue;
    }
    const NodeLoad load = exec_load(graph, node);
    work.nodes[n] = fluid_demand(machine, load.flops, load.moved_bytes, load.num_outputs);
  }
  return work;
}

std::string guesses_text(const Graph& graph, const NodeWork& work) {
  EDDY_CHECK(work.controls.size() == graph.num_nodes()) << "the work is another graph's";
  constexpr size_t kNamed = 8;
  std::string text;
  size_t count = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const ControlWork& control = work.controls[n];
    if (!control.is_guessed || ++count > kNamed) continue;
    const bool is_loop = graph.node(NodeId(n)).kind == NodeKind::kWhile;
    EDDY_CHECK(!control.decision.trace.empty()) << "a guess of nothing";
    text += std::string(count > 1 ? ", " : "") + (is_loop ? "trips of " : "branches of ") +
            graph.path(NodeId(n)) + " (" +
            (is_loop ? std::to_string(control.decision.trace[0]) : "in turn") + ")";
  }
  if (count > kNamed) text += " and " + std::to_string(count - kNamed) + " more";
  return text;
}

}  // namespace eddy
