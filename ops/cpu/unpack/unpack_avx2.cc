#include <immintrin.h>

#include "ops/cpu/unpack/unpack_inl.h"
#include "ops/cpu/unpack/unpack_sets.h"

namespace eddy::cpu {
namespace {

struct Avx2 {
  static constexpr int kWidth = 8, kLanes = 8, kVectors = 2;
  typedef int32_t Words __attribute__((vector_size(32)));
  using Floats = __m256;

  static Words load_bytes(const uint8_t* from) {
    return reinterpret_cast<Words>(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  static Floats floats_of(Words words) {
    return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(words));
  }
  static Floats load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Floats floats) { _mm256_storeu_ps(to, floats); }
};

}  // namespace

const UnpackLoops& unpack_loops_avx2() { return kUnpackLoops<Avx2>; }

}  // namespace eddy::cpu
