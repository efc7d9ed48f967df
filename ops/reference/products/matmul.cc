// MatMul, Gemm, MatMulInteger, eddy.DequantizeMatMul, eddy.PermutedMatMul, eddy.PackedMatMul,
// eddy.SplitMatMul: three nested loops each. eddy.PackMatrix. Det: by elimination.
#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/base/check.h"
#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/reference/products/permuted_product.h"
#include "ops/reference/products/product.h"
#include "ops/schema/products/packed_matrix.h"

namespace eddy {
namespace {

template <typename T>
struct MatMul {
  static bool run(const KernelArgs& args) {
    const BatchedProduct p(args.inputs[0], args.inputs[1]);
    const T* a = args.inputs[0].as<T>();
    const T* b = args.inputs[1].as<T>();
    T* c = args.outputs[0].mutable_as<T>();
    for (BatchIterator i(p); !i.done(); i.next()) {
      multiply(p, a + i.a() * p.m * p.k, b + i.b() * p.k * p.n, c + i.index() * p.m * p.n);
    }
    return true;
  }

  static void multiply(const BatchedProduct& p, const T* a, const T* b, T* c) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        Accumulator<T> sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          sum += accumulate_from(a[i * p.k + k]) * accumulate_from(b[k * p.n + j]);
        }
        c[i * p.n + j] = round_from<T>(sum);
      }
    }
  }
};

Result<BoundKernel> bind_matmul(const KernelInit& init) {
  return bind_typed<MatMul, float, double, Float16, Bfloat16, int32_t, int64_t, uint32_t, uint64_t>(
      init, 0);
}

struct GemmState : KernelState {
  float alpha = 1, beta = 1;
  bool transpose_a = false, transpose_b = false;
};

template <typename T>
struct Gemm {
  // alpha and beta are floats; integer products are scaled in double and cut to 64 bits, clamped.
  static T combine(const GemmState& s, Accumulator<T> sum, const T* addend_or_null) {
    if constexpr (is_floating<T>) {
      double value = static_cast<double>(s.alpha) * sum;
      if (addend_or_null) {
        value += static_cast<double>(s.beta) * static_cast<double>(*addend_or_null);
      }
      return round_from<T>(value);
    } else {
      const auto scale = [](float factor, Accumulator<T> value) {
        if (factor == 1.0f) return value;
        const double scaled =
            static_cast<double>(factor) * static_cast<double>(round_from<T>(value));
        if (std::is_signed_v<T> || scaled < 0) return accumulate_from(saturate<int64_t>(scaled));
        return saturate<Accumulator<T>>(scaled);
      };
      sum = scale(s.alpha, sum);
      if (addend_or_null) sum += scale(s.beta, accumulate_from(*addend_or_null));
      return round_from<T>(sum);
    }
  }

  static bool run(const KernelArgs& args) {
    const auto& s = static_cast<const GemmState&>(*args.state);
    const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
    const int64_t m = y.dims[0], n = y.dims[1], depth = a.dims[s.transpose_a ? 0 : 1];
    const TensorView* c = args.has_input(2) ? &args.inputs[2] : nullptr;
    EDDY_DCHECK(a.rank == 2 && b.rank == 2 && b.dims[s.transpose_b ? 1 : 0] == depth)
        << "B does not have " << depth << " rows";
    const int64_t c_columns = c && c->rank > 0 ? c->dims[c->rank - 1] : 1;
    const int64_t c_rows = c && c->rank > 1 ? c->dims[c->rank - 2] : 1;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        Accumulator<T> sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t ai = s.transpose_a ? k * m + i : i * depth + k;
          const int64_t bi = s.transpose_b ? j * depth + k : k * n + j;
          sum += accumulate_from(a.as<T>()[ai]) * accumulate_from(b.as<T>()[bi]);
        }
        const int64_t ci = (c_rows == 1 ? 0 : i * c_columns) + (c_columns == 1 ? 0 : j);
        y.mutable_as<T>()[i * n + j] = combine(s, sum, c ? c->as<T>() + ci : nullptr);
      }
    }
    return true;
  }
};

Result<BoundKernel> bind_gemm(const KernelInit& init) {
  auto state = std::make_unique<GemmState>();
  state->alpha = init.attributes.get_float("alpha", 1.0f);
  state->beta = init.attributes.get_float("beta", 1.0f);
  state->transpose_a = init.attributes.get_int("transA", 0) != 0;
  state->transpose_b = init.attributes.get_int("transB", 0) != 0;
  return bind_typed<Gemm, float, double, Float16, Bfloat16, int32_t, int64_t, uint32_t, uint64_t>(
      init, 0, std::move(state));
}

struct PermutedState : KernelState {
  ProductOrders orders;
};

template <typename T>
struct PermutedMatMul {
  static bool run(const KernelArgs& args) {
    const auto& s = static_cast<const PermutedState&>(*args.state);
    const PermutedProduct p(args.inputs[0], args.inputs[1], args.outputs[0], s.orders);
    multiply(args, p, 0, p.a_first, p.b_first, 0);
    return true;
  }

  // The matrices of axes from `axis` on.
  static void multiply(const KernelArgs& args, const PermutedProduct& p, int axis, int64_t a,
                       int64_t b, int64_t y) {
    if (axis == p.num_axes) return multiply_one(args, p, a, b, y);
    const PermutedProduct::Axis& one = p.axes[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < one.size; ++i) {
      multiply(args, p, axis + 1, a + i * one.a, b + i * one.b, y + i * one.y);
    }
  }

  static void multiply_one(const KernelArgs& args, const PermutedProduct& p, int64_t a, int64_t b,
                           int64_t y) {
    const T* const from_a = args.inputs[0].as<T>() + a;
    const T* const from_b = args.inputs[1].as<T>() + b;
    const T* const bias = args.has_input(2) ? args.inputs[2].as<T>() : nullptr;
    const T* const addend = args.has_input(3) ? args.inputs[3].as<T>() : nullptr;
    const float alpha = static_cast<const PermutedState&>(*args.state).orders.alpha;
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        Accumulator<T> sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          sum += accumulate_from(from_a[i * p.a_row + k * p.a_column]) *
                 accumulate_from(from_b[k * p.b_row + j * p.b_column]);
        }
        sum *= static_cast<Accumulator<T>>(alpha);
        const int64_t place = y + i * p.y_row + j * p.y_column;
        if (bias != nullptr) sum += accumulate_from(bias[j]);
        if (addend != nullptr) sum += accumulate_from(addend[place]);
        args.outputs[0].mutable_as<T>()[place] = round_from<T>(sum);
      }
    }
  }
};

Result<BoundKernel> bind_permuted_matmul(const KernelInit& init) {
  auto state = std::make_unique<PermutedState>();
  state->orders = ProductOrders::of(init.attributes);
  return bind_typed<PermutedMatMul, float, double, Float16, Bfloat16>(init, 0, std::move(state));
}

struct PackedState : KernelState {
  int64_t width = 1;
  bool is_turned = false;
};

template <typename T>
struct PackMatrix {
  static bool run(const KernelArgs& args) {
    const auto& s = static_cast<const PackedState&>(*args.state);
    const TensorView& b = args.inputs[0];
    const int64_t k = b.dims[s.is_turned ? 1 : 0], n = b.dims[s.is_turned ? 0 : 1];
    const T* const from = b.as<T>();
    T* to = args.outputs[0].mutable_as<T>();
    for (int64_t first = 0; first < n; first += s.width) {
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = first; j < first + s.width; ++j) {
          *to++ = j >= n ? T() : s.is_turned ? from[j * k + i] : from[i * n + j];
        }
      }
    }
    std::fill_n(to, kPackedSlack, T());
    return true;
  }
};

template <typename T>
struct PackedMatMul {
  static bool run(const KernelArgs& args) {
    const int64_t width = static_cast<const PackedState&>(*args.state).width;
    const TensorView &a = args.inputs[0], &y = args.outputs[0];
    const int64_t k = a.dims[a.rank - 1], n = y.dims[y.rank - 1];
    const int64_t rows = n == 0 ? 0 : y.count() / n;
    const T* const b = args.inputs[1].as<T>();
    const T* const row = args.has_input(2) ? args.inputs[2].as<T>() : nullptr;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const T* const panel = b + j / width * width * k + j % width;
        Accumulator<T> sum = row == nullptr ? Accumulator<T>(0) : accumulate_from(row[j]);
        for (int64_t l = 0; l < k; ++l) {
          sum += accumulate_from(a.as<T>()[i * k + l]) * accumulate_from(panel[l * width]);
        }
        y.mutable_as<T>()[i * n + j] = round_from<T>(sum);
      }
    }
    return true;
  }
};

template <typename T>
struct SplitMatMul {
  static bool run(const KernelArgs& args) {
    const TensorView &a = args.inputs[0], &b = args.inputs[1];
    const int64_t k = b.dims[0], n = b.dims[1];
    const T* const row = args.has_input(2) ? args.inputs[2].as<T>() : nullptr;
    int64_t first = 0;
    for (uint32_t part = 0; part < args.num_outputs; ++part) {
      const TensorView& y = args.outputs[part];
      const int64_t columns = y.dims[y.rank - 1], rows = columns == 0 ? 0 : y.count() / columns;
      T* to = y.mutable_as<T>();
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = first; j < first + columns; ++j) {
          Accumulator<T> sum = row == nullptr ? Accumulator<T>(0) : accumulate_from(row[j]);
          for (int64_t l = 0; l < k; ++l) {
            sum += accumulate_from(a.as<T>()[i * k + l]) * accumulate_from(b.as<T>()[l * n + j]);
          }
          *to++ = round_from<T>(sum);
        }
      }
      first += columns;
    }
    return true;
  }
};

Result<BoundKernel> bind_split_matmul(const KernelInit& init) {
  return bind_typed<SplitMatMul, float, double, Float16, Bfloat16>(init, 0);
}

template <template <typename> typename Kernel>
Result<BoundKernel> bind_packed(const KernelInit& init) {
  auto state = std::make_unique<PackedState>();
  state->width = init.attributes.get_int("width", 1);
  state->is_turned = init.attributes.get_int("turned", 0) != 0;
  return bind_typed<Kernel, float, double, Float16, Bfloat16>(init, 0, std::move(state));
}

int32_t byte_at(const TensorView& view, int64_t i) {
  return view.element == ElementType::kInt8 ? view.as<int8_t>()[i] : view.as<uint8_t>()[i];
}

// The zero point of row (or column) i: absent, one for all, or one each.
int32_t zero_point(const KernelArgs& args, size_t input, int64_t i) {
  if (!args.has_input(static_cast<uint32_t>(input))) return 0;
  const TensorView& view = args.inputs[input];
  return byte_at(view, view.count() == 1 ? 0 : i);
}

bool run_matmul_integer(const KernelArgs& args) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1];
  const BatchedProduct p(a, b);
  int32_t* c = args.outputs[0].mutable_as<int32_t>();
  for (BatchIterator batch(p); !batch.done(); batch.next()) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        uint32_t sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const int32_t x = byte_at(a, (batch.a() * p.m + i) * p.k + k) - zero_point(args, 2, i);
          const int32_t w = byte_at(b, (batch.b() * p.k + k) * p.n + j) - zero_point(args, 3, j);
          sum += static_cast<uint32_t>(x * w);
        }
        c[(batch.index() * p.m + i) * p.n + j] = static_cast<int32_t>(sum);
      }
    }
  }
  return true;
}

// B's elements become floats one by one, as DequantizeLinear makes them.
bool run_dequantize_matmul(const KernelArgs& args) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &scale = args.inputs[2];
  const int64_t depth = b.dims[0], columns = b.dims[1];
  EDDY_DCHECK(b.rank == 2 && (scale.count() == 1 || scale.count() == columns))
      << scale.count() << " scales for " << columns << " columns";
  const int64_t rows = depth == 0 || columns == 0 ? args.outputs[0].count() : a.count() / depth;
  float* c = args.outputs[0].mutable_as<float>();
  if (depth == 0 || columns == 0) {
    std::fill_n(c, rows, 0.0f);
    return true;
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const float factor = scale.as<float>()[scale.count() == 1 ? 0 : j];
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const int32_t step = byte_at(b, k * columns + j) - zero_point(args, 3, j);
        sum += static_cast<double>(a.as<float>()[i * depth + k]) *
               static_cast<double>(static_cast<float>(step) * factor);
      }
      c[i * columns + j] = static_cast<float>(sum);
    }
  }
  return true;
}

Result<BoundKernel> bind_dequantize_matmul(const KernelInit&) {
  return BoundKernel{.run = run_dequantize_matmul, .state = nullptr};
}

Result<BoundKernel> bind_matmul_integer(const KernelInit&) {
  return BoundKernel{.run = run_matmul_integer, .state = nullptr};
}

// Eliminates below the greatest element of each column in turn; [n, n] is overwritten.
double determinant(std::vector<double>& matrix, size_t n) {
  double result = 1;
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::fabs(matrix[row * n + column]) > std::fabs(matrix[pivot * n + column])) pivot = row;
    }
    if (pivot != column) {
      result = -result;
      std::swap_ranges(&matrix[pivot * n], &matrix[pivot * n] + n, &matrix[column * n]);
    }
    const double diagonal = matrix[column * n + column];
    result *= diagonal;
    if (diagonal == 0) return result;
    for (size_t row = column + 1; row < n; ++row) {
      const double factor = matrix[row * n + column] / diagonal;
      for (size_t j = column; j < n; ++j) matrix[row * n + j] -= factor * matrix[column * n + j];
    }
  }
  return result;
}

template <typename T>
struct Det {
  static bool run(const KernelArgs& args) {
    const TensorView& x = args.inputs[0];
    if (args.outputs[0].count() == 0) return true;
    const auto n = static_cast<size_t>(x.dims[x.rank - 1]);
    std::vector<double> matrix(n * n);
    for (int64_t i = 0; i < args.outputs[0].count(); ++i) {
      const T* from = x.as<T>() + i * static_cast<int64_t>(n * n);
      for (size_t j = 0; j < n * n; ++j) matrix[j] = static_cast<double>(from[j]);
      args.outputs[0].mutable_as<T>()[i] = round_from<T>(determinant(matrix, n));
    }
    return true;
  }
};

Result<BoundKernel> bind_det(const KernelInit& init) {
  return bind_typed<Det, float, double, Float16, Bfloat16>(init, 0);
}

}  // namespace

void add_matmul_reference(KernelRegistry& registry) {
  registry.add({.op = "MatMul", .bind = bind_matmul, .provider = "reference"});
  registry.add({.op = "Gemm", .bind = bind_gemm, .provider = "reference"});
  registry.add({.op = "MatMulInteger", .bind = bind_matmul_integer, .provider = "reference"});
  registry.add({.op = "Det", .since_version = 11, .bind = bind_det, .provider = "reference"});
  registry.add({.op = "DequantizeMatMul",
                .bind = bind_dequantize_matmul,
                .provider = "reference",
                .domain = "eddy"});
  registry.add({.op = "PackMatrix",
                .bind = bind_packed<PackMatrix>,
                .provider = "reference",
                .domain = "eddy"});
  registry.add({.op = "PackedMatMul",
                .bind = bind_packed<PackedMatMul>,
                .provider = "reference",
                .domain = "eddy"});
  registry.add(
      {.op = "SplitMatMul", .bind = bind_split_matmul, .provider = "reference", .domain = "eddy"});
  registry.add({.op = "PermutedMatMul",
                .bind = bind_permuted_matmul,
                .provider = "reference",
                .domain = "eddy"});
}

}  // namespace eddy
