#if !defined(__clang__)
// gcc 12 takes its own header's "undefined" vectors for reads of uninitialized variables.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "ops/cpu/unpack/unpack_inl.h"
#include "ops/cpu/unpack/unpack_sets.h"

namespace eddy::cpu {
namespace {

struct Avx512 {
  static constexpr int kWidth = 16, kLanes = 16, kVectors = 4;
  typedef int32_t Words __attribute__((vector_size(64)));
  using Floats = __m512;

  static Words load_bytes(const uint8_t* from) {
    return reinterpret_cast<Words>(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static Floats floats_of(Words words) {
    return _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(words));
  }
  static Floats load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Floats floats) { _mm512_storeu_ps(to, floats); }
};

}  // namespace

const UnpackLoops& unpack_loops_avx512() { return kUnpackLoops<Avx512>; }

}  // namespace eddy::cpu
