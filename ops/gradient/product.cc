// MatMul and Gemm. Products of matrices are written as Gemm with its flags, so that no transpose is
// stored; batches over one matrix become one product of flattened rows.
#include "graph/base/check.h"
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"
#include "ops/gradient/term.h"

namespace eddy {
namespace {

Value gemm(GradientContext& c, Value a, Value b, bool turns_a, bool turns_b, float alpha = 1) {
  return c.op("Gemm", {a, b},
              {{"alpha", alpha}, {"transA", int64_t{turns_a}}, {"transB", int64_t{turns_b}}});
}

Value turned(GradientContext& c, Value value, int rank) {
  EDDY_DCHECK(rank >= 2) << "a matrix of " << rank << " axes";
  std::vector<int64_t> perm = axes_between(0, rank);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return c.op("Transpose", {value}, {{"perm", perm}});
}

Value rows_of(GradientContext& c, Value value) {
  return c.op("Flatten", {value}, {{"axis", int64_t{-1}}});
}

// [..., n, m] times one matrix: the batch is more rows.
void rows_times_matrix(GradientContext& c) {
  const Value g = rows_of(c, c.gradient());
  if (c.wants(0)) c.set_gradient(0, reshape_to_input(c, gemm(c, g, c.input(1), false, true), 0));
  if (c.wants(1)) c.set_row_product(1, rows_of(c, c.input(0)), g);
}

// What is known of a product's shape before it is added up to input i: the result's batch, then the
// input's own last dimensions.
TensorType batched(const GradientContext& c, int rank_a, int rank_b, size_t i, int num_own) {
  const Dims& out = c.output_type().dims;
  const Dims& own = c.input_type(i).dims;
  const int num_batch = out.rank() - (rank_a > 1) - (rank_b > 1);
  EDDY_DCHECK(num_batch >= 0 && own.rank() >= num_own)
      << "a product of " << rank_a << " and " << rank_b << " axes has " << out.rank();
  TensorType type(c.element(), Dims());
  for (int axis = 0; axis < num_batch; ++axis) type.dims.push_back(out[axis]);
  for (int axis = own.rank() - num_own; axis < own.rank(); ++axis) type.dims.push_back(own[axis]);
  return type;
}

// Vectors get an axis of 1 first; batches are added up at last.
void batched_products(GradientContext& c, int rank_a, int rank_b) {
  const Value first = c.int64s({-2}), last = c.int64s({-1});
  Value g = c.gradient();
  if (rank_a == 1) g = c.op("Unsqueeze", {g, rank_b == 1 ? c.int64s({0}) : first});
  if (rank_b == 1) g = c.op("Unsqueeze", {g, last});
  if (c.wants(0)) {
    const Value b = rank_b == 1 ? c.op("Unsqueeze", {c.input(1), c.int64s({0})})
                                : turned(c, c.input(1), rank_b);
    Value product = c.op("MatMul", {g, b});
    if (rank_a == 1) product = c.op("Squeeze", {product, first});
    const int num_own = rank_a == 1 ? 1 : 2;
    c.set_gradient(0, c.sum_to(product, batched(c, rank_a, rank_b, 0, num_own), 0));
  }
  if (c.wants(1)) {
    const Value a =
        rank_a == 1 ? c.op("Unsqueeze", {c.input(0), last}) : turned(c, c.input(0), rank_a);
    Value product = c.op("MatMul", {a, g});
    if (rank_b == 1) product = c.op("Squeeze", {product, last});
    const int num_own = rank_b == 1 ? 1 : 2;
    c.set_gradient(1, c.sum_to(product, batched(c, rank_a, rank_b, 1, num_own), 1));
  }
}

void matmul_gradient(GradientContext& c) {
  const int rank_a = c.rank_or_fail(c.input_type(0), "A");
  const int rank_b = c.rank_or_fail(c.input_type(1), "B");
  if (rank_a < 0 || rank_b < 0) return;
  if (rank_b == 2 && rank_a >= 2) {
    rows_times_matrix(c);
  } else {
    batched_products(c, rank_a, rank_b);
  }
}

void gemm_gradient(GradientContext& c) {
  const bool turns_a = c.attributes().get_int("transA", 0) != 0;
  const bool turns_b = c.attributes().get_int("transB", 0) != 0;
  const float alpha = c.attributes().get_float("alpha", 1);
  const Value g = c.gradient();
  if (c.wants(0)) {
    const Value b = c.input(1);
    c.set_gradient(
        0, turns_a ? gemm(c, b, g, turns_b, true, alpha) : gemm(c, g, b, false, !turns_b, alpha));
  }
  if (c.wants(1) && !turns_a && alpha == 1) {
    const Value a = c.input(0);
    c.set_row_product(1, turns_b ? g : a, turns_b ? a : g);
  } else if (c.wants(1)) {
    const Value a = c.input(0);
    c.set_gradient(
        1, turns_b ? gemm(c, g, a, true, turns_a, alpha) : gemm(c, a, g, !turns_a, false, alpha));
  }
  if (!c.wants(2)) return;
  const float beta = c.attributes().get_float("beta", 1);
  const Value scaled = beta == 1 ? g : (Term(c, g) * static_cast<double>(beta)).value();
  c.set_gradient(2, c.sum_to(scaled, 2));
}

}  // namespace

Status add_product_gradients(GradientTable& table) {
  const GradientReads of_a{.inputs = 2, .input_shapes = 1}, of_b{.inputs = 1, .input_shapes = 2};
  return add_rules(
      table, {{.op = "MatMul", .reads = {of_a, of_b}, .build = matmul_gradient, .row_products = 2},
              {.op = "Gemm",
               .reads = {GradientReads{.inputs = 2}, GradientReads{.inputs = 1},
                         GradientReads{.input_shapes = 4}},
               .build = gemm_gradient,
               .row_products = 2}});
}

}  // namespace eddy
