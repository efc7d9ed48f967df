// Forms of opsets 1 to 6 as functions of the operators of now: what was an attribute becomes an
// input, and what stretched by `broadcast` and `axis` gets the ones that NumPy's rule needs. So no
// kernel, gradient or pass knows how the standard began.
//
// Where only `consumed_inputs` went, the later definition has it (rules.h): it says which inputs
// may be overwritten, which is the planner's to decide.
#include <algorithm>
#include <cctype>
#include <climits>
#include <cmath>
#include <string>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"
#include "ops/schema/rules/window.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kEqualTypes = kNumericTypes | kBoolType | TypeSet{ElementType::kString};

// Element type and rank of input 0; the nodes of the expansion say the sizes.
Status infer_rank_of_input(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  TensorType y = *x;
  for (int axis = 0; axis < y.dims.rank(); ++axis) y.dims[axis] = kUnknownDim;
  for (size_t o = 0; o < context.num_outputs(); ++o) context.set_output(o, y);
  return Status::ok();
}

Status infer_element_of_input(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  return Status::ok();
}

// B must be A's shape, or with `broadcast` a run of its dimensions that starts at `axis` (by
// default: ends with A's last).
Status infer_stretched(InferContext& context, bool is_comparison) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  EDDY_ASSIGN_OR_RETURN(const TensorType* a, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* b, tensor_input(context, 1));
  TensorType y = *a;
  if (is_comparison) y.element = ElementType::kBool;
  context.set_output(0, y);
  const bool stretch = context.attributes().get_int("broadcast", 0) != 0;
  if (stretch) {  // of an axis that no tensor has no size may be made, also where ranks are open
    const int64_t axis = context.attributes().get_int("axis", 0);
    if (axis < -kMaxRank || axis >= kMaxRank) {
      const std::string most = std::to_string(a->is_ranked ? a->dims.rank() : kMaxRank);
      return invalid_argument("axis " + std::to_string(axis) + " is out of range: input 0 has " +
                              (a->is_ranked ? "" : "at most ") + most + " dimensions");
    }
  }
  if (!a->is_ranked || !b->is_ranked) return Status::ok();
  int axis = a->dims.rank() - b->dims.rank();
  if (stretch && context.attributes().has("axis") && b->dims.rank() > 0) {
    EDDY_ASSIGN_OR_RETURN(axis,
                          normalize_axis(context.attributes().get_int("axis", 0), a->dims.rank()));
  }
  bool fits = stretch ? axis >= 0 && axis + b->dims.rank() <= a->dims.rank() : axis == 0;
  for (int i = 0; fits && i < b->dims.rank(); ++i) {
    const int64_t dim = b->dims[i];
    fits = (stretch && dim == 1) || merge_dim(a->dims[axis + i], dim).has_value();
  }
  if (fits) return Status::ok();
  return invalid_argument("input 1 of shape " + to_string(b->dims) +
                          " does not stretch over input 0 of shape " + to_string(a->dims) +
                          (stretch ? " from axis " + std::to_string(axis)
                                   : ": they must be equal without broadcast=1"));
}
Status infer_binary(InferContext& context) { return infer_stretched(context, false); }
Status infer_comparison(InferContext& context) { return infer_stretched(context, true); }

Value rank_of(Expansion& e, Value x) { return e.op("Size", {e.shape(x)}); }

// b with ones after its last dimension, so that its first one stands under a's `axis`. Ranks that
// are not known are counted when the model runs; there, b without dimensions stays one number, and
// with `only_lists` so does b of any other rank than one.
Value aligned(Expansion& e, Value a, Value b, int64_t axis, bool only_lists = false) {
  const TensorType a_type = e.type(a), b_type = e.type(b);
  if (a_type.is_ranked && b_type.is_ranked) {
    const int a_rank = a_type.dims.rank(), b_rank = b_type.dims.rank();
    if (b_rank == 0 || (only_lists && b_rank != 1)) return b;
    std::vector<int64_t> places;
    for (int64_t i = (axis < 0 ? axis + a_rank : axis) + b_rank; i < a_rank; ++i) {
      places.push_back(b_rank + static_cast<int64_t>(places.size()));
    }
    return places.empty() ? b : e.op("Unsqueeze", {b, e.int64s(places)});
  }
  const Value a_rank = rank_of(e, a), b_rank = rank_of(e, b);
  const Value first = axis < 0 ? e.op("Add", {a_rank, e.integer(axis)}) : e.integer(axis);
  const Value lacks = e.op("Sub", {a_rank, b_rank});
  // One number has any axis under it: no more ones than a has axes.
  Value free = e.op("Min", {e.op("Sub", {lacks, first}), lacks});
  if (only_lists) {
    const Value is_list = e.cast(e.op("Equal", {b_rank, e.integer(1)}), ElementType::kInt64);
    free = e.op("Mul", {free, is_list});
  }
  const Value count = e.op("Reshape", {e.op("Max", {free, e.integer(0)}), e.int64s({1})});
  const std::vector<Value> parts = {e.shape(b), e.op("Expand", {e.integer(1), count})};
  const Value shape = e.op("Concat", parts, {{"axis", int64_t{0}}});
  return e.op("Reshape", {b, shape}, {{"allowzero", int64_t{1}}});
}

void expand_binary(Expansion& e) {
  const Attributes& given = e.attributes();
  Value b = e.input(1);
  if (given.get_int("broadcast", 0) != 0 && given.has("axis")) {
    b = aligned(e, e.input(0), b, given.get_int("axis", 0));
  }
  e.set_output(0, e.op(e.op_name(), {e.input(0), b}));
}

// A slope of one dimension stands for channels.
Status infer_prelu(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  return infer_same_as_input(context);
}

void expand_prelu(Expansion& e) {
  const Value x = e.input(0);
  e.set_output(0, e.op("PRelu", {x, aligned(e, x, e.input(1), 1, true)}));
}

// The names of the enumeration TensorProto.DataType. kUndefined: none of them.
ElementType element_named(std::string_view text) {
  for (int i = 1; i < kNumElementTypes; ++i) {
    std::string name(element_type_name(static_cast<ElementType>(i)));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    if (name == text) return static_cast<ElementType>(i);
  }
  return ElementType::kUndefined;
}

Status infer_cast(InferContext& context) {
  const std::string_view to = context.attributes().get_string("to", "");
  const ElementType element = element_named(to);
  if (element == ElementType::kUndefined) {
    return invalid_argument("attribute 'to' is '" + std::string(to.substr(0, 40)) +
                            "'; it must name an element type as FLOAT or INT64");
  }
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  TensorType type = *input;
  type.element = element;
  context.set_output(0, type);
  return Status::ok();
}

void expand_cast(Expansion& e) {
  e.set_output(0, e.cast(e.input(0), element_named(e.attributes().get_string("to", ""))));
}

void expand_concat(Expansion& e) {
  std::vector<Value> inputs;
  for (size_t i = 0; i < e.num_inputs(); ++i) inputs.push_back(e.input(i));
  e.set_output(0, e.op("Concat", inputs, {{"axis", e.attributes().get_int("axis", 1)}}));
}

// An attribute without values looks like none: a shape without dimensions, either way.
void expand_reshape(Expansion& e) {
  e.set_output(0, e.op("Reshape", {e.input(0), e.int64s(e.attributes().get_ints("shape"))}));
}

Status infer_pad(InferContext& context) {
  EDDY_RETURN_IF_ERROR(infer_rank_of_input(context));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  if (!x->is_ranked) return Status::ok();
  const std::span<const int64_t> paddings = context.attributes().get_ints("paddings");
  const auto rank = static_cast<size_t>(x->dims.rank());
  if (paddings.size() != 2 * rank) {
    return invalid_argument("paddings must hold " + std::to_string(2 * rank) +
                            " numbers, two for each axis, not " + std::to_string(paddings.size()));
  }
  TensorType y = *x;
  for (size_t i = 0; i < rank; ++i) {
    int64_t& dim = y.dims[static_cast<int>(i)];
    if (dim < 0) continue;
    if (__builtin_add_overflow(dim, paddings[i], &dim) ||
        __builtin_add_overflow(dim, paddings[rank + i], &dim) || dim < 0) {
      return invalid_argument("axis " + std::to_string(i) + " can't be padded by " +
                              std::to_string(paddings[i]) + " and " +
                              std::to_string(paddings[rank + i]));
    }
  }
  context.set_output(0, y);
  return Status::ok();
}

void expand_pad(Expansion& e) {
  const Attributes& given = e.attributes();
  const Value value = e.number(e.element(e.input(0)), given.get_float("value", 0));
  e.set_output(0, e.op("Pad", {e.input(0), e.int64s(given.get_ints("paddings")), value},
                       {{"mode", std::string(given.get_string("mode", "constant"))}}));
}

// The lengths are an attribute or an input of the data's type. The standard says no default of
// `axis`; it is that of later opsets.
Status infer_split(InferContext& context) {
  if (context.has_input(1) && context.attributes().has("split")) {
    return invalid_argument("the lengths are given twice, as attribute 'split' and as input 1");
  }
  return infer_rank_of_input(context);
}

void expand_split(Expansion& e) {
  const Attributes& given = e.attributes();
  Value lengths;
  if (given.has("split")) lengths = e.int64s(given.get_ints("split"));
  if (e.has_input(1)) lengths = e.cast(e.input(1), ElementType::kInt64);
  Attributes attributes = {{"axis", given.get_int("axis", 0)}};
  const int num_outputs = static_cast<int>(e.num_outputs());
  if (lengths.is_none()) attributes.set("num_outputs", int64_t{num_outputs});
  const Value inputs[] = {e.input(0), lengths};
  const auto parts = e.ops("Split", inputs, std::move(attributes), num_outputs);
  for (size_t o = 0; o < parts.size(); ++o) e.set_output(o, parts[o]);
}

// `tiles` copies along `axis`, both numbers of the data's type.
Status infer_tile(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_one_element(context, 1, "tiles"));
  EDDY_RETURN_IF_ERROR(expect_one_element(context, 2, "axis"));
  return infer_rank_of_input(context);
}

void expand_tile(Expansion& e) {
  const auto number = [&](Value x) {
    return e.op("Reshape", {e.cast(x, ElementType::kInt64), e.int64s(std::vector<int64_t>())});
  };
  const Value zero = e.number(ElementType::kInt64, 0), one = e.number(ElementType::kInt64, 1);
  const Value rank = rank_of(e, e.input(0)), axis = number(e.input(2));
  const Value place = e.op("Where", {e.op("Less", {axis, zero}), e.op("Add", {axis, rank}), axis});
  const Value is_axis = e.op("Equal", {e.op("Range", {zero, rank, one}), place});
  const Value repeats = e.op("Where", {is_axis, number(e.input(1)), one});
  e.set_output(0, e.op("Tile", {e.input(0), repeats}));
}

// Opset 6 gave the constants more digits.
void expand_selu(Expansion& e) {
  e.set_output(0, e.op("Selu", {e.input(0)},
                       {{"alpha", e.attributes().get_float("alpha", 1.6732f)},
                        {"gamma", e.attributes().get_float("gamma", 1.0507f)}}));
}

Status infer_lp(InferContext& context) {
  const double p = static_cast<double>(context.attributes().get_float("p", 2));
  if (!(p >= 1 && p <= 1e6)) {
    return invalid_argument("attribute 'p' must be at least 1, not " + std::to_string(p));
  }
  return infer_rank_of_input(context);
}
Status infer_lp_pool(InferContext& context) {
  if (!context.attributes().has("kernel_shape")) {
    return invalid_argument("LpPool needs attribute 'kernel_shape'");
  }
  EDDY_RETURN_IF_ERROR(infer_lp(context));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  if (!x->is_ranked || x->dims.rank() < 3) return Status::ok();  // LpPool's own rule says the rest
  Windows windows;
  EDDY_RETURN_IF_ERROR(parse_windows(context.attributes(), x->dims.rank() - 2, nullptr, windows));
  EDDY_RETURN_IF_ERROR(check_pads(windows));
  Dims dims = x->dims;
  for (int i = 0; i < windows.rank; ++i) {
    WindowAxis axis;
    EDDY_RETURN_IF_ERROR(resolve_axis(windows, i, x->dims[i + 2], axis, dims[i + 2]));
  }
  context.set_output(0, TensorType(x->element, dims));
  return Status::ok();
}

// The norm of whole exponents has a kernel; that of others is the root of a sum of powers.
Value root_of_sum(Expansion& e, Value sum, float p) {
  return e.op("Pow", {sum, e.number(e.element(sum), 1 / static_cast<double>(p))});
}
Value powers(Expansion& e, float p) {
  const Value size = e.op("Abs", {e.input(0)});
  return e.op("Pow", {size, e.number(e.element(size), static_cast<double>(p))});
}

void expand_lp_pool(Expansion& e) {
  const float p = e.attributes().get_float("p", 2);
  Attributes windows;
  double count = 1;
  for (const Attributes::Entry& entry : e.attributes().entries()) {
    if (entry.name != "p") windows.set(entry.name, entry.value);
  }
  for (const int64_t size : windows.get_ints("kernel_shape")) count *= static_cast<double>(size);
  if (p == std::floor(p)) {
    windows.set("p", static_cast<int64_t>(p));
    return e.set_output(0, e.op("LpPool", {e.input(0)}, std::move(windows)));
  }
  windows.set("count_include_pad", int64_t{1});
  const Value mean = e.op("AveragePool", {powers(e, p)}, std::move(windows));
  const Value sum = e.op("Mul", {mean, e.number(e.element(mean), count)});
  e.set_output(0, root_of_sum(e, sum, p));
}

void expand_global_lp_pool(Expansion& e) {
  const float p = e.attributes().get_float("p", 2);
  if (p == std::floor(p)) {
    return e.set_output(0, e.op("GlobalLpPool", {e.input(0)}, {{"p", static_cast<int64_t>(p)}}));
  }
  const int rank = e.rank_or_fail(e.input(0), "X");
  if (rank < 0) return;
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  const Value sum = axes.empty() ? powers(e, p) : e.op("ReduceSum", {powers(e, p), e.int64s(axes)});
  e.set_output(0, root_of_sum(e, sum, p));
}

OpDef binary(std::string name, TypeSet types, InferFunction infer) {
  return {.name = std::move(name),
          .inputs = {in("A", types), in("B", types)},
          .attributes = {attribute("axis", kInt), flag("broadcast")},
          .infer = std::move(infer),
          .expand = expand_binary};
}

std::vector<OpDef> binary_operators() {
  std::vector<OpDef> defs;
  for (const char* name : {"Add", "Sub", "Mul", "Div"}) {
    defs.push_back(binary(name, kNumericTypes, infer_binary));
    defs.back().attributes.push_back(consumed_inputs());
  }
  defs.push_back(binary("Pow", kNumericTypes, infer_binary));
  for (const char* name : {"And", "Or", "Xor"}) {
    defs.push_back(binary(name, kBoolType, infer_binary));
  }
  defs.push_back(binary("Equal", kEqualTypes, infer_comparison));
  for (const char* name : {"Greater", "Less"}) {
    defs.push_back(binary(name, kNumericTypes, infer_comparison));
  }
  return defs;
}

std::vector<OpDef> elementwise_operators() {
  return {
      {.name = "PRelu",
       .inputs = {in("X", kNumericTypes), in("slope", kNumericTypes)},
       .attributes = {consumed_inputs()},
       .infer = infer_prelu,
       .expand = expand_prelu},
      {.name = "Selu",
       .inputs = {in("X", kFloatTypes)},
       .attributes = {attribute("alpha", kFloat), attribute("gamma", kFloat), consumed_inputs()},
       .infer = infer_same_as_input,
       .expand = expand_selu},
      {.name = "Cast",
       .inputs = {in("input")},
       .attributes = {attribute("to", kString, true)},
       .infer = infer_cast,
       .expand = expand_cast}};
}

std::vector<OpDef> moving_operators() {
  return {{.name = "Concat",
           .inputs = {in("inputs", kAllTypes, InputFlag::kVariadic)},
           .attributes = {attribute("axis", kInt)},
           .infer = infer_rank_of_input,
           .expand = expand_concat},
          {.name = "Pad",
           .inputs = {in("data", kFloatTypes)},
           .attributes = {attribute("mode", kString), attribute("paddings", kInts, true),
                          attribute("value", kFloat)},
           .infer = infer_pad,
           .expand = expand_pad},
          {.name = "Reshape",
           .inputs = {in("data")},
           .attributes = {attribute("shape", kInts), consumed_inputs()},
           .infer = infer_element_of_input,
           .expand = expand_reshape},
          {.name = "Split",
           .inputs = {in("input"),
                      in("split", kFloatTypes, InputFlag::kOptional | InputFlag::kHostValue)},
           .max_outputs = INT_MAX,
           .attributes = {attribute("axis", kInt), attribute("split", kInts)},
           .infer = infer_split,
           .expand = expand_split},
          {.name = "Tile",
           .inputs = {in("input", kFloatTypes), in("tiles", kFloatTypes, InputFlag::kHostValue),
                      in("axis", kFloatTypes, InputFlag::kHostValue)},
           .infer = infer_tile,
           .expand = expand_tile}};
}

std::vector<OpDef> pools() {
  return {{.name = "LpPool",
           .inputs = {in("X", kFloatTypes)},
           .attributes = {attribute("auto_pad", kString), attribute("kernel_shape", kInts),
                          attribute("p", kFloat), attribute("pads", kInts),
                          attribute("strides", kInts)},
           .infer = infer_lp_pool,
           .expand = expand_lp_pool},
          {.name = "GlobalLpPool",
           .inputs = {in("X", kFloatTypes)},
           .attributes = {attribute("p", kFloat)},
           .infer = infer_lp,
           .expand = expand_global_lp_pool}};
}

}  // namespace

Status add_early_functions(OpTable& table) {
  EDDY_RETURN_IF_ERROR(add_schemas(table, binary_operators()));
  EDDY_RETURN_IF_ERROR(add_schemas(table, elementwise_operators()));
  EDDY_RETURN_IF_ERROR(add_schemas(table, moving_operators()));
  return add_schemas(table, pools());
}

}  // namespace eddy
