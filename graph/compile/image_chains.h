// ImageFacts, ImageChains: which nodes of a graph work on float images [n, c, h, w] in a way that
// a layout of images suits (lay_out_images.h), and which of them become one convolution.
//
//   Conv ── BatchNormalization ── Add ── Relu       one chain: weights and bias scaled and shifted,
//   Conv ── Mul ── Add ── Relu                      an addend, bounds
//   Conv ── Sigmoid ── Mul (by the Conv's result)   an activation
//   BatchNormalization ── Relu                      a chain without a convolution
//
// Each node of a chain but the last has one reader, the next one, in the same region on the same
// device. Errors: none. Cost: O(nodes log nodes). Ownership: borrow the graph.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/compile/lay_out_images.h"
#include "graph/ir/graph.h"

namespace eddy {

// An operator of ONNX's own domain.
bool is_onnx(const Node& node, std::string_view op);

class ImageFacts {
 public:
  ImageFacts(const Graph& graph, const LayOutImagesOptions& options);

  const Graph& graph() const { return graph_; }
  const ImageLayout& layout() const { return options_.layout; }
  const ValueInfo& info(ValueId value) const { return graph_.value(value); }
  const Dims& dims(ValueId value) const { return info(value).type.tensor.dims; }
  bool is_constant(ValueId value) const;
  // It names no other device than the options'.
  bool is_here(const Node& node) const;
  // Floats of rank 4 and a known number of channels, of a type that the layout has.
  bool is_image(ValueId value) const;
  // Both are of one shape for sure.
  bool is_same_shape(ValueId a, ValueId b) const;
  // A convolution with constant weights that suit the layout.
  bool is_convolution(const Node& node) const;
  // That the convolution reads its image in.
  int64_t form_read_by(const Node& conv) const;
  // What scales and shifts each channel by constants: a normalization with given moments, Mul, Add.
  bool is_affine(const Node& node) const;
  // The image that an affine node reads, and the constant beside it (of Mul and Add).
  ValueId affine_image(const Node& node) const;
  ValueId channel_constant(const Node& node) const;
  // The bounds of a Relu, or of a Clip with constant ones, of type float.
  std::optional<Bounds> bounds(const Node& node) const;
  // An elementwise operator that a convolution may end with.
  static bool is_activation(const Node& node);
  // The product of the value and its Sigmoid, where nothing else reads either: its Sigmoid, and the
  // product.
  std::optional<std::pair<NodeId, NodeId>> swish_of(const Node& node) const;
  // The only reader of the node's only result, of the same region and device; none: there is none.
  NodeId only_reader(const Node& node) const;

 private:
  bool is_constant_or_none(const Node& node, size_t input) const;
  bool is_wide_image(ValueId value) const;
  bool is_norm(const Node& node) const;

  const Graph& graph_;
  const LayOutImagesOptions& options_;
  const std::vector<uint32_t> uses_;
  std::map<ValueId, NodeId> readers_;  // the last one of each value
};

// Nodes that become one convolution, which stands where `last` stood.
struct ImageChain {
  NodeId first, last;
  NodeId conv = {};                  // none: affine nodes alone
  std::vector<NodeId> affines = {};  // in order
  ValueId addend = {};               // none: nothing is added
  std::optional<Bounds> clamp = {};
  std::string activation = {};  // the operator; "Swish" of two nodes, too
};

class ImageChains {
 public:
  explicit ImageChains(const ImageFacts& facts);

  // The chain that ends in the node.
  const ImageChain* ends_or_null(NodeId id) const {
    const auto found = by_last_.find(id);
    return found == by_last_.end() ? nullptr : &found->second;
  }
  // The chain that adds the value.
  const ImageChain* adds_or_null(ValueId value) const {
    const auto found = by_addend_.find(value);
    return found == by_addend_.end() ? nullptr : &by_last_.at(found->second);
  }
  // The node is in a chain and does not end it.
  bool is_inner(NodeId id) const { return inner_.contains(id); }

 private:
  const Node& node(NodeId id) const { return facts_.graph().node(id); }
  bool is_taken(NodeId id) const { return inner_.contains(id) || by_last_.contains(id); }
  void find(ImageChain chain);
  NodeId next(const ImageChain& chain) const;
  void add_affines(ImageChain& chain);
  void add_addend(ImageChain& chain);
  void add_bounded_addend(ImageChain& chain);
  bool may_add(NodeId producer, NodeId sum) const;
  void add_clamp(ImageChain& chain);
  void add_activation(ImageChain& chain);
  void extend(ImageChain& chain, NodeId to);

  const ImageFacts& facts_;
  std::map<NodeId, ImageChain> by_last_;
  std::map<ValueId, NodeId> by_addend_;  // the last node of the chain
  std::set<NodeId> inner_;
};

}  // namespace eddy
