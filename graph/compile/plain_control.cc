#include "graph/compile/plain_control.h"

#include <algorithm>
#include <functional>
#include <set>

#include "graph/compile/copy_graph.h"
#include "graph/ir/checked_call.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

bool is_standard(const Node& node) {
  return node.kind == NodeKind::kExec && node.op->domain.empty();
}

// The newest opset of a node in which all nodes have the definitions that they have; 0: none.
int common_opset(const Graph& graph, const OpTable& ops) {
  std::set<int, std::greater<>> versions;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (is_standard(node)) versions.insert(node.opset_version);
  }
  for (const int version : versions) {
    bool fits = true;
    for (uint32_t n = 0; fits && n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      fits = !is_standard(node) || ops.find_or_null("", node.op->name, version) == node.op;
    }
    if (fits) return version;
  }
  return 0;
}

class PlainControl : public GraphCopier {
 public:
  PlainControl(const Graph& source, GraphBuilder& builder, const OpTable& ops)
      : GraphCopier(source, builder), opset_(common_opset(source, ops)) {
    if (opset_ > 0) builder.set_opset("", opset_);
  }

 protected:
  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    if (is_checked_call(node)) return define(node.outputs[0], value(node.inputs[0]));
    if (opset_ == 0 || !is_standard(node)) return copy_exec(id);
    OpOptions options{.name = node.name,
                      .opset_version = opset_,
                      .num_outputs = static_cast<int>(node.outputs.size()),
                      .device = node.device};
    for (const ValueId output : node.outputs) {
      options.output_names.push_back(source_.value(output).name);
    }
    define_all(node.outputs, builder_.ops(node.op->name, values(node.inputs), attributes(node),
                                          std::move(options)));
  }

  void loop(NodeId id) override {
    const LoopView loop(source_, id);
    if (only_forwards(loop)) return copy_loop(id);
    const Value first = builder_.scalar(int64_t{0});
    WhileOptions options;
    options.name = loop.node().name;
    options.trip_limit = value(loop.trip_limit());
    options.initial = test(loop, first, values(loop.initial()));
    options.num_scan_outputs = loop.node().num_scan_outputs;
    options.rebuild_on_widening = true;
    if (!builder_.status().is_ok()) return;
    const auto made = builder_.while_loop(
        options,
        [](Value, ValueSpan carried) {
          return WhileTest{carried[0], {carried.begin() + 1, carried.end()}};
        },
        [&](Value iteration, ValueSpan forwarded) {
          define(loop.after_iteration(), iteration);
          define_all(loop.received(), forwarded);
          nodes(loop.after_id());
          const std::vector<Value> rows = values(loop.rows());
          const Value next = builder_.op("Add", {iteration, builder_.scalar(int64_t{1})});
          std::vector<Value> results = test(loop, next, values(loop.next()));
          results.insert(results.end(), rows.begin(), rows.end());
          return results;
        });
    if (builder_.status().is_ok()) define_all(loop.node().outputs, made);
  }

  void branch(NodeId id) override {
    const CaseView choice(source_, id);
    const Value selector = value(choice.selector());
    const ElementType element = builder_.type(selector).tensor.element;
    const bool is_if = element == ElementType::kBool && choice.num_branches() == 2 &&
                       choice.node().default_region < 0 && !choice.has_pass_through();
    if (is_if || !builder_.status().is_ok()) return copy_branch(id, selector);
    std::vector<size_t> tested;
    for (size_t b = 0; b < choice.num_branches(); ++b) {
      if (static_cast<int>(b) != choice.node().default_region) tested.push_back(b);
    }
    size_t otherwise = static_cast<size_t>(std::max(choice.node().default_region, 0));
    if (choice.node().default_region < 0 && !choice.has_pass_through()) {
      otherwise = tested.back();
      tested.pop_back();
    }
    const Value number =
        element == ElementType::kInt64 ? selector : builder_.cast(selector, ElementType::kInt64);
    define_all(choice.outputs(), chain(choice, number, tested, otherwise));
  }

 private:
  static bool only_forwards(const LoopView& loop) {
    return loop.before().nodes.empty() &&
           (loop.num_carried() > 0 && loop.predicate() == loop.carried()[0]
                ? std::ranges::equal(loop.forwarded(), loop.carried().subspan(1))
                : std::ranges::equal(loop.forwarded(), loop.carried()) &&
                      loop.predicate() != loop.iteration());
  }

  // The predicate, then what is forwarded, by one more copy of `before`.
  std::vector<Value> test(const LoopView& loop, Value iteration,
                          const std::vector<Value>& carried) {
    define(loop.iteration(), iteration);
    define_all(loop.carried(), carried);
    nodes(loop.before_id());
    std::vector<Value> results = {value(loop.predicate())};
    const std::vector<Value> forwarded = values(loop.forwarded());
    results.insert(results.end(), forwarded.begin(), forwarded.end());
    return results;
  }

  std::vector<Value> results_of(const CaseView& choice, size_t branch) {
    nodes(choice.node().regions[branch]);
    return values(choice.results(branch));
  }

  // The first of `tested` that the selector equals, or else the last resort.
  std::vector<Value> chain(const CaseView& choice, Value selector, std::span<const size_t> tested,
                           size_t otherwise) {
    if (tested.empty()) {
      const bool passes = choice.has_pass_through() && choice.node().default_region < 0;
      return passes ? values(choice.pass_through()) : results_of(choice, otherwise);
    }
    const auto number = static_cast<int64_t>(tested[0]);
    const Value is_it = builder_.op("Equal", {selector, builder_.scalar(number)});
    return builder_.if_else(
        is_it, [&] { return results_of(choice, tested[0]); },
        [&] { return chain(choice, selector, tested.subspan(1), otherwise); }, choice.node().name);
  }

  const int opset_;  // of all standard nodes; 0: each has its own
};

}  // namespace

Result<Graph> plain_control(Graph graph, const OpTable& ops) {
  GraphBuilder builder(ops, graph.name());
  PlainControl(graph, builder, ops).run();
  EDDY_RETURN_IF_ERROR(builder.status());
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace eddy
