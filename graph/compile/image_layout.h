// ImageLayout: how images lie between convolutions, where a device has fast kernels for them so,
// and the nodes that the device has for such images.
//
//   BlockedLayout       [n, c / b, h, w, b]   the CPU: channels in blocks of a vector, filled up
//   ChannelsLastLayout  [n, h, w, c]          CUDA: what cuDNN's kernels for tensor cores read
//
// lay_out_images.h decides where images lie so, by what a layout says that it suits; a layout makes
// nodes alone. Weights are nodes of constants, to be evaluated before anything runs.
// Ownership: none. Errors: the builder's. Threads: const.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "graph/ir/builder.h"

namespace eddy {

using Bounds = std::pair<float, float>;

// A convolution with what becomes part of it; `image` and `addend` lie in the layout.
struct LaidConv {
  Value image, weights;  // weights as ONNX has them, scaled
  Value bias = {};       // one for each filter; none: 0
  Value addend = {};     // none: nothing is added
  Attributes attributes = {};  // the plain one's
  int64_t form = 0;            // that `image` was entered in
  std::optional<Bounds> clamp = {};
  std::string activation = {};  // an operator, with its alpha and beta among the attributes
};

class ImageLayout {
 public:
  virtual ~ImageLayout() = default;

  // What suits it.
  virtual bool has_element(ElementType element) const = 0;
  virtual int64_t least_channels() const = 0;  // of an image that is scaled by channel
  virtual bool suits(const Dims& weights, int64_t group) const = 0;
  virtual bool has_bounds(const Bounds& bounds) const = 0;
  virtual bool has_activations() const = 0;  // of convolutions
  // A convolution adds an image only where it ends in bounds: elsewhere elementwise nodes do.
  virtual bool adds_before_bounds_only() const = 0;
  // What scales and shifts channels behind no convolution is one, of one element by channel.
  virtual bool convolves_to_scale() const = 0;
  // There is nothing but the image's elements: no fill of which a node could make infinities.
  virtual bool is_dense() const = 0;
  virtual bool joins(std::span<const int64_t> channels) const = 0;
  virtual int64_t channel_axis() const = 0;

  // In which form an image of so many channels is entered for a convolution; images that
  // convolutions make have form().
  virtual int64_t form() const { return 0; }
  virtual int64_t form_read_by(int64_t /*channels*/, int64_t /*group*/) const { return form(); }

  // `dims`: of the plain image.
  virtual Value enter(GraphBuilder& builder, Value image, const Dims& dims, int64_t form) const = 0;
  virtual Value leave(GraphBuilder& builder, Value image, const Dims& dims,
                      OpOptions options) const = 0;
  virtual Value convolve(GraphBuilder& builder, LaidConv conv, OpOptions options) const = 0;
  // Of a plain pool by the name and attributes of ONNX, without indices.
  virtual Value pool(GraphBuilder& builder, const std::string& op, const Attributes& attributes,
                     Value image, OpOptions options) const = 0;
};

class BlockedLayout : public ImageLayout {
 public:
  explicit BlockedLayout(int64_t block);  // channels in one

  bool has_element(ElementType element) const override { return element == ElementType::kFloat; }
  int64_t least_channels() const override { return block_ / 2; }
  bool suits(const Dims& weights, int64_t group) const override;
  bool has_bounds(const Bounds&) const override { return true; }
  bool has_activations() const override { return true; }
  bool adds_before_bounds_only() const override { return false; }
  bool convolves_to_scale() const override { return true; }
  bool is_dense() const override { return false; }
  bool joins(std::span<const int64_t> channels) const override;
  int64_t channel_axis() const override { return 1; }
  int64_t form() const override { return block_; }
  int64_t form_read_by(int64_t channels, int64_t group) const override;
  Value enter(GraphBuilder& builder, Value image, const Dims& dims, int64_t form) const override;
  Value leave(GraphBuilder& builder, Value image, const Dims& dims,
              OpOptions options) const override;
  Value convolve(GraphBuilder& builder, LaidConv conv, OpOptions options) const override;
  Value pool(GraphBuilder& builder, const std::string& op, const Attributes& attributes,
             Value image, OpOptions options) const override;

 private:
  const int64_t block_;
};

class ChannelsLastLayout : public ImageLayout {
 public:
  bool has_element(ElementType element) const override;
  int64_t least_channels() const override { return 1; }
  bool suits(const Dims& weights, int64_t group) const override;
  bool has_bounds(const Bounds& bounds) const override;  // a Relu's
  bool has_activations() const override { return false; }
  bool adds_before_bounds_only() const override { return true; }
  bool convolves_to_scale() const override { return false; }
  bool is_dense() const override { return true; }
  bool joins(std::span<const int64_t>) const override { return true; }
  int64_t channel_axis() const override { return 3; }
  Value enter(GraphBuilder& builder, Value image, const Dims& dims, int64_t form) const override;
  Value leave(GraphBuilder& builder, Value image, const Dims& dims,
              OpOptions options) const override;
  Value convolve(GraphBuilder& builder, LaidConv conv, OpOptions options) const override;
  Value pool(GraphBuilder& builder, const std::string& op, const Attributes& attributes,
             Value image, OpOptions options) const override;
};

}  // namespace eddy
