// transpose_words of transpose.h by blocks of 16 x 16 in registers, for processors with AVX-512F.
// Compiled with flags of its own: only transpose.cc calls it, where the processor has them.
#pragma once

#include <cstdint>

namespace eddy::cpu {

void transpose_words_avx512(const uint32_t* in, int64_t in_stride, uint32_t* out,
                            int64_t out_stride, int64_t rows, int64_t columns);

}  // namespace eddy::cpu
