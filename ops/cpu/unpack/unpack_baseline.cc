#include <immintrin.h>

#include "ops/cpu/unpack/unpack_inl.h"
#include "ops/cpu/unpack/unpack_sets.h"

namespace eddy::cpu {
namespace {

struct Baseline {
  static constexpr int kWidth = 4, kLanes = 8, kVectors = 2;
  typedef int32_t Words __attribute__((vector_size(16)));
  using Floats = __m128;

  static Words load_bytes(const uint8_t* from) {
    int32_t bytes;
    __builtin_memcpy(&bytes, from, sizeof(bytes));
    return reinterpret_cast<Words>(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
  }
  static Floats floats_of(Words words) { return _mm_cvtepi32_ps(reinterpret_cast<__m128i>(words)); }
  static Floats load(const float* from) { return _mm_loadu_ps(from); }
  static void store(float* to, Floats floats) { _mm_storeu_ps(to, floats); }
};

}  // namespace

const UnpackLoops& unpack_loops_baseline() { return kUnpackLoops<Baseline>; }

}  // namespace eddy::cpu
