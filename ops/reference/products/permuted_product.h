// PermutedProduct: sizes and strides of eddy.PermutedMatMul, shared by the reference and the fast
// kernels: where each operand's rows, columns and matrices lie when its axes are taken in the order
// of its attribute, or lie where that says.
//
//   y[batch, row, column] = alpha * sum over k of a[batch, row, k] * b[batch, k, column]
//                           + bias[column] + addend[as y]
//
// Strides are in elements; 0 where an operand is broadcast. Errors: none; the schema's rule has
// checked ranks, sizes and permutations. Cost: O(rank).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/attributes.h"
#include "graph/ir/tensor_view.h"

namespace eddy {

// The orders of the axes; empty: as they are. Places of operands: the first element, then size and
// stride of each axis; empty: dense.
struct ProductOrders {
  std::vector<int64_t> a, b, y;
  std::vector<int64_t> place_a = {}, place_b = {};
  float alpha = 1;

  bool is_placed() const { return !place_a.empty() || !place_b.empty(); }
  static ProductOrders of(const Attributes& attributes) {
    const auto read = [&](const char* name) {
      const std::span<const int64_t> ints = attributes.get_ints(name);
      return std::vector<int64_t>(ints.begin(), ints.end());
    };
    return {read("perm_a"),  read("perm_b"),  read("perm_y"),
            read("place_a"), read("place_b"), attributes.get_float("alpha", 1.0f)};
  }
};

struct PermutedProduct {
  struct Axis {
    int64_t size = 1, a = 0, b = 0, y = 0;
  };
  int64_t m = 1, n = 1, k = 1;
  int64_t a_first = 0, b_first = 0;  // elements
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0, y_row = 0, y_column = 0;
  int num_axes = 0;  // of matrices, outermost first
  std::array<Axis, kMaxRank> axes{};

  PermutedProduct(const TensorView& a, const TensorView& b, const TensorView& y,
                  const ProductOrders& orders) {
    const Operand from_a(a, orders.a, orders.place_a), from_b(b, orders.b, orders.place_b);
    const int rank = std::max(from_a.rank, from_b.rank);
    EDDY_DCHECK(from_a.rank >= 2 && from_b.rank >= 2) << from_a.rank << " and " << from_b.rank;
    EDDY_DCHECK(y.rank == rank) << "a result of rank " << y.rank << ", not " << rank;
    // The product's axis orders.y[i] is the result's axis i.
    std::array<int64_t, kMaxRank> to_y{};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const auto axis = orders.y.empty() ? i : static_cast<int>(orders.y[static_cast<size_t>(i)]);
      to_y[static_cast<size_t>(axis)] = stride;
      stride *= y.dims[i];
    }
    m = from_a.dims[from_a.at(-2)], k = from_a.dims[from_a.at(-1)];
    n = from_b.dims[from_b.at(-1)];
    EDDY_DCHECK(from_b.dims[from_b.at(-2)] == k) << "B does not have " << k << " rows";
    a_first = from_a.first, b_first = from_b.first;
    a_row = from_a.strides[from_a.at(-2)], a_column = from_a.strides[from_a.at(-1)];
    b_row = from_b.strides[from_b.at(-2)], b_column = from_b.strides[from_b.at(-1)];
    y_row = to_y[static_cast<size_t>(rank - 2)], y_column = to_y[static_cast<size_t>(rank - 1)];
    num_axes = rank - 2;
    for (int i = 0; i < num_axes; ++i) {
      Axis& axis = axes[static_cast<size_t>(i)];
      const int64_t a_size = from_a.batch_size(i, rank), b_size = from_b.batch_size(i, rank);
      axis.size = a_size == 1 ? b_size : a_size;
      axis.a = a_size == 1 ? 0 : from_a.strides[from_a.at(i - rank)];
      axis.b = b_size == 1 ? 0 : from_b.strides[from_b.at(i - rank)];
      axis.y = to_y[static_cast<size_t>(i)];
    }
  }

 private:
  // A dense tensor with its axes in another order, or what lies in it somewhere.
  struct Operand {
    int rank;
    int64_t first = 0;
    std::array<int64_t, kMaxRank> dims{}, strides{};

    Operand(const TensorView& view, const std::vector<int64_t>& order,
            const std::vector<int64_t>& place)
        : rank(place.empty() ? view.rank : static_cast<int>(place.size() / 2)) {
      if (!place.empty()) {
        first = place[0];
        for (size_t i = 0; i < place.size() / 2; ++i) {
          dims[i] = place[1 + 2 * i], strides[i] = place[2 + 2 * i];
        }
        return;
      }
      std::array<int64_t, kMaxRank> dense{};
      int64_t stride = 1;
      for (int i = rank - 1; i >= 0; --i) {
        dense[static_cast<size_t>(i)] = stride;
        stride *= view.dims[i];
      }
      for (int i = 0; i < rank; ++i) {
        const auto at = static_cast<size_t>(i);
        const int64_t from = order.empty() ? i : order[at];
        dims[at] = view.dims[from];
        strides[at] = dense[static_cast<size_t>(from)];
      }
    }
    // An axis counted from the end.
    size_t at(int axis) const { return static_cast<size_t>(rank + axis); }
    // Of axis i of a product of that rank; 1 where this operand has no such axis.
    int64_t batch_size(int i, int product_rank) const {
      const int own = i - (product_rank - rank);
      return own < 0 ? 1 : dims[static_cast<size_t>(own)];
    }
  };
};

}  // namespace eddy
