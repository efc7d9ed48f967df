// BatchedProduct: the shape of a numpy-style matrix product, shared by the reference and the fast
// kernels: how many products, their sizes, and which matrix of A and of B each one takes.
//
//   for (BatchIterator i(product); !i.done(); i.next())
//     multiply(a + i.a() * m * k, b + i.b() * k * n, c + i.index() * m * n);
//
// Errors: none; the schema's rule has checked the shapes.
#pragma once

#include <array>
#include <cstdint>

#include "graph/base/check.h"
#include "graph/ir/tensor_view.h"

namespace eddy {

struct BatchedProduct {
  int64_t m = 1, n = 1, k = 1;
  int64_t num_batches = 1;
  int batch_rank = 0;
  std::array<int64_t, kMaxRank> batch_dims{};
  // Matrices (not elements) to the next index of each batch dimension; 0 where broadcast.
  std::array<int64_t, kMaxRank> a_strides{};
  std::array<int64_t, kMaxRank> b_strides{};

  BatchedProduct(const TensorView& a, const TensorView& b) {
    EDDY_DCHECK(a.rank > 0 && b.rank > 0) << "ranks " << a.rank << " and " << b.rank;
    k = a.dims[a.rank - 1];
    if (a.rank > 1) m = a.dims[a.rank - 2];
    if (b.rank > 1) n = b.dims[b.rank - 1];
    EDDY_DCHECK(k == b.dims[b.rank > 1 ? b.rank - 2 : 0]) << "B does not have " << k << " rows";
    const int a_batch = a.rank > 2 ? a.rank - 2 : 0;
    const int b_batch = b.rank > 2 ? b.rank - 2 : 0;
    batch_rank = a_batch > b_batch ? a_batch : b_batch;
    int64_t a_stride = 1, b_stride = 1;
    for (int i = batch_rank - 1; i >= 0; --i) {
      const int ai = i - (batch_rank - a_batch), bi = i - (batch_rank - b_batch);
      const int64_t a_dim = ai >= 0 ? a.dims[ai] : 1;
      const int64_t b_dim = bi >= 0 ? b.dims[bi] : 1;
      EDDY_DCHECK(a_dim == b_dim || a_dim == 1 || b_dim == 1) << a_dim << " and " << b_dim;
      const auto at = static_cast<size_t>(i);
      batch_dims[at] = a_dim == 1 ? b_dim : a_dim;
      a_strides[at] = a_dim == 1 ? 0 : a_stride;
      b_strides[at] = b_dim == 1 ? 0 : b_stride;
      a_stride *= a_dim;
      b_stride *= b_dim;
      num_batches *= batch_dims[at];
    }
  }
};

// Walks the batches in order of the result.
class BatchIterator {
 public:
  explicit BatchIterator(const BatchedProduct& product, int64_t first = 0)
      : product_(product), index_(first) {
    EDDY_DCHECK(first >= 0) << "batch " << first;
    for (int i = product.batch_rank - 1; i >= 0 && first != 0; --i) {
      const auto at = static_cast<size_t>(i);
      position_[at] = first % product.batch_dims[at];
      first /= product.batch_dims[at];
      a_ += product.a_strides[at] * position_[at];
      b_ += product.b_strides[at] * position_[at];
    }
  }
  bool done() const { return index_ >= product_.num_batches; }
  int64_t index() const { return index_; }
  int64_t a() const { return a_; }
  int64_t b() const { return b_; }

  void next() {
    ++index_;
    for (int i = product_.batch_rank - 1; i >= 0; --i) {
      const auto at = static_cast<size_t>(i);
      a_ += product_.a_strides[at];
      b_ += product_.b_strides[at];
      if (++position_[at] < product_.batch_dims[at]) return;
      a_ -= product_.a_strides[at] * position_[at];
      b_ -= product_.b_strides[at] * position_[at];
      position_[at] = 0;
    }
  }

 private:
  const BatchedProduct& product_;
  int64_t index_ = 0, a_ = 0, b_ = 0;
  std::array<int64_t, kMaxRank> position_{};
};

}  // namespace eddy
