// Type inference of the builder. Types of loop parameters only ever widen (known dimension →
// unknown → unranked), so inferring a loop's regions again until nothing changes ends. Values that
// hand their types on from one to the next could take a round each: after some rounds all carried
// values of the loop are opened at once (loosened).
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>

#include "graph/base/check.h"
#include "graph/ir/builder.h"
#include "graph/ir/checked_call.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

bool may_be_one_element(const TensorType& type) {
  if (!type.is_ranked) return true;
  for (int64_t dim : type.dims.span()) {
    if (dim >= 0 && dim != 1) return false;
  }
  return true;
}

}  // namespace

void GraphBuilder::set_type(ValueId value, const ValueType& type) {
  EDDY_DCHECK(graph_.value(value).origin != ValueOrigin::kConstant)
      << "the type of constant '" << graph_.value(value).name << "' is inferred";
  graph_.values_[value.index()].type = type;
}

Status GraphBuilder::infer_node(NodeId node) {
  switch (graph_.node(node).kind) {
    case NodeKind::kExec:
      return infer_exec(node);
    case NodeKind::kWhile:
      return infer_while(node);
    case NodeKind::kCaseOf:
      return infer_case(node);
  }
  return internal_error("unknown node kind");
}

Status GraphBuilder::infer_region(RegionId region) {
  // By index: inferring nested regions must not rely on references into graph_'s vectors.
  for (size_t i = 0; i < graph_.region(region).nodes.size(); ++i) {
    const NodeId node = graph_.region(region).nodes[i];
    Status status = infer_node(node);
    if (!status.is_ok()) return std::move(status.prepend_path(graph_.node(node).name));
  }
  return Status::ok();
}

template <typename Use>
auto GraphBuilder::with_context(const Node& node, std::span<ValueType> outputs,
                                const Use& use) const {
  const size_t count = node.inputs.size();
  // Lists that last for one call, in one block: the usual ones on the stack.
  std::array<std::byte, 1024> block;
  std::pmr::monotonic_buffer_resource memory(block.data(), block.size());
  std::pmr::vector<const ValueType*> types(count, nullptr, &memory);
  std::pmr::vector<TensorView> views(count, &memory);
  std::pmr::vector<const TensorView*> values(count, nullptr, &memory);
  for (size_t i = 0; i < count; ++i) {
    if (node.inputs[i].is_none()) continue;
    const ValueInfo& info = graph_.value(node.inputs[i]);
    types[i] = &info.type;
    if (info.origin != ValueOrigin::kConstant) continue;
    views[i] = graph_.constant(info.constant).view();
    values[i] = &views[i];
  }
  InferContext context(node.attributes, types, values, outputs, node.opset_version);
  EDDY_DCHECK(node.op != nullptr) << node.name << " has no operator";
  return use(context);
}

bool GraphBuilder::is_settled(const Node& call, size_t num_outputs) const {
  const auto is_of_loop = [&](RegionId region) {
    const NodeId owner = graph_.region(region).owner;
    return !owner.is_none() && graph_.node(owner).kind == NodeKind::kWhile;
  };
  // Types of what loops carry may widen yet.
  if (std::ranges::any_of(open_, is_of_loop)) return false;
  std::vector<ValueType> outputs(num_outputs);
  return with_context(call, outputs, [&](const InferContext& context) {
    return holds_for_all_sizes(*call.op, context);
  });
}

Status GraphBuilder::infer_outputs(const Node& node, std::span<ValueType> outputs) const {
  EDDY_RETURN_IF_ERROR(with_context(
      node, outputs, [&](InferContext& context) { return infer_types(*node.op, context); }));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& tensor = outputs[i].tensor;
    if (tensor.is_static() && !tensor.dims.count()) {
      return resource_exhausted("output " + std::to_string(i) + " would have the shape " +
                                to_string(tensor.dims) + ", which is too large");
    }
  }
  return Status::ok();
}

Status GraphBuilder::infer_exec(NodeId id) {
  const Node& node = graph_.node(id);
  std::array<std::byte, 512> block;
  std::pmr::monotonic_buffer_resource memory(block.data(), block.size());
  std::pmr::vector<ValueType> outputs(node.outputs.size(), &memory);
  EDDY_RETURN_IF_ERROR(infer_outputs(node, outputs));
  for (size_t i = 0; i < outputs.size(); ++i) set_type(node.outputs[i], outputs[i]);
  return Status::ok();
}

ValueType GraphBuilder::loosened(ValueType type, int round) {
  constexpr int kRoundsUntilOpen = 16;
  constexpr int kRoundsUntilUnranked = 32;
  if (round < kRoundsUntilOpen || !type.tensor.is_ranked) return type;
  if (round >= kRoundsUntilUnranked) {
    type.tensor = TensorType(type.tensor.element);
    return type;
  }
  for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) type.tensor.dims[axis] = kUnknownDim;
  return type;
}

bool GraphBuilder::widen_carried(const Node& node, int round, bool& changed, Status& error) {
  const LoopView loop(graph_, node);
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    const ValueId parameter = loop.carried()[k];
    const ValueType current = graph_.value(parameter).type;
    for (ValueId source : {loop.initial()[k], loop.next()[k]}) {
      const ValueType& type = graph_.value(source).type;
      const auto joined = join(graph_.value(parameter).type, type);
      if (!joined) {
        error = invalid_argument("carried value " + std::to_string(k) + " starts as " +
                                 to_string(current) + " but becomes " + to_string(type));
        return false;
      }
      set_type(parameter, loosened(*joined, round));
    }
    changed |= !(graph_.value(parameter).type == current);
  }
  return true;
}

void GraphBuilder::forward_types(const Node& node) {
  const LoopView loop(graph_, node);
  for (size_t k = 0; k < loop.num_forwarded(); ++k) {
    set_type(loop.received()[k], graph_.value(loop.forwarded()[k]).type);
  }
}

// A predicate that is carried (as in ONNX's Loop) must stay one bool from round to round.
Status GraphBuilder::check_carried_predicate(const Node& node) const {
  const LoopView loop(graph_, node);
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    if (loop.predicate() != loop.carried()[k]) continue;
    const ValueType& next = graph_.value(loop.next()[k]).type;
    if (next.tensor.element == ElementType::kBool && may_be_one_element(next.tensor)) continue;
    return invalid_argument("the body's predicate must be one bool, not " + to_string(next));
  }
  return Status::ok();
}

Status GraphBuilder::infer_while(NodeId id) {
  const Node node = graph_.node(id);  // a copy: nested inference may touch the vectors
  EDDY_CHECK(node.regions.size() == 2) << node.name << " is not complete";
  Status error;
  bool changed = true;
  for (int round = 0; changed; ++round) {
    changed = false;
    if (!widen_carried(node, round, changed, error)) return error;
    EDDY_RETURN_IF_ERROR(infer_region(node.regions[0]));
    forward_types(node);
    EDDY_RETURN_IF_ERROR(infer_region(node.regions[1]));
    if (!widen_carried(node, round, changed, error)) return error;
  }
  EDDY_RETURN_IF_ERROR(check_carried_predicate(node));
  const LoopView loop(graph_, node);
  for (size_t k = 0; k < loop.num_forwarded(); ++k) {
    set_type(loop.outputs()[k], graph_.value(loop.forwarded()[k]).type);
  }
  for (size_t s = 0; s < loop.rows().size(); ++s) {
    const ValueType& row = graph_.value(loop.rows()[s]).type;
    if (!row.is_tensor()) {
      return invalid_argument("scan row " + std::to_string(s) + " must be a tensor, not " +
                              to_string(row));
    }
    TensorType stacked(row.tensor.element);
    if (row.tensor.is_ranked) {
      if (row.tensor.dims.rank() == kMaxRank) {
        return invalid_argument("scan row " + std::to_string(s) + " has rank " +
                                std::to_string(kMaxRank) + "; its stack would exceed the limit");
      }
      stacked.is_ranked = true;
      stacked.dims.push_back(kUnknownDim);
      for (int64_t dim : row.tensor.dims.span()) stacked.dims.push_back(dim);
    }
    set_type(loop.stacked()[s], stacked);
  }
  return Status::ok();
}

Status GraphBuilder::infer_case(NodeId id) {
  const Node node = graph_.node(id);
  const ValueType& selector = graph_.value(node.inputs[0]).type;
  const ElementType element = selector.tensor.element;
  const bool is_selector_type = element == ElementType::kBool || element == ElementType::kInt32 ||
                                element == ElementType::kInt64;
  if (!selector.is_tensor() || !is_selector_type || !may_be_one_element(selector.tensor)) {
    return invalid_argument("the selector must be one bool, int32 or int64, not " +
                            to_string(selector));
  }
  if (node.regions.empty()) return invalid_argument("a case-of needs at least one region");
  if (node.default_region >= static_cast<int>(node.regions.size())) {
    return invalid_argument("default region " + std::to_string(node.default_region) +
                            " does not exist; there are " + std::to_string(node.regions.size()));
  }
  if (node.inputs.size() != 1 && node.inputs.size() != 1 + node.outputs.size()) {
    return invalid_argument("there are " + std::to_string(node.inputs.size() - 1) +
                            " pass-through values for " + std::to_string(node.outputs.size()) +
                            " outputs; give one for each or none");
  }
  for (RegionId region : node.regions) EDDY_RETURN_IF_ERROR(infer_region(region));
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    std::vector<ValueId> sources;
    for (RegionId region : node.regions) sources.push_back(graph_.region(region).results[k]);
    if (node.inputs.size() > 1) sources.push_back(node.inputs[k + 1]);
    ValueType joined = graph_.value(sources[0]).type;
    for (ValueId source : sources) {
      const auto wider = join(joined, graph_.value(source).type);
      if (!wider) {
        return invalid_argument("output " + std::to_string(k) + " is " + to_string(joined) +
                                " in one branch and " + to_string(graph_.value(source).type) +
                                " in another");
      }
      joined = *wider;
    }
    set_type(node.outputs[k], joined);
  }
  return Status::ok();
}

}  // namespace eddy
