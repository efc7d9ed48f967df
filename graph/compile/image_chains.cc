#include "graph/compile/image_chains.h"

#include <algorithm>
#include <limits>

#include "graph/base/check.h"
#include "graph/ir/node_facts.h"

namespace eddy {
namespace {

bool is_sum_of_two(const Node& node) {
  return (is_onnx(node, "Add") || is_onnx(node, "Sum")) && node.inputs.size() == 2;
}

}  // namespace

bool is_onnx(const Node& node, std::string_view op) {
  return node.kind == NodeKind::kExec && node.op->domain.empty() && node.op->name == op;
}

ImageFacts::ImageFacts(const Graph& graph, const LayOutImagesOptions& options)
    : graph_(graph), options_(options), uses_(count_uses(graph)) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).kind != NodeKind::kExec) continue;
    for (const ValueId input : graph.node(NodeId(n)).inputs) {
      if (!input.is_none()) readers_[input] = NodeId(n);
    }
  }
}

bool ImageFacts::is_constant(ValueId value) const {
  return !value.is_none() && info(value).origin == ValueOrigin::kConstant;
}

bool ImageFacts::is_constant_or_none(const Node& node, size_t input) const {
  return input >= node.inputs.size() || node.inputs[input].is_none() ||
         is_constant(node.inputs[input]);
}

bool ImageFacts::is_here(const Node& node) const {
  return options_.device.empty() || node.device.empty() || node.device == options_.device;
}

bool ImageFacts::is_image(ValueId value) const {
  const ValueType& type = info(value).type;
  return type.is_tensor() && layout().has_element(type.tensor.element) && type.tensor.is_ranked &&
         type.tensor.dims.rank() == 4 && type.tensor.dims[1] > 0;
}

bool ImageFacts::is_wide_image(ValueId value) const {
  return is_image(value) && dims(value)[1] >= layout().least_channels();
}

bool ImageFacts::is_same_shape(ValueId a, ValueId b) const {
  if (!is_image(a) || !is_image(b) || !(dims(a) == dims(b))) return false;
  return std::ranges::none_of(dims(a).span(), [](int64_t dim) { return dim == kUnknownDim; });
}

bool ImageFacts::is_convolution(const Node& node) const {
  if (!is_onnx(node, "Conv") || !is_here(node) || !is_image(node.inputs[0])) return false;
  if (!is_constant(node.inputs[1]) || !is_constant_or_none(node, 2)) return false;
  const Dims& w = dims(node.inputs[1]);
  return w.rank() == 4 && w[2] * w[3] > 0 && layout().suits(w, node.attributes.get_int("group", 1));
}

int64_t ImageFacts::form_read_by(const Node& conv) const {
  return layout().form_read_by(dims(conv.inputs[0])[1], conv.attributes.get_int("group", 1));
}

bool ImageFacts::is_norm(const Node& node) const {
  if (node.inputs.size() != 5 || node.opset_version < 9 ||
      node.attributes.get_int("training_mode", 0) != 0 || !is_wide_image(node.inputs[0]) ||
      info(node.inputs[0]).type.tensor.element != ElementType::kFloat) {
    return false;
  }
  for (size_t i = 1; i < 5; ++i) {
    if (!is_constant(node.inputs[i]) || dims(node.inputs[i]).rank() != 1 ||
        info(node.inputs[i]).type.tensor.element != ElementType::kFloat) {
      return false;
    }
  }
  return true;
}

bool ImageFacts::is_affine(const Node& node) const {
  if (!options_.scales_norms || !is_here(node) || node.outputs.size() != 1) return false;
  if (is_onnx(node, "BatchNormalization")) return is_norm(node);
  return (is_onnx(node, "Mul") || is_onnx(node, "Add")) && !channel_constant(node).is_none();
}

ValueId ImageFacts::affine_image(const Node& node) const {
  const bool is_second = node.inputs.size() == 2 && channel_constant(node) == node.inputs[0];
  return node.inputs[is_second ? 1 : 0];
}

ValueId ImageFacts::channel_constant(const Node& node) const {
  for (size_t i = 0; i < 2 && node.inputs.size() == 2; ++i) {
    const ValueId image = node.inputs[1 - i], constant = node.inputs[i];
    if (!is_constant(constant) || !is_wide_image(image)) continue;
    const TensorType& type = info(constant).type.tensor;
    const int64_t channels = dims(image)[1];
    const bool is_vector =
        type.dims == Dims{channels, 1, 1} || type.dims == Dims{1, channels, 1, 1};
    if (is_vector && type.element == info(image).type.tensor.element) return constant;
  }
  return {};
}

std::optional<Bounds> ImageFacts::bounds(const Node& node) const {
  constexpr float kAll = std::numeric_limits<float>::infinity();
  if (is_onnx(node, "Relu")) return Bounds{0.0f, kAll};
  if (!is_onnx(node, "Clip") || node.opset_version < 11 ||
      info(node.inputs[0]).type.tensor.element != ElementType::kFloat) {
    return std::nullopt;
  }
  Bounds found{-kAll, kAll};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i].is_none()) continue;
    if (!is_constant(node.inputs[i])) return std::nullopt;
    const TensorView bound = graph_.constant(info(node.inputs[i]).constant).view();
    if (bound.count() != 1 || bound.data == nullptr) return std::nullopt;
    (i == 1 ? found.first : found.second) = *bound.as<float>();
  }
  return found;
}

bool ImageFacts::is_activation(const Node& node) {
  constexpr std::string_view kNames[] = {"Celu",      "Elu",   "HardSigmoid", "HardSwish",
                                         "LeakyRelu", "Mish",  "Selu",        "Sigmoid",
                                         "Softplus",  "Swish", "Tanh"};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return is_onnx(node, name); });
}

std::optional<std::pair<NodeId, NodeId>> ImageFacts::swish_of(const Node& node) const {
  if (node.outputs.size() != 1 || uses_[node.outputs[0].index()] != 2) return std::nullopt;
  const ValueId value = node.outputs[0];
  const auto last = readers_.find(value);
  if (last == readers_.end()) return std::nullopt;
  const Node& product = graph_.node(last->second);
  if (!is_onnx(product, "Mul") || product.inputs[0] == product.inputs[1]) return std::nullopt;
  const ValueId other = product.inputs[product.inputs[0] == value ? 1 : 0];
  const ValueInfo& made = info(other);
  if (made.origin != ValueOrigin::kNodeOutput || uses_[other.index()] != 1) return std::nullopt;
  const Node& sigmoid = graph_.node(made.producer);
  const auto is_beside = [&](const Node& reader) {
    return reader.region == node.region && reader.device == node.device;
  };
  if (!is_onnx(sigmoid, "Sigmoid") || sigmoid.inputs[0] != value || !is_beside(sigmoid) ||
      !is_beside(product)) {
    return std::nullopt;
  }
  return std::pair{made.producer, last->second};
}

NodeId ImageFacts::only_reader(const Node& node) const {
  if (node.outputs.size() != 1 || uses_[node.outputs[0].index()] != 1) return {};
  const auto found = readers_.find(node.outputs[0]);
  if (found == readers_.end()) return {};
  const Node& reader = graph_.node(found->second);
  return reader.region == node.region && reader.device == node.device ? found->second : NodeId();
}

ImageChains::ImageChains(const ImageFacts& facts) : facts_(facts) {
  for (uint32_t n = 0; n < facts.graph().num_nodes(); ++n) {
    const NodeId id(n);
    if (facts.is_convolution(node(id))) find({.first = id, .last = id, .conv = id});
    if (facts.layout().convolves_to_scale() && facts.is_affine(node(id)) && !is_taken(id)) {
      find({.first = id, .last = id, .affines = {id}});
    }
  }
}

void ImageChains::find(ImageChain chain) {
  add_affines(chain);
  if (facts_.layout().adds_before_bounds_only()) {
    add_bounded_addend(chain);
  } else {
    add_addend(chain);
    add_clamp(chain);
  }
  if (!chain.clamp && facts_.layout().has_activations()) add_activation(chain);
  if (!chain.addend.is_none()) by_addend_.emplace(chain.addend, chain.last);
  by_last_.emplace(chain.last, chain);
}

// The node that alone reads what the chain makes, and may become part of it.
NodeId ImageChains::next(const ImageChain& chain) const {
  const NodeId reader = facts_.only_reader(node(chain.last));
  return reader.is_none() || is_taken(reader) ? NodeId() : reader;
}

void ImageChains::add_affines(ImageChain& chain) {
  while (true) {
    const NodeId reader = next(chain);
    if (reader.is_none() || !facts_.is_affine(node(reader)) ||
        facts_.affine_image(node(reader)) != node(chain.last).outputs[0]) {
      return;
    }
    extend(chain, reader);
    chain.affines.push_back(reader);
  }
}

// Of two chains that are added, the later one adds.
void ImageChains::add_addend(ImageChain& chain) {
  const NodeId reader = next(chain);
  if (reader.is_none() || !is_sum_of_two(node(reader))) return;
  const ValueId made = node(chain.last).outputs[0];
  const std::vector<ValueId>& inputs = node(reader).inputs;
  const ValueId other = inputs[0] == made ? inputs[1] : inputs[0];
  if (other == made || !facts_.is_same_shape(made, other)) return;
  const ValueInfo& info = facts_.info(other);
  if (info.origin != ValueOrigin::kNodeOutput || info.region != node(reader).region) return;
  if (info.producer > chain.last && may_add(info.producer, reader)) return;
  extend(chain, reader);
  chain.addend = other;
}

void ImageChains::add_bounded_addend(ImageChain& chain) {
  ImageChain with = chain;
  add_addend(with);
  add_clamp(with);
  if (!with.clamp) {
    inner_.erase(chain.last);
    return;
  }
  chain = std::move(with);
}

// Whether a chain that ends in `producer` would be found for the sum.
bool ImageChains::may_add(NodeId producer, NodeId sum) const {
  const Node& last = node(producer);
  return (facts_.is_convolution(last) || facts_.is_affine(last)) && facts_.only_reader(last) == sum;
}

void ImageChains::add_clamp(ImageChain& chain) {
  const NodeId reader = next(chain);
  if (reader.is_none() || node(reader).inputs[0] != node(chain.last).outputs[0]) return;
  const auto bounds = facts_.bounds(node(reader));
  if (!bounds || !facts_.layout().has_bounds(*bounds)) return;
  extend(chain, reader);
  chain.clamp = bounds;
}

void ImageChains::add_activation(ImageChain& chain) {
  if (const auto swish = facts_.swish_of(node(chain.last))) {
    const auto [sigmoid, product] = *swish;
    if (is_taken(sigmoid) || is_taken(product)) return;
    extend(chain, sigmoid);
    extend(chain, product);
    chain.activation = "Swish";
    return;
  }
  const NodeId reader = next(chain);
  if (reader.is_none() || !facts_.is_activation(node(reader))) return;
  extend(chain, reader);
  chain.activation = node(reader).op->name;
}

void ImageChains::extend(ImageChain& chain, NodeId to) {
  inner_.insert(chain.last);
  chain.last = to;
}

}  // namespace eddy
