#include "graph/compile/block_channels.h"

#include <algorithm>
#include <array>
#include <map>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/compile/image_chains.h"

namespace eddy {
namespace {

template <size_t N>
bool is_one_of(const Node& node, const std::array<std::string_view, N>& ops) {
  return node.kind == NodeKind::kExec && node.op->domain.empty() &&
         std::ranges::find(ops, node.op->name) != ops.end();
}

// Of one image each; 0 stays finite.
constexpr std::array<std::string_view, 13> kUnary = {
    "Relu", "LeakyRelu", "Clip", "Sigmoid",  "Tanh",     "HardSigmoid", "HardSwish",
    "Elu",  "Selu",      "Abs",  "Softplus", "Identity", "Neg"};
constexpr std::array<std::string_view, 6> kBinary = {"Add", "Sub", "Mul", "Max", "Min", "Sum"};

// Without training it hands its image on.
bool is_dropout(const Node& node) { return is_onnx(node, "Dropout") && node.inputs.size() < 3; }

class ChannelBlocker : public GraphCopier {
 public:
  ChannelBlocker(const Graph& source, GraphBuilder& builder, const ImageFacts& facts,
                 const ImageChains& chains)
      : GraphCopier(source, builder),
        facts_(facts),
        chains_(chains),
        block_(facts.block()),
        blocked_(source.num_values()),
        is_read_elsewhere_(source.num_values(), false) {
    find_values_read_elsewhere();
  }

 private:
  // Values of a node that another region reads, or a loop, a branch, a result.
  void find_values_read_elsewhere() {
    const auto note = [&](ValueId value, RegionId by) {
      if (!value.is_none() && source_.value(value).region != by) {
        is_read_elsewhere_[value.index()] = true;
      }
    };
    for (uint32_t n = 0; n < source_.num_nodes(); ++n) {
      const Node& node = source_.node(NodeId(n));
      const bool is_exec = node.kind == NodeKind::kExec;
      for (const ValueId input : node.inputs) note(input, is_exec ? node.region : RegionId());
    }
    for (uint32_t r = 0; r < source_.num_regions(); ++r) {
      for (const ValueId result : source_.region(RegionId(r)).results) note(result, RegionId());
    }
  }

  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    region_ = node.region;
    if (chains_.is_inner(id)) return;  // stands where its chain's last node stands
    if (const ImageChain* const chain = chains_.ends_or_null(id)) return emit(*chain);
    if (may_stay_blocked(node) && emit_blocked(node, id)) return;
    copy_exec(id);
  }

  // What stands for the plain image, turned over where there are only blocks of it.
  Value value(ValueId id) override {
    const Value known = GraphCopier::value(id);
    if (!known.is_none() || !is_blocked(id)) return known;
    EDDY_DCHECK(source_.value(id).region == region_)
        << "an image is turned over for each iteration";
    const Value made =
        builder_.op("UnblockChannels", {blocked_[id.index()]}, {{"channels", facts_.dims(id)[1]}},
                    named(source_.value(id).name));
    define(id, made);
    return made;
  }

  static OpOptions named(const std::string& output) {
    OpOptions options;
    options.domain = "eddy";
    options.output_names = {output};
    return options;
  }

  bool is_blocked(ValueId id) const { return !id.is_none() && !blocked_[id.index()].is_none(); }

  // The image in blocks of so many channels. Blocks of one are the image itself, seen otherwise.
  Value blocked(ValueId id, int64_t block) {
    if (block == block_ && is_blocked(id)) return blocked_[id.index()];
    const auto known = turned_.find({id, block});
    if (known != turned_.end()) return known->second;
    OpOptions options;
    options.domain = "eddy";
    const Value turned =
        block == 1 ? builder_.op("Unsqueeze", {value(id), builder_.int64s({4})})
                   : builder_.op("BlockChannels", {value(id)}, {{"block", block}}, options);
    if (source_.value(id).region == region_) turned_[{id, block}] = turned;
    return turned;
  }

  // Bodies may be built again: what stood for the value then is gone.
  void defined(ValueId id, Value) override { forget_turned(id); }
  void forget_turned(ValueId id) {
    std::erase_if(turned_, [id](const auto& turned) { return turned.first.first == id; });
  }

  void define_blocked(ValueId id, Value made) {
    define(id, Value());
    forget_turned(id);
    blocked_[id.index()] = made;
    if (is_read_elsewhere_[id.index()]) value(id);
  }

  // y = x * factor + shift, by channel; none: 1 and 0. Nodes of constants, which are evaluated
  // once.
  struct Affine {
    Value factor, shift;
  };
  void scale(Affine& affine, Value by) {
    affine.factor = affine.factor.is_none() ? by : builder_.op("Mul", {affine.factor, by});
    if (!affine.shift.is_none()) affine.shift = builder_.op("Mul", {affine.shift, by});
  }
  void shift(Affine& affine, Value by) {
    affine.shift = affine.shift.is_none() ? by : builder_.op("Add", {affine.shift, by});
  }

  void apply(Affine& affine, const Node& node) {
    if (node.op->name != "BatchNormalization") {
      const ValueId constant = facts_.channel_constant(node);
      const int64_t channels = facts_.dims(node.outputs[0])[1];
      const Value by = builder_.op("Reshape", {value(constant), builder_.int64s({channels})});
      return node.op->name == "Mul" ? scale(affine, by) : shift(affine, by);
    }
    const Value epsilon = builder_.scalar(node.attributes.get_float("epsilon", 1e-5f));
    const Value deviation =
        builder_.op("Sqrt", {builder_.op("Add", {value(node.inputs[4]), epsilon})});
    shift(affine, builder_.op("Neg", {value(node.inputs[3])}));
    scale(affine, builder_.op("Div", {value(node.inputs[1]), deviation}));
    shift(affine, value(node.inputs[2]));
  }

  struct Weights {
    Value w, b;
  };
  Weights weights_of(const ImageChain& chain, int64_t channels) {
    Affine affine;
    if (!chain.conv.is_none()) {
      const Node& conv = source_.node(chain.conv);
      if (conv.inputs.size() > 2) affine.shift = value(conv.inputs[2]);
    }
    for (const NodeId id : chain.affines) apply(affine, source_.node(id));
    const auto column = [&](Value factor) {
      return builder_.op("Reshape", {factor, builder_.int64s({channels, 1, 1, 1})});
    };
    if (!chain.conv.is_none()) {
      const Value w = value(source_.node(chain.conv).inputs[1]);
      if (affine.factor.is_none()) return {w, affine.shift};
      return {builder_.op("Mul", {w, column(affine.factor)}), affine.shift};
    }
    if (affine.factor.is_none()) {
      const std::vector<float> ones(static_cast<size_t>(channels), 1.0f);
      affine.factor = builder_.vector(std::span<const float>(ones));
    }
    return {column(affine.factor), affine.shift};
  }

  int64_t block_read_by(const ImageChain& chain) const {
    return chain.conv.is_none() ? block_ : facts_.block_read_by(source_.node(chain.conv));
  }

  Attributes attributes_of(const ImageChain& chain, int64_t channels) {
    Attributes attributes;
    if (chain.conv.is_none()) {
      attributes.set("group", channels);
    } else {
      attributes = source_.node(chain.conv).attributes;
    }
    attributes.set("block", block_);
    if (const int64_t x_block = block_read_by(chain); x_block != block_) {
      attributes.set("x_block", x_block);
    }
    if (chain.clamp) {
      attributes.set("clamp", std::vector<float>{chain.clamp->first, chain.clamp->second});
    }
    if (!chain.activation.empty()) attributes.set("activation", chain.activation);
    for (const char* name : {"alpha", "beta"}) {
      const Attributes& last = source_.node(chain.last).attributes;
      if (!chain.activation.empty() && last.has(name)) {
        attributes.set(name, last.get_float(name, 0));
      }
    }
    return attributes;
  }

  void emit(const ImageChain& chain) {
    const Node& first = source_.node(chain.first);
    const ValueId made = source_.node(chain.last).outputs[0];
    const int64_t channels = facts_.dims(first.outputs[0])[1];
    const ValueId x = chain.conv.is_none() ? facts_.affine_image(first) : first.inputs[0];
    const Weights weights = weights_of(chain, channels);
    const Value image = blocked(x, block_read_by(chain));
    const Value addend = chain.addend.is_none() ? Value() : blocked(chain.addend, block_);
    OpOptions options = named(source_.value(made).name);
    options.name = first.name;
    options.device = first.device;
    define_blocked(made, builder_.op("BlockedConv", {image, weights.w, weights.b, addend},
                                     attributes_of(chain, channels), options));
  }

  // Nodes that take images as they come, where theirs are blocked.
  bool may_stay_blocked(const Node& node) const {
    if (node.inputs.empty() || node.outputs.size() != 1) return false;
    if (is_one_of(node, kUnary) || is_dropout(node)) return is_blocked(node.inputs[0]);
    if (is_pool(node)) return is_blocked(node.inputs[0]);
    if (is_one_of(node, kBinary)) return may_combine(node);
    return is_onnx(node, "Concat") && may_join(node);
  }

  static bool is_pool(const Node& node) {
    return is_onnx(node, "MaxPool") || is_onnx(node, "AveragePool") ||
           is_onnx(node, "GlobalAveragePool") || is_onnx(node, "GlobalMaxPool");
  }

  // Both are blocked and of as many channels, or one is a single number.
  bool may_combine(const Node& node) const {
    if (node.inputs.size() != 2) return false;
    const auto is_number = [&](ValueId id) {
      return facts_.is_constant(id) && facts_.dims(id).count() == int64_t{1} &&
             facts_.dims(id).rank() <= 1;
    };
    const ValueId a = node.inputs[0], b = node.inputs[1];
    if (is_blocked(a) && is_blocked(b)) return facts_.dims(a)[1] == facts_.dims(b)[1];
    return (is_blocked(a) && is_number(b)) || (is_number(a) && is_blocked(b));
  }

  // Joins whole blocks of channels.
  bool may_join(const Node& node) const {
    const int64_t axis = node.attributes.get_int("axis", 0);
    if (axis != 1 && axis != -3) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_blocked(node.inputs[i])) return false;
      if (i + 1 < node.inputs.size() && facts_.dims(node.inputs[i])[1] % block_ != 0) return false;
    }
    return true;
  }

  bool emit_blocked(const Node& node, NodeId id) {
    if (!facts_.is_image(node.outputs[0])) return false;
    OpOptions options{.name = name_of(id),
                      .domain = {},
                      .opset_version = node.opset_version,
                      .num_outputs = 1,
                      .device = node.device,
                      .output_names = {source_.value(node.outputs[0]).name}};
    if (is_pool(node)) {
      emit_pool(node, std::move(options));
      return true;
    }
    std::vector<Value> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(is_blocked(input) ? blocked_[input.index()] : value(input));
    }
    Attributes attributes = node.attributes;
    if (node.op->name == "Concat") attributes.set("axis", int64_t{1});
    define_blocked(node.outputs[0],
                   builder_.op(node.op->name, inputs, std::move(attributes), std::move(options)));
    return true;
  }

  void emit_pool(const Node& node, OpOptions options) {
    const std::string& name = node.op->name;
    Attributes attributes;
    for (const Attributes::Entry& entry : node.attributes.entries()) {
      if (entry.name != "storage_order") attributes.set(entry.name, entry.value);
    }
    attributes.set("block", block_);
    attributes.set("kind", std::string(name.ends_with("MaxPool") ? "max" : "average"));
    if (name.starts_with("Global")) attributes.set("global", int64_t{1});
    options.domain = "eddy";
    options.opset_version = 0;
    const Value x = blocked_[node.inputs[0].index()];
    define_blocked(node.outputs[0],
                   builder_.op("BlockedPool", {x}, std::move(attributes), std::move(options)));
  }

  const ImageFacts& facts_;
  const ImageChains& chains_;
  const int64_t block_;
  RegionId region_;
  std::vector<Value> blocked_;  // by ValueId
  std::map<std::pair<ValueId, int64_t>, Value>
      turned_;  // by image and block: plain images that were turned over, in their regions
  std::vector<bool> is_read_elsewhere_;  // by ValueId
};

}  // namespace

Result<BlockedGraph> block_channels(Graph graph, const OpTable& ops,
                                    const BlockChannelsOptions& options) {
  EDDY_CHECK(options.block > 0) << "blocks of " << options.block << " channels";
  const ImageFacts facts(graph, options.block, options.blocks_norms);
  size_t num_convolutions = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    num_convolutions += facts.is_convolution(graph.node(NodeId(n))) ? 1 : 0;
  }
  if (num_convolutions == 0) return BlockedGraph{std::move(graph), 0};
  const ImageChains chains(facts);
  GraphBuilder builder(ops, graph.name());
  ChannelBlocker(graph, builder, facts, chains).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph blocked, builder.finish());
  return BlockedGraph{std::move(blocked), num_convolutions};
}

}  // namespace eddy
