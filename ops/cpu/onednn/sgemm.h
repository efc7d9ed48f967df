// sgemm: a float product by oneDNN, on the calling thread, without creating a primitive; for
// operands whose shapes change from call to call.
//
//   C[m][n] = beta * C + A[m][k] * B[k][n], row-major.
//
// Contract: m, n, k > 0; leading dimensions cover the rows; a transposed operand is stored as
// [k][m] or [n][k].
// Errors: none that valid arguments can cause (checked).
// Threads: any number.
#pragma once

#include <cstdint>

namespace eddy::onednn {

struct SgemmArgs {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t a_row = 0;
  bool transpose_a = false;
  const float* b = nullptr;
  int64_t b_row = 0;
  bool transpose_b = false;
  float beta = 0;
  float* c = nullptr;
  int64_t c_row = 0;
};

void sgemm(const SgemmArgs& args);

}  // namespace eddy::onednn
