#include "examples/nets/transformer.h"

#include <cmath>

#include "examples/dynamic_models/parts.h"

namespace eddy::nets {

using dynamic::random_array;

Value TransformerParts::table(int64_t rows, int64_t width, const char* name) {
  return dynamic::weight(b_, random_array(random_, {rows, width}, std::sqrt(3.0f)), name);
}

Value TransformerParts::dense(Value x, int64_t from, int64_t to) {
  const float range = std::sqrt(3 / static_cast<float>(from));
  const Value weights = dynamic::weight(b_, random_array(random_, {from, to}, range), "weights");
  const Value bias = dynamic::weight(b_, random_array(random_, {to}, 0.1f), "bias");
  return dynamic::linear(b_, x, weights, bias);
}

Value TransformerParts::norm(Value x, int64_t width, float epsilon) {
  dynamic::Array scale = random_array(random_, {width}, 0.2f);
  for (float& value : scale.values) value += 1;
  const Value inputs[] = {x, dynamic::weight(b_, scale, "scale"),
                          dynamic::weight(b_, random_array(random_, {width}, 0.1f), "bias")};
  return b_.op("LayerNormalization", inputs, {{"epsilon", epsilon}});
}

Value TransformerParts::gelu(Value x) {
  const Value scaled = b_.op("Div", {x, b_.scalar(std::sqrt(2.0f))});
  const Value risen = b_.op("Add", {b_.op("Erf", {scaled}), b_.scalar(1.0f)});
  return b_.op("Mul", {b_.op("Mul", {x, risen}), b_.scalar(0.5f)});
}

Value TransformerParts::feed_forward(Value x, int64_t hidden, int64_t inner) {
  return dense(gelu(dense(x, hidden, inner)), inner, hidden);
}

Value TransformerParts::split_heads(Value x, int64_t rows, const Heads& heads) {
  const Value parts = dynamic::reshape(b_, x, {1, rows, heads.count, heads.width});
  return b_.op("Transpose", {parts}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

Value TransformerParts::merge_heads(Value x, int64_t rows, const Heads& heads) {
  const Value turned = b_.op("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  return dynamic::reshape(b_, turned, {1, rows, heads.hidden()});
}

Value TransformerParts::attend(Value queries, Value keys, Value values, const Heads& heads,
                               Value bias_or_none) {
  const Value turned = b_.op("Transpose", {keys}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const Value norm = b_.scalar(std::sqrt(static_cast<float>(heads.width)));
  Value scores = b_.op("Div", {b_.op("MatMul", {queries, turned}), norm});
  if (!bias_or_none.is_none()) scores = b_.op("Add", {scores, bias_or_none});
  return b_.op("MatMul", {b_.op("Softmax", {scores}, {{"axis", -1}}), values});
}

}  // namespace eddy::nets
