// Einsum as a function: operands are joined one after the other by products of matrices. Axes that
// both have and that are still wanted are batches; those that nobody wants afterwards are summed,
// inside the product where both have them, else before it.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/functions/einsum_equation.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using Labels = EinsumEquation::Labels;

constexpr TypeSet kSmallTypes = {ElementType::kInt8, ElementType::kInt16, ElementType::kUint8,
                                 ElementType::kUint16};

// Axes of one label have one size, or broadcast; those of one input have one.
Status check_sizes(const InferContext& context, std::string_view text,
                   const EinsumEquation& equation) {
  struct Seen {
    size_t input;
    int axis;
    int64_t size;
  };
  std::map<int, std::vector<Seen>> seen;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const Dims& dims = context.input(i).tensor.dims;
    for (int axis = 0; axis < dims.rank(); ++axis) {
      std::vector<Seen>& others = seen[equation.operands[i][static_cast<size_t>(axis)]];
      for (const Seen& other : others) {
        const bool may_stretch = other.input != i && (other.size == 1 || dims[axis] == 1);
        if (other.size < 0 || dims[axis] < 0 || other.size == dims[axis] || may_stretch) continue;
        const auto place = [](size_t input, int of, int64_t size) {
          return "axis " + std::to_string(of) + " of input " + std::to_string(input) +
                 " has size " + std::to_string(size);
        };
        return invalid_argument(
            "equation '" + std::string(text) + "' names axes of unequal size alike: " +
            place(other.input, other.axis, other.size) + ", " + place(i, axis, dims[axis]));
      }
      others.push_back({i, axis, dims[axis]});
    }
  }
  return Status::ok();
}

// Where one process ends, whatever the machine has.
constexpr double kMostBytes = 0x1p47;

// The labels of the inputs after input i and of the result.
std::set<int> labels_wanted_after(const EinsumEquation& equation, size_t i) {
  std::set<int> wanted(equation.result.begin(), equation.result.end());
  for (size_t later = i + 1; later < equation.operands.size(); ++later) {
    wanted.insert(equation.operands[later].begin(), equation.operands[later].end());
  }
  return wanted;
}

// What is made on the way, by the order of expand_einsum, can be held where its sizes are known.
Status check_products(const InferContext& context, std::string_view text,
                      const EinsumEquation& equation) {
  std::map<int, int64_t> sizes;
  Labels labels;  // of the product so far
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const std::set<int> wanted = labels_wanted_after(equation, i);
    const Dims& dims = context.input(i).tensor.dims;
    for (int axis = 0; axis < dims.rank(); ++axis) {
      const int label = equation.operands[i][static_cast<size_t>(axis)];
      const auto [known, is_new] = sizes.try_emplace(label, dims[axis]);
      if (known->second == 1) known->second = dims[axis];
      if (known->second < 0 && dims[axis] != 1) known->second = dims[axis];
      if (is_new) labels.push_back(label);
    }
    std::erase_if(labels, [&](int label) { return !wanted.contains(label); });
    double bytes = static_cast<double>(element_size_bytes(context.input(0).tensor.element));
    Dims shape;
    for (const int label : labels) {
      bytes *= static_cast<double>(std::max<int64_t>(sizes.at(label), 0));  // unknown: may be none
      shape.push_back(sizes.at(label));
    }
    if (i == 0 || bytes <= kMostBytes) continue;
    return resource_exhausted("equation '" + std::string(text) + "': the product of inputs 0 to " +
                              std::to_string(i) + " has the shape " + to_string(shape) +
                              ", which no memory holds; sum over axes earlier, by another order "
                              "of inputs, or split an input");
  }
  return Status::ok();
}

Status infer_einsum(InferContext& context) {
  const std::string_view equation = context.attributes().get_string("equation", "");
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_RETURN_IF_ERROR(check_einsum(equation, context.num_inputs()));
  std::vector<int> ranks;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* type, tensor_input(context, i));
    if (type->is_ranked) ranks.push_back(type->dims.rank());
  }
  if (ranks.size() == context.num_inputs()) {
    EDDY_ASSIGN_OR_RETURN(const EinsumEquation parsed, parse_einsum(equation, ranks));
    EDDY_RETURN_IF_ERROR(check_sizes(context, equation, parsed));
    EDDY_RETURN_IF_ERROR(check_products(context, equation, parsed));
  }
  context.set_output(0, TensorType(context.input(0).tensor.element));
  return Status::ok();
}

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// A value, what its axes are called, and what is known of their sizes.
struct Operand {
  Value value;
  Labels labels;
  std::map<int, int64_t> sizes = {};  // by label; negative: unknown
};

int64_t axis_of(const Operand& operand, int label) {
  return std::find(operand.labels.begin(), operand.labels.end(), label) - operand.labels.begin();
}

Operand transposed(Expansion& e, const Operand& from, const Labels& to) {
  if (from.labels == to) return from;
  std::vector<int64_t> perm;
  for (const int label : to) perm.push_back(axis_of(from, label));
  return {e.op("Transpose", {from.value}, {{"perm", perm}}), to, from.sizes};
}

Operand summed(Expansion& e, const Operand& from, const std::set<int>& wanted) {
  std::vector<int64_t> axes;
  Labels kept;
  for (size_t i = 0; i < from.labels.size(); ++i) {
    if (wanted.contains(from.labels[i])) {
      kept.push_back(from.labels[i]);
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (axes.empty()) return from;
  return {e.op("ReduceSum", {from.value, e.int64s(axes)}, {{"keepdims", int64_t{0}}}), kept,
          from.sizes};
}

// The product of some sizes of a value, as a list of one.
Value product_of_sizes(Expansion& e, Value value, size_t begin, size_t end) {
  return e.op("ReduceProd",
              {e.sizes(value, static_cast<int64_t>(begin), static_cast<int64_t>(end))});
}

Value joined(Expansion& e, const std::vector<Value>& lists) {
  return e.op("Concat", lists, {{"axis", int64_t{0}}});
}

// An axis that a term names twice: the elements where both indices are equal. The two axes are the
// last ones, as one of n * n, of which every (n + 1)th counts; the reshape fails where they differ.
Operand diagonal(Expansion& e, Operand from) {
  for (size_t i = 0; i < from.labels.size(); ++i) {
    const int label = from.labels[i];
    const auto again =
        std::find(from.labels.begin() + static_cast<int64_t>(i) + 1, from.labels.end(), label);
    if (again == from.labels.end()) continue;
    const auto second = static_cast<size_t>(again - from.labels.begin());
    std::vector<int64_t> perm;
    Labels rest;
    for (size_t axis = 0; axis < from.labels.size(); ++axis) {
      if (axis == i || axis == second) continue;
      perm.push_back(static_cast<int64_t>(axis));
      rest.push_back(from.labels[axis]);
    }
    perm.push_back(static_cast<int64_t>(i));
    perm.push_back(static_cast<int64_t>(second));
    const Value turned = e.op("Transpose", {from.value}, {{"perm", perm}});
    const size_t rank = from.labels.size();
    const Value n = e.sizes(turned, static_cast<int64_t>(rank) - 1, static_cast<int64_t>(rank));
    const Value flat_shape =
        joined(e, {e.sizes(turned, 0, static_cast<int64_t>(rank) - 2), e.op("Mul", {n, n})});
    const Value flat = e.op("Reshape", {turned, flat_shape}, {{"allowzero", int64_t{1}}});
    const Value one = e.number(ElementType::kInt64, 1);
    const Value count = e.op("Squeeze", {n});
    const Value places = e.op("Range", {e.number(ElementType::kInt64, 0), count, one});
    const Value steps = e.op("Mul", {places, e.op("Add", {count, one})});
    rest.push_back(label);
    from = {e.op("Gather", {flat, steps}, {{"axis", int64_t(rank) - 2}}), rest, from.sizes};
    i = static_cast<size_t>(-1);  // from the start: labels have moved
  }
  return from;
}

// [batch..., first..., second...] with each of the two groups as one axis.
Value as_matrices(Expansion& e, Value value, size_t batch, size_t first, size_t second) {
  if (first == 1 && second == 1) return value;
  std::vector<Value> shape = {e.sizes(value, 0, static_cast<int64_t>(batch)),
                              product_of_sizes(e, value, batch, batch + first),
                              product_of_sizes(e, value, batch + first, batch + first + second)};
  return e.op("Reshape", {value, joined(e, shape)}, {{"allowzero", int64_t{1}}});
}

Labels concatenated(std::initializer_list<const Labels*> parts) {
  Labels all;
  for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

// For labels that both have and that are summed: a size of 1 stands for as many equal elements as
// the other has. Without the axis there, the sum is that of the other; where the size is not known
// yet, the elements are made. (A product takes no operands of unequal depth.)
void stretch_summed(Expansion& e, Operand& one, const Operand& other, const std::set<int>& wanted) {
  const Labels labels = one.labels;
  for (const int label : labels) {
    if (!has(other.labels, label) || wanted.contains(label)) continue;
    const int64_t size = one.sizes.at(label), others = other.sizes.at(label);
    const bool are_equal = size == others && size != kUnknownDim;
    const int64_t axis = axis_of(one, label);
    if (are_equal || others == 1 || (size >= 0 && size != 1)) continue;
    if (size == 1) {
      one.value = e.op("Squeeze", {one.value, e.int64s({axis})});
      one.labels.erase(one.labels.begin() + axis);
      continue;
    }
    const auto rank = static_cast<int64_t>(one.labels.size()), at = axis_of(other, label);
    const auto ones = [&](int64_t count) {
      return e.int64s(std::vector<int64_t>(static_cast<size_t>(count), 1));
    };
    const Value shape =
        joined(e, {ones(axis), e.sizes(other.value, at, at + 1), ones(rank - axis - 1)});
    one.value = e.op("Expand", {one.value, shape});
  }
}

Operand multiplied(Expansion& e, Operand a, Operand b, const std::set<int>& wanted) {
  stretch_summed(e, a, b, wanted);
  stretch_summed(e, b, a, wanted);
  std::set<int> a_needs = wanted, b_needs = wanted;
  a_needs.insert(b.labels.begin(), b.labels.end());
  b_needs.insert(a.labels.begin(), a.labels.end());
  a = summed(e, a, a_needs);
  b = summed(e, b, b_needs);
  Labels batch, inner, rows, columns;
  for (const int label : a.labels) {
    Labels& group = !has(b.labels, label) ? rows : wanted.contains(label) ? batch : inner;
    group.push_back(label);
  }
  for (const int label : b.labels) {
    if (!has(a.labels, label)) columns.push_back(label);
  }
  a = transposed(e, a, concatenated({&batch, &rows, &inner}));
  b = transposed(e, b, concatenated({&batch, &inner, &columns}));
  const Value product =
      e.op("MatMul", {as_matrices(e, a.value, batch.size(), rows.size(), inner.size()),
                      as_matrices(e, b.value, batch.size(), inner.size(), columns.size())});
  Operand result{product, concatenated({&batch, &rows, &columns}), a.sizes};
  for (const int label : b.labels) {
    const auto [known, is_new] = result.sizes.try_emplace(label, b.sizes.at(label));
    if (!is_new && known->second == 1) known->second = b.sizes.at(label);
  }
  if (rows.size() == 1 && columns.size() == 1) return result;
  const auto size = [](const Labels& labels) { return static_cast<int64_t>(labels.size()); };
  const Value shape = joined(
      e, {e.sizes(product, 0, size(batch)), e.sizes(a.value, size(batch), size(batch) + size(rows)),
          e.sizes(b.value, size(batch) + size(inner), size(b.labels))});
  result.value = e.op("Reshape", {product, shape}, {{"allowzero", int64_t{1}}});
  return result;
}

void expand_einsum(Expansion& e) {
  std::vector<int> ranks;
  for (size_t i = 0; i < e.num_inputs(); ++i) {
    const int rank = e.rank_or_fail(e.input(i), "an input");
    if (rank < 0) return;
    ranks.push_back(rank);
  }
  auto equation = parse_einsum(e.attributes().get_string("equation", ""), ranks);
  if (!equation.is_ok()) return e.fail(equation.take_status());
  const ElementType element = e.element(e.input(0));
  const bool is_small = kSmallTypes.contains(element);
  std::vector<Operand> operands;
  for (size_t i = 0; i < e.num_inputs(); ++i) {
    const Value value = is_small ? e.cast(e.input(i), ElementType::kInt32) : e.input(i);
    Operand operand{value, equation->operands[i]};
    const Dims dims = e.type(e.input(i)).dims;
    for (int axis = 0; axis < dims.rank(); ++axis) {
      operand.sizes[operand.labels[static_cast<size_t>(axis)]] = dims[axis];
    }
    operands.push_back(diagonal(e, std::move(operand)));
  }
  Operand sum = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    sum = multiplied(e, sum, operands[i], labels_wanted_after(*equation, i));
  }
  sum = summed(e, sum, {equation->result.begin(), equation->result.end()});
  Value value = transposed(e, sum, equation->result).value;
  if (is_small) value = e.cast(value, element);
  e.set_output(0, value.id == e.input(0).id ? e.op("Identity", {value}) : value);
}

}  // namespace

Status add_einsum_functions(OpTable& table) {
  return add_schemas(table, {{.name = "Einsum",
                              .since_version = 12,
                              .inputs = {in("Inputs", kNumericTypes, InputFlag::kVariadic)},
                              .attributes = {attribute("equation", AttributeKind::kString, true)},
                              .infer = infer_einsum,
                              .expand = expand_einsum}});
}

}  // namespace eddy
