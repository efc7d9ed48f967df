#include "graph/ranks/agree_decisions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/ir/control_view.h"
#include "graph/ranks/uniform.h"

namespace eddy {
namespace {

bool is_agreed(const Agreement& agreement) {
  return agreement.decision >= RankSkeleton::Decision::kAgreeAll;
}

bool is_mark(const Node& node, const RankRules& rules) {
  return node.kind == NodeKind::kExec && rules.mark && rules.mark(node).has_value();
}

bool has_mark(const Graph& graph, const RankRules& rules) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (is_mark(graph.node(NodeId(n)), rules)) return true;
  }
  return false;
}

class Agreeing : public GraphCopier {
 public:
  Agreeing(const Graph& source, GraphBuilder& builder, const Decisions& decisions,
           const RankRules& rules, const AgreeRules& agrees)
      : GraphCopier(source, builder), decisions_(decisions), rules_(rules), agrees_(agrees) {
    EDDY_DCHECK(decisions.by_node.size() == source.num_nodes()) << "decisions of another graph";
  }

 private:
  // A mark has done its work.
  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    if (!is_mark(node, rules_)) return copy_exec(id);
    EDDY_DCHECK(!node.inputs.empty() && node.outputs.size() == 1)
        << node.name << " does more than mark a decision";
    define(node.outputs[0], value(node.inputs[0]));
  }
  void loop(NodeId id) override {
    loops_.push_back(id);
    is_limit_next_ = true;
    copy_loop(id);
    EDDY_DCHECK(!is_limit_next_ && loops_.back() == id) << "a loop was copied without its limit";
    loops_.pop_back();
  }
  void branch(NodeId id) override {
    const Value selector = value(source_.node(id).inputs[0]);
    const Agreement& agreement = decisions_.by_node[id.index()];
    copy_branch(id, is_agreed(agreement) ? agree(id, selector) : selector);
  }

  // Of a loop, its trip limit comes first.
  Value awaited_by_host(ValueId id) override {
    const bool is_limit = std::exchange(is_limit_next_, false);
    return is_limit && is_agreed(innermost()) ? Value() : value(id);
  }
  // Besides outputs of the graph, a loop's predicate: cases do not ask.
  Value read_by_host(ValueId id) override {
    if (loops_.empty() || !is_agreed(innermost())) return value(id);
    const LoopView loop(source_, loops_.back());
    Value decision = value(id);
    if (!loop.trip_limit().is_none()) {
      decision =
          agrees_.within(builder_, decision, value(loop.iteration()), value(loop.trip_limit()));
    }
    return agree(loops_.back(), decision);
  }
  Value agree(NodeId id, Value decision) {
    EDDY_DCHECK(is_agreed(decisions_.by_node[id.index()]))
        << source_.node(id).name << " is decided by each rank for itself";
    return agrees_.agree(builder_, decision, decisions_.by_node[id.index()],
                         source_.node(id).name + "_agree");
  }
  const Agreement& innermost() const {
    EDDY_DCHECK(!loops_.empty()) << "no loop is copied";
    return decisions_.by_node[loops_.back().index()];
  }

  const Decisions& decisions_;
  const RankRules& rules_;
  const AgreeRules& agrees_;
  std::vector<NodeId> loops_;  // around what is copied
  bool is_limit_next_ = false;
};

}  // namespace

Result<Graph> agree_decisions(Graph&& graph, const OpTable& ops, const RankRules& rules,
                              const AgreeRules& agrees) {
  EDDY_ASSIGN_OR_RETURN(const Decisions decisions, find_decisions(graph, rules));
  if (std::ranges::none_of(decisions.by_node, is_agreed) && !has_mark(graph, rules)) {
    return std::move(graph);
  }
  GraphBuilder builder(ops, graph.name());
  Agreeing(graph, builder, decisions, rules, agrees).run();
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace eddy
