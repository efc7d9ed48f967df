// MatMul and Gemm of int32 and int64: sums wrap as in the reference, so their order is free. A row
// of the result grows by one row of B, times an element of A, at a time.
#include <algorithm>
#include <cstring>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/loops/loops.h"

namespace eddy {
namespace {

struct WordsState : KernelState {
  bool transpose_a = false, transpose_b = false;
};

cpu::BinaryLoop add_product(size_t size_bytes) {
  return size_bytes == 4 ? cpu::loop_set().add_product_4 : cpu::loop_set().add_product_8;
}

// c[m][n] += a[m][k] * b[k][n]; rows of a and its columns `a_row` and `a_step` apart.
template <typename T>
void multiply_add(const T* a, int64_t a_row, int64_t a_step, const T* b, T* c, int64_t m, int64_t n,
                  int64_t depth) {
  const cpu::BinaryLoop loop = add_product(sizeof(T));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t k = 0; k < depth; ++k) {
      loop(b + k * n, a + i * a_row + k * a_step, c + i * n, n);
    }
  }
}

template <typename T>
bool run_gemm_words(const KernelArgs& args) {
  const auto& s = static_cast<const WordsState&>(*args.state);
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
  const int64_t m = y.dims[0], n = y.dims[1], depth = a.dims[s.transpose_a ? 0 : 1];
  EDDY_DCHECK(a.rank == 2 && b.rank == 2 && b.dims[s.transpose_b ? 1 : 0] == depth)
      << "B does not have " << depth << " rows";
  T* const out = y.mutable_as<T>();
  std::fill_n(out, m * n, T(0));
  if (args.has_input(2)) {
    const TensorView& c = args.inputs[2];
    const int64_t c_columns = c.rank > 0 ? c.dims[c.rank - 1] : 1;
    const int64_t c_rows = c.rank > 1 ? c.dims[c.rank - 2] : 1;
    for (int64_t i = 0; i < m; ++i) {
      const T* const row = c.as<T>() + (c_rows == 1 ? 0 : i * c_columns);
      for (int64_t j = 0; j < n; ++j) out[i * n + j] = row[c_columns == 1 ? 0 : j];
    }
  }
  const T* rows = b.as<T>();
  if (s.transpose_b) {
    const auto size_bytes = static_cast<size_t>(std::max<int64_t>(depth * n, 1)) * sizeof(T);
    T* const turned = static_cast<T*>(args.scratch->reserve(size_bytes));
    if (turned == nullptr) return args.fail(resource_exhausted("no memory for a transposed B"));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < depth; ++k) turned[k * n + j] = rows[j * depth + k];
    }
    rows = turned;
  }
  multiply_add(a.as<T>(), s.transpose_a ? 1 : depth, s.transpose_a ? m : 1, rows, out, m, n, depth);
  return true;
}

// The axes before the last two count matrices, those of a missing or single one repeated.
template <typename T>
bool run_matmul_words(const KernelArgs& args) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
  const int64_t depth = a.dims[a.rank - 1];
  const int64_t m = a.rank > 1 ? a.dims[a.rank - 2] : 1;
  const int64_t n = b.rank > 1 ? b.dims[b.rank - 1] : 1;
  const int y_batch_rank = y.rank - (a.rank > 1 ? 1 : 0) - (b.rank > 1 ? 1 : 0);
  EDDY_DCHECK(depth == b.dims[b.rank > 1 ? b.rank - 2 : 0])
      << "B does not have " << depth << " rows";
  EDDY_DCHECK(y_batch_rank >= std::max(std::max(a.rank, b.rank) - 2, 0))
      << "the result has a rank of " << y.rank;
  T* out = y.mutable_as<T>();
  const int64_t count = y.count();
  std::fill_n(out, count, T(0));
  if (count == 0 || depth == 0) return true;
  const auto matrix = [&](const TensorView& x, int64_t index, int64_t size) {
    const int rank = std::max(x.rank - 2, 0);
    int64_t place = 0, stride = 1;
    for (int d = y_batch_rank - 1; d >= 0; --d) {
      const int64_t at = index % y.dims[d];
      index /= y.dims[d];
      const int own = d - (y_batch_rank - rank);
      if (own < 0) continue;
      EDDY_DCHECK(x.dims[own] == 1 || x.dims[own] == y.dims[d])
          << "axis " << d << " is not broadcast";
      if (x.dims[own] != 1) place += at * stride;
      stride *= x.dims[own];
    }
    return x.as<T>() + place * size;
  };
  for (int64_t i = 0; i < count / (m * n); ++i, out += m * n) {
    multiply_add(matrix(a, i, m * depth), depth, 1, matrix(b, i, depth * n), out, m, n, depth);
  }
  return true;
}

template <KernelFunction run_4, KernelFunction run_8>
Result<BoundKernel> bind_words(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  const bool is_scaled = init.attributes.get_float("alpha", 1.0f) != 1 ||
                         (init.inputs.size() > 2 && init.attributes.get_float("beta", 1.0f) != 1);
  BoundKernel kernel;
  if (element == ElementType::kInt32) kernel.run = run_4;
  if (element == ElementType::kInt64) kernel.run = run_8;
  if (kernel.run == nullptr || is_scaled) return cpu::no_fast_kernel(init);
  auto state = std::make_unique<WordsState>();
  state->transpose_a = init.attributes.get_int("transA", 0) != 0;
  state->transpose_b = init.attributes.get_int("transB", 0) != 0;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_matmul_words_cpu(KernelRegistry& registry) {
  registry.add(
      {.op = "MatMul", .bind = bind_words<run_matmul_words<uint32_t>, run_matmul_words<uint64_t>>});
  registry.add(
      {.op = "Gemm", .bind = bind_words<run_gemm_words<uint32_t>, run_gemm_words<uint64_t>>});
}

}  // namespace eddy
