// Bernoulli, Multinomial, RandomNormal, RandomUniform and the Like forms: numbers drawn by a seeded
// generator (ops/reference/elementwise/random.cc).
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

// The attribute dtype, one of `types`; `fallback` where it is not given.
Status read_type(const InferContext& context, ElementType fallback, TypeSet types,
                 ElementType& type) {
  const int64_t given = context.attributes().get_int("dtype", static_cast<int64_t>(fallback));
  const bool is_type = given > 0 && given < kNumElementTypes;
  type = is_type ? static_cast<ElementType>(given) : ElementType::kUndefined;
  const bool is_open = !context.attributes().has("dtype") && fallback == ElementType::kUndefined;
  if (is_open || types.contains(type)) return Status::ok();
  return invalid_argument("can't draw numbers of type " + std::to_string(given) +
                          "; attribute 'dtype' chooses another");
}

Status infer_random(InferContext& context) {
  ElementType type;
  EDDY_RETURN_IF_ERROR(read_type(context, ElementType::kFloat, kFloatTypes, type));
  IntList shape;
  EDDY_RETURN_IF_ERROR(read_ints(context.attributes().get_ints("shape"), "shape", shape));
  Dims dims;
  for (const int64_t size : shape.span()) {
    if (size < 0)
      return invalid_argument("the shape has the negative size " + std::to_string(size));
    EDDY_RETURN_IF_ERROR(push_dim(dims, size));
  }
  return set_checked_output(context, 0, type, dims);
}

Status infer_like(InferContext& context, TypeSet types) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* like, tensor_input(context, 0));
  TensorType y = *like;
  EDDY_RETURN_IF_ERROR(read_type(context, like->element, types, y.element));
  context.set_output(0, y);
  return Status::ok();
}
Status infer_random_like(InferContext& context) { return infer_like(context, kFloatTypes); }
Status infer_bernoulli(InferContext& context) {
  return infer_like(context, kNumericTypes | kBoolType);
}

// Logarithms of weights [batch, classes] give classes [batch, sample_size].
Status infer_multinomial(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  ElementType type;
  const TypeSet types = {ElementType::kInt32, ElementType::kInt64};
  EDDY_RETURN_IF_ERROR(read_type(context, ElementType::kInt32, types, type));
  const int64_t samples = context.attributes().get_int("sample_size", 1);
  if (samples < 1 || samples > INT32_MAX) {
    return invalid_argument("sample_size must be at least 1, not " + std::to_string(samples));
  }
  if (x->is_ranked && (x->dims.rank() != 2 || x->dims[1] == 0)) {
    return invalid_argument("the weights must be [batch, classes], not " + to_string(x->dims));
  }
  const int64_t batch = x->is_ranked ? x->dims[0] : kUnknownDim;
  return set_checked_output(context, 0, type, Dims{batch, samples});
}

OpDef drawing(const char* name, std::vector<FormalAttribute> attributes, bool is_like) {
  attributes.push_back(attribute("dtype", kInt));
  attributes.push_back(attribute("seed", kFloat));
  if (!is_like) attributes.push_back(attribute("shape", kInts, true));
  OpDef def = {.name = name, .attributes = std::move(attributes)};
  if (is_like) def.inputs = {in("input", kAllTypes, InputFlag::kShapeOnly)};
  def.infer = is_like ? infer_random_like : infer_random;
  return def;
}

}  // namespace

Status add_random_schemas(OpTable& table) {
  const std::vector<FormalAttribute> normal = {attribute("mean", kFloat),
                                               attribute("scale", kFloat)};
  const std::vector<FormalAttribute> uniform = {attribute("high", kFloat),
                                                attribute("low", kFloat)};
  return add_schemas(table,
                     {drawing("RandomNormal", normal, false),
                      drawing("RandomNormalLike", normal, true),
                      drawing("RandomUniform", uniform, false),
                      drawing("RandomUniformLike", uniform, true),
                      {.name = "Bernoulli",
                       .since_version = 15,
                       .inputs = {in("input", kFloatTypes)},
                       .attributes = {attribute("dtype", kInt), attribute("seed", kFloat)},
                       .infer = infer_bernoulli},
                      {.name = "Multinomial",
                       .since_version = 7,
                       .inputs = {in("input", kFloatTypes)},
                       .attributes = {attribute("dtype", kInt), attribute("sample_size", kInt),
                                      attribute("seed", kFloat)},
                       .infer = infer_multinomial}});
}

}  // namespace eddy
