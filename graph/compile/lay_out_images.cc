#include "graph/compile/lay_out_images.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

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
// Of each element, whatever it is.
constexpr std::array<std::string_view, 14> kFurtherUnary = {
    "Celu", "Ceil",  "Erf",        "Exp",  "Floor",    "Gelu", "Log",
    "Mish", "Round", "Reciprocal", "Sign", "Softsign", "Sqrt", "ThresholdedRelu"};
constexpr std::array<std::string_view, 6> kBinary = {"Add", "Sub", "Mul", "Max", "Min", "Sum"};

// Without training it hands its image on.
bool is_dropout(const Node& node) { return is_onnx(node, "Dropout") && node.inputs.size() < 3; }

class ImageLayer : public GraphCopier {
 public:
  ImageLayer(const Graph& source, GraphBuilder& builder, const ImageFacts& facts,
             const ImageChains& chains)
      : GraphCopier(source, builder),
        facts_(facts),
        chains_(chains),
        layout_(facts.layout()),
        laid_(source.num_values()),
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
    if (may_stay_laid(node) && emit_laid(node, id)) return;
    copy_exec(id);
  }

  // What stands for the plain image, turned over where there is only the laid one.
  Value value(ValueId id) override {
    const Value known = GraphCopier::value(id);
    if (!known.is_none() || !is_laid(id)) return known;
    EDDY_DCHECK(source_.value(id).region == region_)
        << "an image is turned over for each iteration";
    const Value made =
        layout_.leave(builder_, laid_[id.index()], facts_.dims(id), named(source_.value(id).name));
    define(id, made);
    return made;
  }

  static OpOptions named(const std::string& output) {
    OpOptions options;
    options.output_names = {output};
    return options;
  }

  bool is_laid(ValueId id) const { return !id.is_none() && !laid_[id.index()].is_none(); }

  Value laid(ValueId id, int64_t form) {
    if (form == layout_.form() && is_laid(id)) return laid_[id.index()];
    const auto known = turned_.find({id, form});
    if (known != turned_.end()) return known->second;
    const Value turned = layout_.enter(builder_, value(id), facts_.dims(id), form);
    if (source_.value(id).region == region_) turned_[{id, form}] = turned;
    return turned;
  }

  // Bodies may be built again: what stood for the value then is gone.
  void defined(ValueId id, Value) override { forget_turned(id); }
  void forget_turned(ValueId id) {
    std::erase_if(turned_, [id](const auto& turned) { return turned.first.first == id; });
  }

  void define_laid(ValueId id, Value made) {
    define(id, Value());
    forget_turned(id);
    laid_[id.index()] = made;
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
    const auto left_out = handed_on_.find(chain.addend);
    if (left_out != handed_on_.end() && !left_out->second.is_none()) {
      shift(affine, left_out->second);
    }
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

  Attributes attributes_of(const ImageChain& chain, int64_t channels) {
    Attributes attributes;
    if (chain.conv.is_none()) {
      attributes.set("group", channels);
    } else {
      attributes = source_.node(chain.conv).attributes;
    }
    for (const char* name : {"alpha", "beta"}) {
      const Attributes& last = source_.node(chain.last).attributes;
      if (!chain.activation.empty() && last.has(name)) {
        attributes.set(name, last.get_float(name, 0));
      }
    }
    return attributes;
  }

  // Whether the chain that alone reads this one, as its addend, adds the biases of both at once.
  bool hands_bias_on(const ImageChain& chain, ValueId made) const {
    const bool has_end = chain.clamp || !chain.addend.is_none() || !chain.activation.empty();
    return layout_.adds_before_bounds_only() && !has_end && chains_.adds_or_null(made) != nullptr &&
           !facts_.only_reader(source_.node(chain.last)).is_none();
  }

  void emit(const ImageChain& chain) {
    const Node& first = source_.node(chain.first);
    const ValueId made = source_.node(chain.last).outputs[0];
    const int64_t channels = facts_.dims(first.outputs[0])[1];
    const ValueId x = chain.conv.is_none() ? facts_.affine_image(first) : first.inputs[0];
    Weights weights = weights_of(chain, channels);
    if (hands_bias_on(chain, made)) handed_on_[made] = std::exchange(weights.b, Value());
    LaidConv conv{.image = {}, .weights = weights.w, .bias = weights.b};
    conv.form = chain.conv.is_none() ? layout_.form() : facts_.form_read_by(first);
    conv.image = laid(x, conv.form);
    if (!chain.addend.is_none()) conv.addend = laid(chain.addend, layout_.form());
    conv.attributes = attributes_of(chain, channels);
    conv.clamp = chain.clamp;
    conv.activation = chain.activation;
    OpOptions options = named(source_.value(made).name);
    options.name = first.name;
    options.device = first.device;
    define_laid(made, layout_.convolve(builder_, std::move(conv), options));
  }

  // Nodes that take images as they come, where theirs are laid out.
  bool may_stay_laid(const Node& node) const {
    if (node.inputs.empty() || node.outputs.size() != 1 || !facts_.is_here(node)) return false;
    if (is_one_of(node, kUnary) || is_dropout(node)) return is_laid(node.inputs[0]);
    if (layout_.is_dense() && is_one_of(node, kFurtherUnary)) return is_laid(node.inputs[0]);
    if (is_pool(node)) return is_laid(node.inputs[0]) && has_positions(node.inputs[0]);
    if (scales(node)) return true;
    if (is_one_of(node, kBinary) || (layout_.is_dense() && is_onnx(node, "Div"))) {
      return may_combine(node);
    }
    return is_onnx(node, "Concat") && may_join(node);
  }

  static bool is_pool(const Node& node) {
    return is_onnx(node, "MaxPool") || is_onnx(node, "AveragePool") ||
           is_onnx(node, "GlobalAveragePool") || is_onnx(node, "GlobalMaxPool");
  }
  // Sizes are known and none is 0, or the layout's pools refuse those themselves.
  bool has_positions(ValueId image) const {
    const Dims& dims = facts_.dims(image);
    return !layout_.is_dense() || (dims[2] > 0 && dims[3] > 0);
  }
  // Nodes that scale and shift, of which the layout makes no convolution.
  bool scales(const Node& node) const {
    return !layout_.convolves_to_scale() && facts_.is_affine(node) &&
           is_laid(facts_.affine_image(node));
  }

  // Both are laid out and of as many channels, or one is a single number.
  bool may_combine(const Node& node) const {
    if (node.inputs.size() != 2) return false;
    const auto is_number = [&](ValueId id) {
      return facts_.is_constant(id) && facts_.dims(id).count() == int64_t{1} &&
             facts_.dims(id).rank() <= 1;
    };
    const ValueId a = node.inputs[0], b = node.inputs[1];
    if (is_laid(a) && is_laid(b)) return facts_.dims(a)[1] == facts_.dims(b)[1];
    return (is_laid(a) && is_number(b)) || (is_number(a) && is_laid(b));
  }

  bool may_join(const Node& node) const {
    const int64_t axis = node.attributes.get_int("axis", 0);
    const auto is_laid_out = [&](ValueId id) { return is_laid(id); };
    if ((axis != 1 && axis != -3) || !std::ranges::all_of(node.inputs, is_laid_out)) return false;
    std::vector<int64_t> channels;
    for (const ValueId id : node.inputs) channels.push_back(facts_.dims(id)[1]);
    return layout_.joins(channels);
  }

  bool emit_laid(const Node& node, NodeId id) {
    const ValueId made = node.outputs[0];
    if (!facts_.is_image(made)) return false;
    OpOptions options{.name = name_of(id),
                      .domain = {},
                      .opset_version = node.opset_version,
                      .num_outputs = 1,
                      .device = node.device,
                      .output_names = {source_.value(made).name}};
    if (is_pool(node)) {
      const Value x = laid_[node.inputs[0].index()];
      define_laid(made, layout_.pool(builder_, node.op->name, node.attributes, x, options));
      return true;
    }
    if (scales(node)) {
      emit_scaled(node, std::move(options));
      return true;
    }
    std::vector<Value> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(is_laid(input) ? laid_[input.index()] : value(input));
    }
    Attributes attributes = node.attributes;
    if (node.op->name == "Concat") attributes.set("axis", layout_.channel_axis());
    define_laid(made,
                builder_.op(node.op->name, inputs, std::move(attributes), std::move(options)));
    return true;
  }

  // By a factor and a shift for each channel, which is the last axis.
  void emit_scaled(const Node& node, OpOptions options) {
    Affine affine;
    apply(affine, node);
    options.opset_version = 0;
    OpOptions inner = options;
    inner.output_names.clear();
    Value made = laid_[facts_.affine_image(node).index()];
    if (!affine.factor.is_none()) {
      const bool is_last = affine.shift.is_none();
      made = builder_.op("Mul", {made, affine.factor}, {}, is_last ? options : inner);
    }
    if (!affine.shift.is_none()) made = builder_.op("Add", {made, affine.shift}, {}, options);
    define_laid(node.outputs[0], made);
  }

  const ImageFacts& facts_;
  const ImageChains& chains_;
  const ImageLayout& layout_;
  RegionId region_;
  std::vector<Value> laid_;  // by ValueId
  std::map<std::pair<ValueId, int64_t>, Value>
      turned_;  // by image and form: plain images that were turned over, in their regions
  std::map<ValueId, Value> handed_on_;   // by addend: the bias that was left out of it, if any
  std::vector<bool> is_read_elsewhere_;  // by ValueId
};

}  // namespace

Result<LaidOutGraph> lay_out_images(Graph graph, const OpTable& ops,
                                    const LayOutImagesOptions& options) {
  const ImageFacts facts(graph, options);
  size_t num_convolutions = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    num_convolutions += facts.is_convolution(graph.node(NodeId(n))) ? 1 : 0;
  }
  if (num_convolutions == 0) return LaidOutGraph{std::move(graph), 0};
  const ImageChains chains(facts);
  GraphBuilder builder(ops, graph.name());
  ImageLayer(graph, builder, facts, chains).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph laid, builder.finish());
  return LaidOutGraph{std::move(laid), num_convolutions};
}

}  // namespace eddy
