// While and case-of nodes as Loop and If where those mean the same, else in domain eddy.
#include <algorithm>

#include "graph/base/check.h"
#include "graph/io/exporter.h"
#include "graph/ir/control_view.h"

namespace eddy {

bool Exporter::is_constant_true(ValueId value) const {
  const ValueInfo& info = graph_.value(value);
  if (info.origin != ValueOrigin::kConstant) return false;
  const TensorView view = graph_.constant(info.constant).view();
  EDDY_CHECK(view.data != nullptr || view.count() == 0) << "an exported constant has no bytes";
  return view.element == ElementType::kBool && view.rank == 0 && *view.as<uint8_t>() == 1;
}

// A `before` that only forwards: (c, values...) -> (c, values...), or (values...) -> (true,
// values...). These are exactly the shapes that importing a Loop makes.
Exporter::LoopForm Exporter::loop_form(const Node& node) const {
  const LoopView loop(graph_, node);
  if (!loop.before().nodes.empty()) return {};
  const bool has_condition = loop.num_carried() > 0 && loop.predicate() == loop.carried()[0];
  if (!has_condition && !is_constant_true(loop.predicate())) return {};
  const auto values = loop.carried().subspan(has_condition ? 1 : 0);
  if (!std::ranges::equal(loop.forwarded(), values)) return {};
  return {true, has_condition};
}

void Exporter::write_while(const Node& node, WireWriter& proto) {
  EDDY_CHECK(node.kind == NodeKind::kWhile && node.regions.size() == 2) << node.name;
  const LoopForm form = loop_form(node);
  if (form.is_loop) return write_loop(node, form, proto);
  proto.bytes(4, "While");
  proto.bytes(7, "eddy");
  write_inputs(node.inputs, proto);
  proto.message(5, graph_attribute("before", region_graph(graph_.region(node.regions[0]))));
  proto.message(5, graph_attribute("after", region_graph(graph_.region(node.regions[1]))));
}

void Exporter::write_loop(const Node& node, LoopForm form, WireWriter& proto) {
  EDDY_CHECK(form.is_loop && !node.inputs.empty()) << node.name << " does not fit a Loop";
  proto.bytes(4, "Loop");
  proto.bytes(1, name_or_empty(node.inputs[0]));
  if (!form.has_condition) proto.bytes(1, "");
  write_inputs(std::span(node.inputs).subspan(1), proto);
  proto.message(5, graph_attribute("body", loop_body(node, form)));
}

WireWriter Exporter::loop_body(const Node& node, LoopForm form) {
  const LoopView loop(graph_, node);
  WireWriter proto;
  proto.bytes(2, loop.after().name);
  const ValueId iteration = loop.after_iteration();
  proto.message(11, value_info(name(iteration), graph_.value(iteration).type));
  const std::string condition = made_up("");
  const ValueType bool_type = form.has_condition ? graph_.value(loop.carried()[0]).type
                                                 : tensor_type(ElementType::kBool, {});
  proto.message(11, value_info(condition, bool_type));
  for (const ValueId parameter : loop.received()) {
    proto.message(11, value_info(name(parameter), graph_.value(parameter).type));
  }
  write_nodes(loop.after(), proto);
  if (!form.has_condition) {
    proto.message(12, value_info(forward(condition, made_up(""), proto), bool_type));
  }
  write_results(loop.after(), loop.after().results, proto);
  return proto;
}

void Exporter::write_case(const Node& node, WireWriter& proto) {
  EDDY_CHECK(!node.inputs.empty() && !node.regions.empty()) << node.name << " has no branch";
  const ElementType selector = graph_.value(node.inputs[0]).type.tensor.element;
  const bool is_if = selector == ElementType::kBool && node.regions.size() == 2 &&
                     node.default_region < 0 && node.inputs.size() == 1;
  proto.bytes(4, is_if ? "If" : "CaseOf");
  write_inputs(node.inputs, proto);
  for (size_t r = 0; r < node.regions.size(); ++r) {
    const std::string name =
        is_if ? (r == 0 ? "else_branch" : "then_branch") : "branch_" + std::to_string(r);
    proto.message(5, graph_attribute(name, region_graph(graph_.region(node.regions[r]))));
  }
  if (is_if) return;
  proto.bytes(7, "eddy");
  if (node.default_region >= 0) proto.message(5, int_attribute("default", node.default_region));
}

WireWriter Exporter::region_graph(const Region& region) {
  WireWriter proto;
  proto.bytes(2, region.name);
  for (ValueId parameter : region.parameters) {
    proto.message(11, value_info(name(parameter), graph_.value(parameter).type));
  }
  write_nodes(region, proto);
  write_results(region, region.results, proto);
  return proto;
}

}  // namespace eddy
