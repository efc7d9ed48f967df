#include "graph/differentiate/activity.h"

#include <algorithm>
#include <span>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

using Edge = std::pair<ValueId, ValueId>;

bool is_differentiable(const ValueType& type) { return kFloatTypes.contains(type.tensor.element); }

// The edges of a graph, by their first or their last value.
class Edges {
 public:
  Edges(const Graph& graph, const GradientTable& rules, std::span<const ValueId> stops)
      : graph_(graph), rules_(rules), is_stop_(graph.num_values(), false) {
    for (const ValueId stop : stops) is_stop_[stop.index()] = true;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) add_node(graph.node(NodeId(n)));
  }

  // What can be reached from `start`, itself included; `forward` or against the edges.
  std::vector<bool> reach(std::span<const ValueId> start, bool forward) const {
    std::vector<uint32_t> first(graph_.num_values() + 1, 0);
    for (const Edge& edge : edges_) ++first[(forward ? edge.first : edge.second).index() + 1];
    for (size_t v = 1; v < first.size(); ++v) first[v] += first[v - 1];
    std::vector<ValueId> next(edges_.size());
    std::vector<uint32_t> place(first.begin(), first.end() - 1);
    for (const Edge& edge : edges_) {
      next[place[(forward ? edge.first : edge.second).index()]++] =
          forward ? edge.second : edge.first;
    }
    std::vector<bool> is_reached(graph_.num_values(), false);
    std::vector<ValueId> pending;
    const auto mark = [&](ValueId value) {
      if (is_reached[value.index()] || is_stop_[value.index()]) return;
      is_reached[value.index()] = true;
      pending.push_back(value);
    };
    for (const ValueId value : start) mark(value);
    while (!pending.empty()) {
      const size_t at = pending.back().index();
      pending.pop_back();
      for (uint32_t e = first[at]; e < first[at + 1]; ++e) mark(next[e]);
    }
    return is_reached;
  }

 private:
  // Only `makes_integers` leads from floating point to integers (QuantizeLinear): what those reach
  // is found, so that its maker is refused instead of counting as flat.
  void add(ValueId from, ValueId to, bool makes_integers = false) {
    if (from.is_none() || is_stop_[from.index()] || is_stop_[to.index()]) return;
    const bool is_kept = makes_integers || is_differentiable(graph_.value(to).type) ||
                         !is_differentiable(graph_.value(from).type);
    if (is_kept) edges_.emplace_back(from, to);
  }

  void add_node(const Node& node) {
    if (node.kind == NodeKind::kExec) {
      const auto* rule = rules_.find_or_null(node.op->domain, node.op->name, node.opset_version);
      if (rule != nullptr && rule->is_flat()) return;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (rule != nullptr && !rule->reads_of(i).has_value()) continue;
        for (const ValueId output : node.outputs) add(node.inputs[i], output, rule == nullptr);
      }
    } else if (node.kind == NodeKind::kWhile) {
      const LoopView loop(graph_, node);
      for (size_t k = 0; k < loop.num_carried(); ++k) {
        add(loop.initial()[k], loop.carried()[k]);
        add(loop.next()[k], loop.carried()[k]);
      }
      for (size_t k = 0; k < loop.num_forwarded(); ++k) {
        add(loop.forwarded()[k], loop.received()[k]);
        add(loop.forwarded()[k], loop.outputs()[k]);
      }
      for (size_t s = 0; s < loop.rows().size(); ++s) add(loop.rows()[s], loop.stacked()[s]);
    } else {
      const CaseView choice(graph_, node);
      for (size_t o = 0; o < choice.outputs().size(); ++o) {
        for (size_t b = 0; b < choice.num_branches(); ++b) {
          add(choice.results(b)[o], choice.outputs()[o]);
        }
        if (choice.has_pass_through()) add(choice.pass_through()[o], choice.outputs()[o]);
      }
    }
  }

  const Graph& graph_;
  const GradientTable& rules_;
  std::vector<bool> is_stop_;
  std::vector<Edge> edges_;
};

std::string stop_advice(const Graph& graph, ValueId value) {
  const std::string& name = graph.value(value).name;
  // No rule can hand an adjoint back to integers.
  const std::string rule = is_differentiable(graph.value(value).type) ? ", or add a rule" : "";
  if (name.empty()) return "name one of its inputs as a stop" + rule;
  return "stop at '" + name + "'" + rule;
}

// The first of the parameters that the value depends on.
ValueId parameter_behind(const Graph& graph, const Edges& edges, const ActivityRequest& request,
                         ValueId value) {
  for (const ValueId wrt : request.wrt) {
    if (edges.reach(std::span(&wrt, 1), true)[value.index()]) return wrt;
  }
  EDDY_CHECK(false) << quoted_name(graph, value) << " depends on no parameter";
  return {};
}

Status check_nodes(const Graph& graph, const GradientTable& rules, const Edges& edges,
                   const ActivityRequest& request, const Activity& activity) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (!activity.is_active(node)) continue;
    const auto at = std::ranges::find_if(
        node.outputs, [&](ValueId output) { return activity.is_active(output); });
    EDDY_DCHECK(at != node.outputs.end()) << node.name << " is active without an active output";
    const auto needed = [&] {
      return "the gradient of " + quoted_name(graph, parameter_behind(graph, edges, request, *at)) +
             " needs it; " + stop_advice(graph, *at);
    };
    Status status;
    if (!has_adjoint(graph.value(*at).type)) {
      status = unsupported("'" + node.name + "' makes a " + to_string(graph.value(*at).type) +
                           ", which has no gradient, and " + needed());
    } else if (node.kind == NodeKind::kExec &&
               rules.find_or_null(node.op->domain, node.op->name, node.opset_version) == nullptr) {
      status = unsupported("operator " + node.op->name + " has no gradient rule, and " + needed());
    }
    if (!status.is_ok()) return status.prepend_path(graph.path(NodeId(n)));
  }
  return Status::ok();
}

}  // namespace

std::string quoted_name(const Graph& graph, ValueId value) {
  return "'" + graph.value(value).name + "'";
}

bool Activity::is_active(const Node& node) const {
  return std::ranges::any_of(node.outputs, [&](ValueId output) { return is_active(output); });
}

std::vector<bool> Activity::wanted_inputs(const Node& node, const GradientRule& rule) const {
  std::vector<bool> wanted(node.inputs.size(), false);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    wanted[i] = is_active(node.inputs[i]) && rule.reads_of(i).has_value();
  }
  return wanted;
}

Result<Activity> find_activity(const Graph& graph, const GradientTable& rules,
                               const ActivityRequest& request) {
  EDDY_DCHECK(!request.loss.is_none()) << "activity leads to no loss";
  const Edges edges(graph, rules, request.stops);
  std::vector<bool> is_active = edges.reach(request.wrt, true);
  const std::vector<bool> reaches_loss = edges.reach(std::span(&request.loss, 1), false);
  for (size_t v = 0; v < is_active.size(); ++v) is_active[v] = is_active[v] && reaches_loss[v];
  Activity activity(std::move(is_active));
  EDDY_RETURN_IF_ERROR(check_nodes(graph, rules, edges, request, activity));
  return activity;
}

}  // namespace eddy
