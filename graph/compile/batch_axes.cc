#include "graph/compile/batch_axes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "graph/base/check.h"
#include "graph/ir/batch_rule.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"

namespace eddy {
namespace {

std::string text_of(const Batched& batched) {
  switch (batched.kind) {
    case Batched::Kind::kShared:
      return "the same for all samples";
    case Batched::Kind::kAlong:
      return "samples along axis " + std::to_string(batched.axis);
    case Batched::Kind::kCounts:
      return "a number of samples";
  }
  return "?";
}

bool are_equal(std::span<const Count> a, std::span<const Count> b) {
  return std::ranges::equal(a, b, [](const Count& x, const Count& y) {
    return x.is_of_samples == y.is_of_samples && x.each.equals(y.each);
  });
}

// What holds where a value is one or the other; nullopt: nothing does.
std::optional<Batched> joined(const Batched& a, const Batched& b) {
  if (a.kind != b.kind) return std::nullopt;
  switch (a.kind) {
    case Batched::Kind::kShared:
      return Batched::shared();  // its content may be either's
    case Batched::Kind::kAlong:
      if (a.axis != b.axis) return std::nullopt;
      return Batched::along(a.axis, a.each.equals(b.each) ? a.each : Extent());
    case Batched::Kind::kCounts:
      return are_equal(a.counts, b.counts) ? std::optional<Batched>(a) : std::nullopt;
  }
  return std::nullopt;
}

// One pass over one graph. What is known of a value only becomes less from visit to visit of a
// loop, so each loop settles.
class Analysis {
 public:
  Analysis(const Graph& graph, const std::string& dimension)
      : graph_(graph),
        dimension_(dimension),
        states_(graph.num_values()),
        is_entered_(graph.num_values(), false) {}

  Result<BatchAxes> run();

 private:
  Status refuse(NodeId node, const std::string& why) const {
    Status status =
        unsupported("requests cannot share a run along dimension '" + dimension_ + "': " + why);
    return std::move(status.prepend_path(graph_.path(node)));
  }
  std::string op_name(const Node& node) const { return node.op->name; }
  const Batched& state(ValueId value) const { return states_[value.index()]; }

  Status read_inputs();
  Status read_input(ValueId input);
  Status no_such_dimension() const;
  Status visit(RegionId region);
  Status visit_exec(NodeId id);
  Status apply_rule(NodeId id, bool has_samples);
  Status check_output(NodeId id, ValueId output);
  Status visit_loop(NodeId id);
  Status check_decision(NodeId id, ValueId decision, const char* what) const;
  Status enter(NodeId loop, ValueId parameter, const Batched& from, bool& changed);
  Status end_loop(NodeId id);
  Status visit_case(NodeId id);
  Result<BatchAxes> axes() const;

  const Graph& graph_;
  const std::string& dimension_;
  int64_t symbol_ = 0;  // of the dimension
  std::vector<Batched> states_;
  std::vector<bool> is_entered_;  // parameters of loops that have a state
};

Status Analysis::no_such_dimension() const {
  std::set<std::string> names;
  for (const ValueId input : graph_.inputs()) {
    const TensorType& type = graph_.value(input).type.tensor;
    for (int axis = 0; type.is_ranked && axis < type.dims.rank(); ++axis) {
      if (type.dims[axis] < kUnknownDim) names.insert(graph_.symbol(type.dims[axis]));
    }
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "'" : ", '") + name + "'";
  return invalid_argument(
      "no input has a dimension '" + dimension_ + "' to batch along; " +
      (known.empty() ? "none has a dimension that is left open" : "there are: " + known));
}

Status Analysis::read_input(ValueId input) {
  const ValueInfo& value = graph_.value(input);
  const TensorType& type = value.type.tensor;
  int axis = kNoSamples;
  for (int d = 0; type.is_ranked && d < type.dims.rank(); ++d) {
    if (type.dims[d] >= kUnknownDim || graph_.symbol(type.dims[d]) != dimension_) continue;
    symbol_ = type.dims[d];
    if (axis != kNoSamples) {
      return unsupported("requests cannot share a run along dimension '" + dimension_ +
                         "': input '" + value.name + "' has it twice, " + to_string(value.type));
    }
    axis = d;
  }
  if (axis == kNoSamples) return Status::ok();
  if (!value.type.is_tensor() || type.element == ElementType::kString) {
    return unsupported("requests cannot share a run along dimension '" + dimension_ + "': input '" +
                       value.name + "' is " + to_string(value.type) +
                       "; samples of numbers are joined, not strings, sequences or optionals");
  }
  states_[input.index()] = Batched::along(axis, Extent::number(1));
  return Status::ok();
}

Status Analysis::read_inputs() {
  for (const ValueId input : graph_.inputs()) EDDY_RETURN_IF_ERROR(read_input(input));
  return symbol_ == 0 ? no_such_dimension() : Status::ok();
}

Status Analysis::visit(RegionId region) {
  for (const NodeId id : graph_.region(region).nodes) {
    switch (graph_.node(id).kind) {
      case NodeKind::kExec:
        EDDY_RETURN_IF_ERROR(visit_exec(id));
        break;
      case NodeKind::kWhile:
        EDDY_RETURN_IF_ERROR(visit_loop(id));
        break;
      case NodeKind::kCaseOf:
        EDDY_RETURN_IF_ERROR(visit_case(id));
        break;
    }
  }
  return Status::ok();
}

Status Analysis::visit_exec(NodeId id) {
  const Node& node = graph_.node(id);
  if (calls_host_function(node)) {
    return refuse(id, "the host function '" + std::string(node.attributes.get_string("name", "")) +
                          "' would be called once for several requests");
  }
  if (has_effects(node)) {
    return refuse(id, "other ranks would see one operation for several requests");
  }
  bool has_samples = false, has_content = false;
  for (const ValueId input : node.inputs) {
    if (input.is_none()) continue;
    has_samples |= state(input).kind != Batched::Kind::kShared;
    has_content |= !state(input).counts.empty();
  }
  for (const ValueId output : node.outputs) {
    if (!output.is_none()) states_[output.index()] = Batched::shared();
  }
  if (!has_samples && (!has_content || node.op->batch == nullptr)) return Status::ok();
  EDDY_RETURN_IF_ERROR(apply_rule(id, has_samples));
  for (const ValueId output : node.outputs) {
    if (!output.is_none()) EDDY_RETURN_IF_ERROR(check_output(id, output));
  }
  return Status::ok();
}

Status Analysis::apply_rule(NodeId id, bool has_samples) {
  const Node& node = graph_.node(id);
  if (node.op->batch == nullptr) return refuse(id, op_name(node) + " has no rule for batches");
  const size_t count = node.inputs.size();
  std::vector<const ValueType*> types(count, nullptr);
  std::vector<TensorView> views(count);
  std::vector<const TensorView*> values(count, nullptr);
  std::vector<const Batched*> inputs(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    if (node.inputs[i].is_none()) continue;
    const ValueInfo& info = graph_.value(node.inputs[i]);
    types[i] = &info.type;
    inputs[i] = &state(node.inputs[i]);
    if (info.origin != ValueOrigin::kConstant) continue;
    views[i] = graph_.constant(info.constant).view();
    values[i] = &views[i];
  }
  std::vector<ValueType> output_types(node.outputs.size());
  const InferContext infer(node.attributes, types, values, output_types, node.opset_version);
  std::vector<Batched> outputs(node.outputs.size());
  BatchContext context(infer, inputs, outputs);
  const Status status = node.op->batch(context);
  if (!status.is_ok()) {
    // A list that is not followed any further.
    return has_samples ? refuse(id, op_name(node) + " " + status.message()) : Status::ok();
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!node.outputs[o].is_none()) states_[node.outputs[o].index()] = std::move(outputs[o]);
  }
  return Status::ok();
}

// The symbol stands at the samples' axis and nowhere else.
Status Analysis::check_output(NodeId id, ValueId output) {
  const Batched& batched = state(output);
  const ValueType& type = graph_.value(output).type;
  const std::string name = op_name(graph_.node(id));
  if (batched.is_along() && (!type.is_tensor() || !type.tensor.is_ranked)) {
    return refuse(id, name + " makes a value whose number of axes is not known");
  }
  if (batched.is_along()) {
    EDDY_CHECK(batched.axis < type.tensor.dims.rank())
        << name << " of " << to_string(type) << " has no axis " << batched.axis;
  }
  for (int axis = 0; type.tensor.is_ranked && axis < type.tensor.dims.rank(); ++axis) {
    if (type.tensor.dims[axis] != symbol_ || (batched.is_along() && batched.axis == axis)) continue;
    return refuse(id, name + " makes " + to_string(type) + ", " + text_of(batched) +
                          ", of which axis " + std::to_string(axis) +
                          " has the size of all samples");
  }
  return Status::ok();
}

Status Analysis::check_decision(NodeId id, ValueId decision, const char* what) const {
  if (decision.is_none() || state(decision).kind == Batched::Kind::kShared) return Status::ok();
  const ValueInfo& value = graph_.value(decision);
  std::string maker;
  if (value.origin == ValueOrigin::kNodeOutput && graph_.node(value.producer).op != nullptr) {
    const Node& node = graph_.node(value.producer);
    maker = " (" + op_name(node) + " at " + graph_.path(value.producer) + ")";
  }
  return refuse(id, std::string("samples of one batch could ask for different ") + what + maker);
}

constexpr const char* kIterations = "numbers of iterations of this loop";
constexpr const char* kBranches = "branches";

// Into a parameter of a loop, from before it or from an iteration.
Status Analysis::enter(NodeId loop, ValueId parameter, const Batched& from, bool& changed) {
  Batched& to = states_[parameter.index()];
  if (!is_entered_[parameter.index()]) {
    is_entered_[parameter.index()] = true;
    to = from.kind == Batched::Kind::kShared ? Batched::shared() : from;
    return Status::ok();
  }
  std::optional<Batched> both = joined(to, from);
  if (!both) {
    return refuse(loop, "carried value '" + graph_.value(parameter).name + "' is " + text_of(to) +
                            " at first, and " + text_of(from) + " after an iteration");
  }
  changed |= to.is_along() && !to.each.equals(both->each) && to.each.is_known();
  to = std::move(*both);
  return Status::ok();
}

Status Analysis::visit_loop(NodeId id) {
  const LoopView loop(graph_, id);
  EDDY_RETURN_IF_ERROR(check_decision(id, loop.trip_limit(), kIterations));
  bool changed = false;
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    EDDY_RETURN_IF_ERROR(enter(id, loop.carried()[k], state(loop.initial()[k]), changed));
  }
  do {
    changed = false;
    EDDY_RETURN_IF_ERROR(visit(loop.before_id()));
    EDDY_RETURN_IF_ERROR(check_decision(id, loop.predicate(), kIterations));
    for (size_t k = 0; k < loop.num_forwarded(); ++k) {
      states_[loop.received()[k].index()] = state(loop.forwarded()[k]);
    }
    EDDY_RETURN_IF_ERROR(visit(loop.after_id()));
    for (size_t k = 0; k < loop.num_carried(); ++k) {
      if (loop.carried()[k] == loop.predicate()) {
        EDDY_RETURN_IF_ERROR(check_decision(id, loop.next()[k], kIterations));
      }
      EDDY_RETURN_IF_ERROR(enter(id, loop.carried()[k], state(loop.next()[k]), changed));
    }
  } while (changed);
  return end_loop(id);
}

Status Analysis::end_loop(NodeId id) {
  const LoopView loop(graph_, id);
  for (size_t k = 0; k < loop.num_forwarded(); ++k) {
    Batched& output = states_[loop.outputs()[k].index()];
    output = state(loop.forwarded()[k]);
    if (!output.is_along() && !output.is_counts()) output = Batched::shared();
  }
  for (size_t s = 0; s < loop.rows().size(); ++s) {
    const Batched& row = state(loop.rows()[s]);
    if (row.is_counts()) return refuse(id, "a stacked result counts samples");
    states_[loop.stacked()[s].index()] =
        row.is_along() ? Batched::along(row.axis + 1, row.each) : Batched::shared();
  }
  return Status::ok();
}

Status Analysis::visit_case(NodeId id) {
  const CaseView branches(graph_, id);
  EDDY_RETURN_IF_ERROR(check_decision(id, branches.selector(), kBranches));
  for (const RegionId region : branches.node().regions) EDDY_RETURN_IF_ERROR(visit(region));
  for (size_t o = 0; o < branches.outputs().size(); ++o) {
    std::optional<Batched> result;
    const auto add = [&](const Batched& next) {
      std::optional<Batched> both = result ? joined(*result, next) : next;
      if (!both) {
        return refuse(id, "output " + std::to_string(o) + " is " + text_of(*result) +
                              " in one branch, and " + text_of(next) + " in another");
      }
      result = std::move(both);
      return Status::ok();
    };
    for (size_t b = 0; b < branches.num_branches(); ++b) {
      EDDY_RETURN_IF_ERROR(add(state(branches.results(b)[o])));
    }
    if (branches.has_pass_through()) {
      EDDY_RETURN_IF_ERROR(add(state(branches.pass_through()[o])));
    }
    EDDY_CHECK(result.has_value()) << branches.node().name << " has no branch";
    states_[branches.outputs()[o].index()] = std::move(*result);
  }
  return Status::ok();
}

Result<BatchAxes> Analysis::axes() const {
  BatchAxes axes;
  for (const ValueId input : graph_.inputs()) {
    axes.inputs.push_back(state(input).is_along() ? state(input).axis : kNoSamples);
  }
  for (size_t o = 0; o < graph_.outputs().size(); ++o) {
    const Batched& output = state(graph_.outputs()[o]);
    const TensorType& type = graph_.value(graph_.outputs()[o]).type.tensor;
    if (output.is_counts() || (output.is_along() && type.element == ElementType::kString)) {
      return unsupported("requests cannot share a run along dimension '" + dimension_ +
                         "': output '" + graph_.output_names()[o] + "' " +
                         (output.is_counts() ? "counts samples" : "has strings of each sample"));
    }
    axes.outputs.push_back(output.is_along() ? output.axis : kNoSamples);
  }
  return axes;
}

Result<BatchAxes> Analysis::run() {
  EDDY_RETURN_IF_ERROR(read_inputs());
  EDDY_RETURN_IF_ERROR(visit(Graph::kRoot));
  return axes();
}

}  // namespace

Result<BatchAxes> find_batch_axes(const Graph& graph, const std::string& dimension) {
  return Analysis(graph, dimension).run();
}

}  // namespace eddy
