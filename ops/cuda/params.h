// What kernels are told: plain structs, the same for the device, the host and the tests.
#pragma once

#include <cstdint>

namespace eddy::cuda {

inline constexpr int kMaxAxes = 8;
inline constexpr int kMaxInputs = 3;
inline constexpr uint32_t kBlockThreads = 256;

// An elementwise kernel with broadcasting, or (one input) a strided copy.
struct ElementwiseParams {
  void* out;
  const void* in[kMaxInputs];
  uint64_t count;  // of the output's elements, > 0
  // The output's axes, innermost last, merged as far as every input allows; at least one.
  int32_t rank;
  // Every pointer of a contiguous operand is a multiple of 16 bytes: packs may be moved.
  int32_t is_aligned;
  uint64_t dims[kMaxAxes];
  int64_t strides[kMaxInputs][kMaxAxes];  // in elements of each input; 0 repeats
  float a;                                // attributes (LeakyRelu's alpha)
  float b;
};
static_assert(sizeof(ElementwiseParams) == 312, "kernels and their launches agree on this");

// A kernel that makes one result (a reduction) or one row (Softmax) of each row of the input. The
// kept axes say where a row begins, the reduced ones where its elements are; innermost last.
struct RowParams {
  void* out;
  const void* in;
  uint64_t count;   // of rows, > 0
  uint64_t length;  // of a row; 0 for reductions of nothing
  int32_t num_kept;
  int32_t num_reduced;
  uint64_t kept_dims[kMaxAxes];
  int64_t kept_strides[kMaxAxes];  // in elements
  uint64_t reduced_dims[kMaxAxes];
  int64_t reduced_strides[kMaxAxes];
  int32_t takes_last;  // ArgMax, ArgMin: of equals
  int32_t reserved[3];
};
static_assert(sizeof(RowParams) == sizeof(ElementwiseParams), "launches carry one size");

}  // namespace eddy::cuda
