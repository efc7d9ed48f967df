// TensorTile: a small product of float32 matrices on tensor cores, its operands rounded to TF32's
// ten bits of fraction: for sessions that allow it.
//
// A block makes 32 x 32 results, a warp 16 x 8 of them by mma.sync m16n8k8. Slabs of 64 of the
// depth pass through shared memory; the next three are under way to registers meanwhile. Why beside
// a library's: cuBLASLt's takes 4.8 µs at 256 x 256 x 256 (H200), and neither begins early
// (grid_order_inl.h) nor can be called off, so a loop around it is not unrolled. On a host each
// thread adds the same terms in another order.
//
// Contract: fits(), and ProductPlan says from where on the library is faster. One order of sums for
// each shape, so the same bits from run to run. Source of the fragments' layout: NVIDIA, PTX ISA,
// "Matrix Fragments for mma.m16n8k8".
#pragma once

#include "ops/cuda/products/product_inl.h"

namespace eddy::cuda {

// To the nearest, ties away from zero.
EDDY_HD float rounded_to_tf32(float value) {
#ifdef __CUDA_ARCH__
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return __uint_as_float(bits);
#else
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & 0xffffe000u;
  __builtin_memcpy(&value, &bits, sizeof(bits));
  return value;
#endif
}

struct TensorTile {
  using Params = ProductParams;
  using Product = MatrixProduct<float>;
  static constexpr int kSide = 32;   // of a block's results
  static constexpr int kDepth = 64;  // of a slab
  static constexpr int kVector = 4;  // elements that are read at once
  static constexpr int kLoads = kSide * kDepth / kVector / kThreads;  // of each operand
  static constexpr int kStep = 8;   // of the depth, of one instruction
  static constexpr int kAhead = 3;  // slabs
  struct alignas(16) Vector {
    float at[kVector];
  };
  // Rows are as long as makes the reads of a warp fall into different banks.
  struct Shared {
    alignas(16) float a[kSide][kDepth + 4];
    alignas(16) float b[kDepth][kSide + 8];
  };
  struct Slab {
    Vector a[kLoads], b[kLoads];
  };
  struct Own {
    Slab slabs[kAhead];  // those that come next
    float sums[2][4];    // of every other step, which do not wait for each other
  };

  // Rows of both operands, vectors of them, lie as the kernel reads them.
  EDDY_HD static bool fits(const Params& p) {
    int64_t strides = p.n | p.k | p.a_row | p.b_row;
    for (int i = 0; i < p.batch_rank; ++i) strides |= p.a_batch[i] | p.b_batch[i];
    const uint64_t places = reinterpret_cast<uint64_t>(p.a) | reinterpret_cast<uint64_t>(p.b);
    return p.a_column == 1 && p.b_column == 1 && strides % kVector == 0 && p.k > 0 &&
           places % sizeof(Vector) == 0;
  }
  EDDY_HD static uint64_t num_items(const Params& p) {
    return p.num_batches *
           static_cast<uint64_t>(((p.m + kSide - 1) / kSide) * ((p.n + kSide - 1) / kSide));
  }

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const auto across = static_cast<uint64_t>((p.n + kSide - 1) / kSide);
    const auto of_matrix = static_cast<uint64_t>((p.m + kSide - 1) / kSide) * across;
    for (uint64_t item = block.index; item < num_items(p); item += block.count) {
      const Product product(p, item / of_matrix);
      const auto row = static_cast<int64_t>(item % of_matrix / across) * kSide;
      const auto column = static_cast<int64_t>(item % across) * kSide;
      make_tile(product, block, shared, row, column);
    }
  }

  EDDY_HD static void make_tile(const Product& product, const Block& block, Shared& shared,
                                int64_t row, int64_t column) {
    PerThread<Own> own;
    block.each([&](int thread) {
      for (int i = 0; i < 4; ++i) own[thread].sums[0][i] = own[thread].sums[1][i] = 0;
      EDDY_UNROLL
      for (int s = 0; s < kAhead; ++s) {
        load(product, thread, own[thread].slabs[s], row, column, s * kDepth);
      }
    });
    for (int64_t k = 0; k < product.p.k; k += kAhead * kDepth) {
      EDDY_UNROLL
      for (int s = 0; s < kAhead; ++s) {
        if (k + s * kDepth >= product.p.k) break;
        block.each([&](int thread) { put(shared, thread, own[thread].slabs[s]); });
        block.each([&](int thread) {
          const int64_t next = k + (s + kAhead) * kDepth;
          load(product, thread, own[thread].slabs[s], row, column, next);
          add(shared, thread, own[thread]);
        });
      }
    }
    block.each([&](int thread) {
      for (int i = 0; i < 4; ++i) {
        const int64_t r = row + row_of(thread, i), c = column + column_of(thread, i);
        const float sum = own[thread].sums[0][i] + own[thread].sums[1][i];
        if (r < product.p.m && c < product.p.n) product.store_result(r, c, sum);
      }
    });
  }

  // Where a thread's vector i lies in a slab of either operand.
  EDDY_HD static int a_row(int thread, int i) {
    return (thread + kThreads * i) / (kDepth / kVector);
  }
  EDDY_HD static int a_column(int thread) { return thread % (kDepth / kVector) * kVector; }
  EDDY_HD static int b_row(int thread, int i) {
    return (thread + kThreads * i) / (kSide / kVector);
  }
  EDDY_HD static int b_column(int thread) { return thread % (kSide / kVector) * kVector; }
  // Of result i of a thread's four.
  EDDY_HD static int row_of(int thread, int i) {
    return thread / kWarpThreads / 4 * 16 + thread % kWarpThreads / 4 + i / 2 * 8;
  }
  EDDY_HD static int column_of(int thread, int i) {
    return thread / kWarpThreads % 4 * 8 + thread % 4 * 2 + i % 2;
  }

  EDDY_HD static void load(const Product& product, int thread, Slab& slab, int64_t row,
                           int64_t column, int64_t k) {
    const Params& p = product.p;
    EDDY_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      const int64_t r = row + a_row(thread, i), ka = k + a_column(thread);
      const int64_t kb = k + b_row(thread, i), c = column + b_column(thread);
      const auto* const a = static_cast<const float*>(p.a) + product.a_start + r * p.a_row + ka;
      const auto* const b = static_cast<const float*>(p.b) + product.b_start + kb * p.b_row + c;
      slab.a[i] = slab.b[i] = Vector{};
      if (r < p.m && ka < p.k) slab.a[i] = *reinterpret_cast<const Vector*>(a);
      if (c < p.n && kb < p.k) slab.b[i] = *reinterpret_cast<const Vector*>(b);
    }
  }

  EDDY_HD static void put(Shared& shared, int thread, const Slab& slab) {
    EDDY_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      Vector a, b;
      EDDY_UNROLL
      for (int j = 0; j < kVector; ++j) {
        a.at[j] = rounded_to_tf32(slab.a[i].at[j]);
        b.at[j] = rounded_to_tf32(slab.b[i].at[j]);
      }
      *reinterpret_cast<Vector*>(&shared.a[a_row(thread, i)][a_column(thread)]) = a;
      *reinterpret_cast<Vector*>(&shared.b[b_row(thread, i)][b_column(thread)]) = b;
    }
  }

  EDDY_HD static void add(const Shared& shared, int thread, Own& own) {
    EDDY_UNROLL
    for (int k = 0; k < kDepth; k += kStep) add_step(shared, thread, k, own.sums[k / kStep % 2]);
  }

  EDDY_HD static void add_step(const Shared& shared, int thread, int k, float (&sums)[4]) {
#ifdef __CUDA_ARCH__
    const int row = row_of(thread, 0), depth = k + thread % 4;
    const int column = thread / kWarpThreads % 4 * 8 + thread % kWarpThreads / 4;
    const auto bits = [](float value) { return __float_as_uint(value); };
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(bits(shared.a[row][depth])), "r"(bits(shared.a[row + 8][depth])),
          "r"(bits(shared.a[row][depth + 4])), "r"(bits(shared.a[row + 8][depth + 4])),
          "r"(bits(shared.b[depth][column])), "r"(bits(shared.b[depth + 4][column])));
#else
    for (int i = 0; i < 4; ++i) {
      for (int j = k; j < k + kStep; ++j) {
        sums[i] += shared.a[row_of(thread, i)][j] * shared.b[j][column_of(thread, i)];
      }
    }
#endif
  }
};

}  // namespace eddy::cuda
