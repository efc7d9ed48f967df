#include "graph/loops/persistent_program.h"

#include <algorithm>
#include <map>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"
#include "graph/loops/device_loops.h"

namespace eddy {
namespace {

class LoopProgramBuilder {
 public:
  LoopProgramBuilder(const Graph& graph, NodeId loop, const PersistentFacts& facts)
      : graph_(graph), id_(loop), loop_(graph, loop), facts_(facts), uses_(count_uses(graph)) {}

  Result<PersistentProgram> make() {
    if (!loop_.rows().empty()) return unsupported("it stacks rows");
    find_carried();
    EDDY_RETURN_IF_ERROR(find_outside());
    carry();
    EDDY_RETURN_IF_ERROR(steps(loop_.before_id(), program().before));
    EDDY_RETURN_IF_ERROR(steps(loop_.after_id(), program().after));
    for (size_t k = 0; k < carried_.size(); ++k) {
      program().carried[k].next = number(carried_[k].next);
    }
    program().predicate = number(loop_.predicate());
    const bool is_known = program().predicate != LoopProgram::kNone &&
                          std::ranges::none_of(program().carried, [](const auto& each) {
                            return each.next == LoopProgram::kNone;
                          });
    if (!is_known) return unsupported("it passes on what no step of it makes");
    for (size_t k = 0; k < loop_.num_forwarded(); ++k) {
      const ValueId output = loop_.outputs()[k];
      if (uses_[output.index()] == 0) continue;
      const ValueId root = resolve_forwarded(graph_, loop_.forwarded()[k]);
      if (is_outside(root)) {
        made_.outputs.push_back({output, root, 0});
        continue;
      }
      made_.outputs.push_back({output, {}, static_cast<uint32_t>(program().results.size())});
      const uint32_t result = number(root);
      if (result == LoopProgram::kNone) return unsupported("it gives what no step of it makes");
      program().results.push_back(result);
    }
    return std::move(made_);
  }

 private:
  // One entry for each carried value that is read.
  struct Carried {
    ValueId parameter, initial, next;
    bool is_decision;  // of the host's
  };

  LoopProgram& program() { return made_.program; }

  bool is_outside(ValueId root) const {
    const ValueInfo& info = graph_.value(root);
    return info.origin == ValueOrigin::kConstant || !RegionTree(graph_).is_inside(info.region, id_);
  }

  uint32_t add_value(ValueId like) {
    const TensorType& type = graph_.value(like).type.tensor;
    const auto number = static_cast<uint32_t>(program().values.size());
    program().values.push_back({type.element, type.dims, number});
    return number;
  }

  // ------------------------------------------------------------ what comes from outside

  void add_input(ValueId value) {
    const ValueId root = resolve_forwarded(graph_, value);
    if (!is_outside(root) || numbers_.contains(root)) return;
    numbers_[root] = add_value(root);
    made_.inputs.push_back(root);
  }
  void add_given(ValueId value) {
    const ValueId root = resolve_forwarded(graph_, value);
    if (!is_outside(root) || given_.contains(root)) return;
    given_[root] = add_value(root);
    made_.given.push_back(root);
  }

  void find_carried() {
    for (size_t k = 0; k < loop_.num_carried(); ++k) {
      if (is_carried_idly(loop_, k, uses_)) continue;
      const ValueId parameter = loop_.carried()[k];
      carried_.push_back(
          {parameter, loop_.initial()[k], loop_.next()[k], !facts_.is_value_on_device(parameter)});
    }
  }

  // Inputs are numbered first, then what the host gives.
  Status find_outside() {
    for (const Carried& each : carried_) {
      if (each.is_decision) continue;
      add_input(each.initial);
      add_input(each.next);
    }
    for (const RegionId region : loop_.node().regions) {
      for (const NodeId id : graph_.region(region).nodes) {
        const Node& inner = graph_.node(id);
        if (inner.kind != NodeKind::kExec) return unsupported("there is " + inner.name + " inside");
        for (size_t i = 0; i < inner.inputs.size(); ++i) {
          if (!inner.inputs[i].is_none() && !is_axes(inner, i)) add_input(inner.inputs[i]);
        }
      }
    }
    EDDY_CHECK(program().values.size() == made_.inputs.size()) << "inputs are numbered first";
    program().num_inputs = static_cast<uint32_t>(made_.inputs.size());
    for (const Carried& each : carried_) {
      if (!each.is_decision) continue;
      add_given(each.initial);
      add_given(each.next);
    }
    add_given(loop_.predicate());
    EDDY_CHECK(program().values.size() == made_.inputs.size() + made_.given.size())
        << "what the host gives is numbered behind the inputs";
    program().num_given = static_cast<uint32_t>(made_.given.size());
    return Status::ok();
  }

  void carry() {
    for (const Carried& each : carried_) {
      const ValueId initial = resolve_forwarded(graph_, each.initial);
      const uint32_t parameter = numbers_[each.parameter] = add_value(each.parameter);
      program().carried.push_back(
          {parameter, each.is_decision ? given_.at(initial) : numbers_.at(initial), 0});
    }
  }

  uint32_t number(ValueId value) {
    const ValueId root = resolve_forwarded(graph_, value);
    if (const auto known = numbers_.find(root); known != numbers_.end()) return known->second;
    if (const auto given = given_.find(root); given != given_.end()) return given->second;
    return LoopProgram::kNone;
  }

  // ------------------------------------------------------------ steps

  static bool is_op(const Node& node, std::string_view name) {
    return node.op->domain == "eddy" && node.op->name == name;
  }
  static bool is_reduction(const Node& node) {
    return node.op->domain.empty() && node.op->name.starts_with("Reduce");
  }
  static bool is_axes(const Node& node, size_t input) {
    return input > 0 && (is_reduction(node) || node.op->is_view);
  }

  Status steps(RegionId region, std::vector<LoopProgram::Step>& steps) {
    for (const NodeId id : graph_.region(region).nodes) {
      const Node& node = graph_.node(id);
      if (is_op(node, "ToHost") || node.op->is_view) {
        EDDY_RETURN_IF_ERROR(view(node));
      } else if (is_op(node, "ToDevice")) {
        numbers_[node.outputs[0]] = iteration(node.outputs[0]);
      } else if (is_op(node, "Fused")) {
        EDDY_RETURN_IF_ERROR(fused(node, steps));
      } else {
        EDDY_ASSIGN_OR_RETURN(LoopProgram::Step step, make_step(id, node));
        for (const ValueId input : node.inputs) {
          if (!step.reduction.empty() && !step.arguments.empty()) break;
          step.arguments.push_back(number(input));
        }
        const bool is_known =
            std::ranges::find(step.arguments, LoopProgram::kNone) == step.arguments.end();
        if (!is_known) return unsupported(node.name + " reads what is not there");
        step.result = numbers_[node.outputs[0]] = add_value(node.outputs[0]);
        steps.push_back(std::move(step));
      }
    }
    return Status::ok();
  }

  // A step for each result; later ones read the earlier ones.
  Status fused(const Node& node, std::vector<LoopProgram::Step>& steps) {
    const auto num_inputs = static_cast<uint32_t>(node.inputs.size());
    EDDY_ASSIGN_OR_RETURN(const Expression whole,
                          parse_expression(node.attributes.get_string("program", ""), num_inputs));
    if (whole.num_results() != node.outputs.size()) return no_step(node);
    std::vector<uint32_t> known;
    for (const ValueId input : node.inputs) known.push_back(number(input));
    if (std::ranges::find(known, LoopProgram::kNone) != known.end()) {
      return unsupported(node.name + " reads what is not there");
    }
    for (ExpressionPart& part : parts_of(whole)) {
      LoopProgram::Step& step = steps.emplace_back();
      for (const uint32_t argument : part.arguments) step.arguments.push_back(known[argument]);
      step.expression = std::move(part.expression);
      const ValueId made = node.outputs[part.result];
      step.result = numbers_[made] = add_value(made);
      known.push_back(step.result);
    }
    return Status::ok();
  }

  // Other dimensions of the same memory.
  Status view(const Node& node) {
    const uint32_t of = number(node.inputs[0]);
    if (of == LoopProgram::kNone) return unsupported(node.name + " reads what is not there");
    const uint32_t made = add_value(node.outputs[0]);
    program().values[made].memory = program().values[of].memory;
    numbers_[node.outputs[0]] = made;
    return Status::ok();
  }

  uint32_t iteration(ValueId like) {
    if (program().iteration == LoopProgram::kNone) program().iteration = add_value(like);
    return program().iteration;
  }

  Result<LoopProgram::Step> make_step(NodeId id, const Node& node) {
    LoopProgram::Step step;
    const bool has_all = std::ranges::none_of(node.inputs, &ValueId::is_none);
    if (node.outputs.size() != 1 || !has_all) return no_step(node);
    const auto num_inputs = static_cast<uint32_t>(node.inputs.size());
    if (is_reduction(node)) {
      step.reduction = node.op->name;
      EDDY_ASSIGN_OR_RETURN(step.axes, axes(node));
      return step;
    }
    const std::optional<ElementFunction> function = facts_.function_of(id);
    if (!function) return no_step(node);
    step.expression.num_inputs = num_inputs;
    ExpressionStep only{*function, {}};
    for (uint32_t i = 0; i < num_inputs; ++i) only.arguments.push_back(i);
    step.expression.steps.push_back(std::move(only));
    return step;
  }

  static Status no_step(const Node& node) {
    return unsupported(node.name + " (" + node.op->name +
                       ") is neither elementwise nor a reduction");
  }

  // The axes that a reduction reduces, as a mask; none named: all.
  Result<uint32_t> axes(const Node& node) const {
    const int rank = graph_.value(node.inputs[0]).type.tensor.dims.rank();
    if (node.attributes.get_int("noop_with_empty_axes", 0) != 0) return no_step(node);
    const std::span<const int64_t> given = node.attributes.get_ints("axes");
    std::vector<int64_t> named(given.begin(), given.end());
    if (node.inputs.size() > 1) {
      const TensorView constant = facts_.constant(node.inputs[1]);
      if (constant.data == nullptr || constant.element != ElementType::kInt64) return no_step(node);
      const int64_t* const data = constant.as<int64_t>();
      named.assign(data, data + constant.count());
    }
    static_assert(kMaxRank < 32, "axes are the bits of a uint32_t");
    uint32_t mask = 0;
    for (int64_t axis : named) {
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return no_step(node);
      mask |= 1u << axis;
    }
    return named.empty() ? (1u << rank) - 1 : mask;
  }

  const Graph& graph_;
  const NodeId id_;
  const LoopView loop_;
  const PersistentFacts& facts_;
  const std::vector<uint32_t> uses_;
  std::vector<Carried> carried_;
  PersistentProgram made_;
  std::map<ValueId, uint32_t> numbers_;  // by root
  std::map<ValueId, uint32_t> given_;    // likewise
};

}  // namespace

Result<PersistentProgram> make_persistent_program(const Graph& graph, NodeId loop,
                                                  const PersistentFacts& facts) {
  return LoopProgramBuilder(graph, loop, facts).make();
}

}  // namespace eddy
