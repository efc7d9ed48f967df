#include "graph/compile/image_layout.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr int64_t kMaxTaps = 64;
using Ints = std::vector<int64_t>;

Attributes without(const Attributes& attributes, std::string_view name) {
  Attributes others;
  for (const Attributes::Entry& entry : attributes.entries()) {
    if (entry.name != name) others.set(entry.name, entry.value);
  }
  return others;
}

OpOptions own(OpOptions options) {
  options.domain = "eddy";
  options.opset_version = 0;
  return options;
}

// Of another opset than the node that it stands for.
OpOptions standard(OpOptions options) {
  options.domain.clear();
  options.opset_version = 0;
  return options;
}

bool is_one_position(const Dims& dims) { return dims[2] == 1 && dims[3] == 1; }

}  // namespace

BlockedLayout::BlockedLayout(int64_t block) : block_(block) {
  EDDY_CHECK(block > 0) << "blocks of " << block << " channels";
}

bool BlockedLayout::suits(const Dims& w, int64_t group) const {
  if (w[2] * w[3] > kMaxTaps) return false;
  if (group == 1) return w[0] >= block_ / 2 && w[1] > 0;
  const bool is_depthwise = w[1] == 1 && w[0] == group;
  return is_depthwise || (w[1] % block_ == 0 && w[0] / group % block_ == 0);
}

// Whole blocks, but for the last ones.
bool BlockedLayout::joins(std::span<const int64_t> channels) const {
  return std::ranges::all_of(channels.first(channels.size() - 1),
                             [&](int64_t count) { return count % block_ == 0; });
}

// One where there are few channels (the first layer of a network), so that the image is read as it
// comes.
int64_t BlockedLayout::form_read_by(int64_t channels, int64_t group) const {
  return channels < block_ / 2 && group == 1 ? 1 : block_;
}

// Blocks of one are the image itself, seen otherwise.
Value BlockedLayout::enter(GraphBuilder& b, Value image, const Dims&, int64_t form) const {
  if (form == 1) return b.op("Unsqueeze", {image, b.int64s({4})});
  return b.op("BlockChannels", {image}, {{"block", form}}, own({}));
}

Value BlockedLayout::leave(GraphBuilder& b, Value image, const Dims& dims,
                           OpOptions options) const {
  return b.op("UnblockChannels", {image}, {{"channels", dims[1]}}, own(std::move(options)));
}

Value BlockedLayout::convolve(GraphBuilder& b, LaidConv conv, OpOptions options) const {
  Attributes attributes = std::move(conv.attributes);
  attributes.set("block", block_);
  if (conv.form != block_) attributes.set("x_block", conv.form);
  if (conv.clamp) {
    attributes.set("clamp", std::vector<float>{conv.clamp->first, conv.clamp->second});
  }
  if (!conv.activation.empty()) attributes.set("activation", conv.activation);
  return b.op("BlockedConv", {conv.image, conv.weights, conv.bias, conv.addend},
              std::move(attributes), own(std::move(options)));
}

Value BlockedLayout::pool(GraphBuilder& b, const std::string& op, const Attributes& given,
                          Value image, OpOptions options) const {
  Attributes attributes = without(given, "storage_order");
  attributes.set("block", block_);
  attributes.set("kind", std::string(op.ends_with("MaxPool") ? "max" : "average"));
  if (op.starts_with("Global")) attributes.set("global", int64_t{1});
  return b.op("BlockedPool", {image}, std::move(attributes), own(std::move(options)));
}

// cuDNN has no float64 so.
bool ChannelsLastLayout::has_element(ElementType element) const {
  return element == ElementType::kFloat || element == ElementType::kFloat16 ||
         element == ElementType::kBfloat16;
}

bool ChannelsLastLayout::suits(const Dims& w, int64_t) const { return w[0] > 0 && w[1] > 0; }

bool ChannelsLastLayout::has_bounds(const Bounds& bounds) const {
  return bounds == Bounds{0.0f, std::numeric_limits<float>::infinity()};
}

// One channel, or one position, lies alike in both orders.
Value ChannelsLastLayout::enter(GraphBuilder& b, Value image, const Dims& dims, int64_t) const {
  const bool is_plane = dims[1] == 1 && dims[2] > 0 && dims[3] > 0;
  if (is_plane || is_one_position(dims)) {
    return b.op("Reshape", {image, b.int64s({0, dims[2], dims[3], dims[1]})});
  }
  return b.op("Transpose", {image}, {{"perm", Ints{0, 2, 3, 1}}});
}

Value ChannelsLastLayout::leave(GraphBuilder& b, Value image, const Dims& dims,
                                OpOptions options) const {
  const bool is_plane = dims[1] == 1 && dims[2] > 0 && dims[3] > 0;
  if (is_plane || is_one_position(dims)) {
    return b.op("Reshape", {image, b.int64s({0, dims[1], dims[2], dims[3]})}, {},
                standard(std::move(options)));
  }
  return b.op("Transpose", {image}, {{"perm", Ints{0, 3, 1, 2}}}, standard(std::move(options)));
}

// The library takes bias, addend and Relu in one call; without a Relu elementwise nodes add another
// image, because they do more behind it.
Value ChannelsLastLayout::convolve(GraphBuilder& b, LaidConv conv, OpOptions options) const {
  EDDY_DCHECK(conv.clamp || conv.addend.is_none()) << "an addend without a Relu";
  const Value weights = b.op("Transpose", {conv.weights}, {{"perm", Ints{0, 2, 3, 1}}});
  if (conv.clamp) conv.attributes.set("relu", int64_t{1});
  return b.op("ChannelsLastConv", {conv.image, weights, conv.bias, conv.addend},
              std::move(conv.attributes), own(std::move(options)));
}

Value ChannelsLastLayout::pool(GraphBuilder& b, const std::string& op, const Attributes& given,
                               Value image, OpOptions options) const {
  if (op.starts_with("Global")) {
    const char* const reduce = op == "GlobalMaxPool" ? "ReduceMax" : "ReduceMean";
    return b.op(reduce, {image, b.int64s({1, 2})}, {}, standard(std::move(options)));
  }
  return b.op("ChannelsLast" + op, {image}, without(given, "storage_order"),
              own(std::move(options)));
}

}  // namespace eddy
