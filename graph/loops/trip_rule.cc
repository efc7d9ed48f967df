#include "graph/loops/trip_rule.h"

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

class RuleFinder {
 public:
  RuleFinder(const Graph& graph, NodeId loop) : graph_(graph), loop_(graph, loop) {}

  TripRule run() const {
    const ValueId predicate = origin(loop_.predicate());
    const ValueInfo& info = graph_.value(predicate);
    if (is_outside(info)) return {true, predicate, {}};
    if (info.origin == ValueOrigin::kNodeOutput) return counted(graph_.node(info.producer));
    const bool is_settled = is_carried(graph_, predicate) && stays(predicate);
    return is_settled ? TripRule{true, predicate, {}} : TripRule();
  }

 private:
  // What the value is another name or shape of, in the loop or, at the latest, where it enters it.
  ValueId origin(ValueId value) const {
    for (;;) {
      value = resolve_forwarded(graph_, value);
      const ValueId shown = viewed(graph_, value);
      if (shown.is_none() || is_outside(graph_.value(value))) return value;
      value = shown;
    }
  }

  // A carried predicate that is true stays so.
  bool stays(ValueId parameter) const {
    EDDY_CHECK(graph_.value(parameter).index > 0) << "the first parameter counts iterations";
    const ValueId next = origin(loop_.next()[graph_.value(parameter).index - size_t{1}]);
    return next == parameter || is_true(next);
  }

  bool is_true(ValueId value) const {
    const ValueInfo& info = graph_.value(value);
    if (info.origin != ValueOrigin::kConstant) return false;
    const TensorView view = graph_.constant(info.constant).view();
    return view.data != nullptr && view.element == ElementType::kBool && view.count() == 1 &&
           *view.as<uint8_t>() != 0;
  }

  TripRule counted(const Node& node) const {
    const bool is_less = node.kind == NodeKind::kExec && node.op->name == "Less" &&
                         node.op->domain.empty() && node.inputs.size() == 2;
    if (!is_less) return {};
    const bool is_iteration = origin(node.inputs[0]) == loop_.iteration();
    const ValueId bound = resolve_forwarded(graph_, node.inputs[1]);
    const ValueInfo& info = graph_.value(bound);
    if (!is_iteration || !is_outside(info)) return {};
    return {info.type.is_tensor() && info.type.tensor.element == ElementType::kInt64, {}, bound};
  }

  bool is_outside(const ValueInfo& info) const {
    return info.origin == ValueOrigin::kConstant || !loop_.has(info.region);
  }

  const Graph& graph_;
  const LoopView loop_;
};

}  // namespace

TripRule find_trip_rule(const Graph& graph, NodeId loop) {
  const TripRule rule = RuleFinder(graph, loop).run();
  EDDY_CHECK(!rule.is_settled || rule.first.is_none() != rule.bound.is_none())
      << graph.node(loop).name << " is settled by one value";
  return rule;
}

}  // namespace eddy
