#include "runtime/execute/trip_rule.h"

#include "runtime/execute/temporaries.h"

namespace eddy {
namespace {

class RuleFinder {
 public:
  RuleFinder(const Graph& graph, const Node& loop)
      : graph_(graph), loop_(loop), before_(graph.region(loop.regions[0])) {}

  TripRule run() const {
    const ValueId predicate = origin(before_.results[0]);
    const ValueInfo& info = graph_.value(predicate);
    if (is_outside(info)) return {true, predicate, {}};
    if (info.origin == ValueOrigin::kNodeOutput) return counted(graph_.node(info.producer));
    const bool is_settled = info.index > 0 && stays(predicate);
    return is_settled ? TripRule{true, predicate, {}} : TripRule();
  }

 private:
  // What the value is another name or shape of, in the loop or, at the latest, where it enters it.
  ValueId origin(ValueId value) const {
    for (;;) {
      value = resolve_forwarded(graph_, value);
      const ValueInfo& info = graph_.value(value);
      if (is_outside(info) || info.origin != ValueOrigin::kNodeOutput || info.index != 0) {
        return value;
      }
      const Node& node = graph_.node(info.producer);
      const bool is_view = node.kind == NodeKind::kExec && node.op->is_view;
      if (!is_view || node.inputs.empty() || node.inputs[0].is_none()) return value;
      value = node.inputs[0];
    }
  }

  // A carried predicate that is true stays so.
  bool stays(ValueId parameter) const {
    const Region& after = graph_.region(loop_.regions[1]);
    const ValueId next = origin(after.results[graph_.value(parameter).index - size_t{1}]);
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
    const ValueInfo& number = graph_.value(origin(node.inputs[0]));
    const bool is_iteration = number.origin == ValueOrigin::kParameter && number.index == 0 &&
                              number.region == loop_.regions[0];
    const ValueId bound = resolve_forwarded(graph_, node.inputs[1]);
    const ValueInfo& info = graph_.value(bound);
    if (!is_iteration || !is_outside(info)) return {};
    return {info.type.is_tensor() && info.type.tensor.element == ElementType::kInt64, {}, bound};
  }

  bool is_outside(const ValueInfo& info) const {
    if (info.origin == ValueOrigin::kConstant) return true;
    return info.region != loop_.regions[0] && info.region != loop_.regions[1];
  }

  const Graph& graph_;
  const Node& loop_;
  const Region& before_;
};

}  // namespace

TripRule find_trip_rule(const Graph& graph, NodeId loop) {
  return RuleFinder(graph, graph.node(loop)).run();
}

}  // namespace eddy
