// FlexAttention of ai.onnx.preview: attention whose scores and probabilities go through graphs that
// stand among the node's attributes. It becomes the products and the nodes of these graphs; without
// graphs it is Attention.
#include <algorithm>
#include <cmath>
#include <string>

#include "graph/io/importer.h"
#include "graph/io/text.h"

namespace eddy {

struct Importer::FlexAttention {
  Value q, k, v;                                  // [batch, heads, length, size]
  ElementType given = ElementType::kUndefined;    // of Q, K, V and Y
  ElementType product = ElementType::kUndefined;  // of what is multiplied
  ElementType score = ElementType::kUndefined;    // of what the graphs are given
  const OnnxGraph* score_mod = nullptr;
  const OnnxGraph* prob_mod = nullptr;
  bool is_grouped = true;  // Q has more heads than K and V, or may have
};

namespace {

// Attention and Shape from `start` to `end`.
constexpr int kFlexOpset = 24;

int64_t dim_of(const ValueType& type, int axis) {
  return type.tensor.is_ranked ? type.tensor.dims[axis] : kUnknownDim;
}

}  // namespace

bool Importer::plan_flex_attention(const NodeContext& at, FlexAttention& flex) {
  static constexpr std::string_view kKnown[] = {"prob_mod", "scale", "score_mod",
                                                "softmax_precision"};
  for (const auto& [name, attribute] : at.attributes) {
    if (std::ranges::find(kKnown, name) == std::end(kKnown)) {
      return fail_at(at, "has no attribute " + quoted(name));
    }
    if (name == "scale" && attribute->type != OnnxAttributeType::kFloat) {
      return fail_at(at, "its scale must be a float");
    }
  }
  std::vector<Value> inputs;
  if (!inputs_of(at, &inputs)) return false;
  const bool has_all =
      inputs.size() == 3 && !inputs[0].is_none() && !inputs[1].is_none() && !inputs[2].is_none();
  if (!has_all) return fail_at(at, "takes Q, K and V, none of them left out");
  flex.q = inputs[0], flex.k = inputs[1], flex.v = inputs[2];
  flex.given = builder_.type(flex.q).tensor.element;
  for (const Value input : inputs) {
    const ValueType& type = builder_.type(input);
    const bool fits = type.is_tensor() && kFloatTypes.contains(type.tensor.element) &&
                      (!type.tensor.is_ranked || type.tensor.dims.rank() == 4);
    if (!fits || type.tensor.element != flex.given) {
      return fail_at(at,
                     "Q, K and V must be floats of one type and [batch, heads, length, size]"
                     ", not " +
                         to_string(type));
    }
  }
  const int64_t heads = dim_of(builder_.type(flex.q), 1);
  const int64_t shared = dim_of(builder_.type(flex.k), 1);
  flex.is_grouped = heads != shared || heads == kUnknownDim;
  if (heads >= 0 && shared >= 0 && (shared == 0 ? heads != 0 : heads % shared != 0)) {
    return fail_at(at, "its " + std::to_string(heads) + " heads of Q are no multiple of the " +
                           std::to_string(shared) + " of K");
  }
  const bool is_double = flex.given == ElementType::kDouble;
  flex.product = is_double ? ElementType::kDouble : ElementType::kFloat;
  const OnnxAttribute* precision = at.find_or_null("softmax_precision");
  flex.score = precision == nullptr ? flex.product : static_cast<ElementType>(precision->i);
  if (precision != nullptr &&
      (precision->i < 0 || precision->i >= kNumElementTypes || !kFloatTypes.contains(flex.score))) {
    return fail_at(
        at, "softmax_precision must be a type of floats, not " + std::to_string(precision->i));
  }
  for (const auto& [name, graph] :
       {std::pair{"score_mod", &flex.score_mod}, std::pair{"prob_mod", &flex.prob_mod}}) {
    if (at.find_or_null(name) == nullptr) continue;
    *graph = body_or_null(at, name);
    if (*graph == nullptr || !check_counts(at, **graph, name, 1, 1)) return false;
  }
  return true;
}

// What `graph` makes of `value`; without a graph the value itself.
Value Importer::modified(const NodeContext& at, const OnnxGraph* graph, Value value) {
  if (graph == nullptr || !is_ok()) return value;
  const std::vector<Value> results = import_body(*graph, at.scope, {&value, 1});
  if (!is_ok()) return {};
  const ValueType& given = builder_.type(value);
  const ValueType& made = builder_.type(results[0]);
  if (made.is_tensor() && made.tensor.element == given.tensor.element) return results[0];
  fail_at(at, "its graph " + quoted(graph->name) + " makes " + to_string(made) + " of " +
                  to_string(given) + "; give it the same element type");
  return {};
}

Value Importer::flex_attention(const NodeContext& at, const FlexAttention& flex) {
  using Values = std::initializer_list<Value>;
  const auto op = [&](std::string_view name, Values values, Attributes attributes = {}) -> Value {
    return helper(at, name, values, std::move(attributes), kFlexOpset);
  };
  const auto cast = [&](Value value, ElementType to) -> Value {
    if (!is_ok() || builder_.type(value).tensor.element == to) return value;
    return op("Cast", {value}, {{"to", static_cast<int64_t>(to)}});
  };
  const auto sizes = [&](Value value, int64_t start, int64_t end) -> Value {
    return op("Shape", {value}, {{"start", start}, {"end", end}});
  };
  const auto reshape = [&](Value value, Values parts) -> Value {
    return op("Reshape", {value, op("Concat", parts, {{"axis", int64_t{0}}})});
  };
  const Value q = cast(flex.q, flex.product), k = cast(flex.k, flex.product);
  // The heads of Q that share one of K and V stand behind each other, as if Q were longer. The last
  // axis is as `axis` of `like`.
  const auto fold = [&](Value value, Value like, int64_t axis) -> Value {
    if (!flex.is_grouped) return value;
    return reshape(value, {sizes(k, 0, 2), builder_.int64s({-1}), sizes(like, axis, axis + 1)});
  };
  const auto unfold = [&](Value value, Value like, int64_t axis) -> Value {
    if (!flex.is_grouped) return value;
    return reshape(value, {sizes(q, 0, 3), sizes(like, axis, axis + 1)});
  };
  const int64_t size = dim_of(builder_.type(flex.q), 3);
  const OnnxAttribute* given = at.find_or_null("scale");
  Value scale;
  if (given == nullptr && size < 0) {
    scale = op("Reciprocal", {op("Sqrt", {cast(sizes(q, 3, 4), flex.product)})});
  } else {
    const double factor = given != nullptr ? given->f : 1 / std::sqrt(static_cast<double>(size));
    const bool is_double = flex.product == ElementType::kDouble;
    scale = is_double ? builder_.scalar(factor) : builder_.scalar(static_cast<float>(factor));
  }
  const Value turned = op("Transpose", {k}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  Value scores = unfold(op("MatMul", {fold(op("Mul", {q, scale}), k, 3), turned}), k, 2);
  scores = modified(at, flex.score_mod, cast(scores, flex.score));
  if (!is_ok()) return {};
  Value shares = op("Softmax", {scores}, {{"axis", int64_t{-1}}});
  shares = fold(cast(modified(at, flex.prob_mod, shares), flex.product), k, 2);
  const Value y = op("MatMul", {shares, cast(flex.v, flex.product)});
  return cast(unfold(y, flex.v, 3), flex.given);
}

bool Importer::import_flex_attention(const NodeContext& at) {
  if (at.key.version > 1) {
    return fail_at(at, unsupported("version " + std::to_string(at.key.version) +
                                   " of ai.onnx.preview is not supported, only 1"));
  }
  FlexAttention flex;
  if (!plan_flex_attention(at, flex)) return false;
  Value y;
  if (flex.score_mod == nullptr && flex.prob_mod == nullptr) {
    Attributes attributes = {{"softmax_precision", static_cast<int64_t>(flex.score)}};
    if (const OnnxAttribute* scale = at.find_or_null("scale")) attributes.set("scale", scale->f);
    y = helper(at, "Attention", {flex.q, flex.k, flex.v}, std::move(attributes), kFlexOpset);
  } else {
    y = flex_attention(at, flex);
  }
  if (!is_ok()) return false;
  name_outputs(at, {&y, 1});
  return bind_outputs(at, {&y, 1});
}

}  // namespace eddy
