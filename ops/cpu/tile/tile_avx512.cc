// Tile loops for AVX-512F.
#if !defined(__clang__)
// gcc 12 takes its own header's "undefined" vectors for reads of uninitialized variables.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "ops/cpu/tile/tile_inl.h"
#include "ops/cpu/tile/tile_sets.h"

namespace eddy::cpu {
namespace {

struct Avx512 {
  using V = __m512;
  static constexpr int kWidth = 16;
  static constexpr int kMaxRows = 6;
  static constexpr int kMaxVectors = 4;
  static constexpr int kShortRows = 4;
  // As many sums as 6 rows of 4 vectors have.
  static constexpr int tall_rows(int vectors) { return vectors <= 2 ? 12 : vectors == 3 ? 8 : 0; }

  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static V zero() { return _mm512_setzero_ps(); }
  static V set1(float x) { return _mm512_set1_ps(x); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V load_first(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store_first(float* p, V v, int n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V mul(V a, V b) { return a * b; }
  static V div(V a, V b) { return a / b; }
  static V min(V a, V b) { return _mm512_min_ps(a, b); }
  static V max(V a, V b) { return _mm512_max_ps(a, b); }
  static float sum(V v) { return _mm512_reduce_add_ps(v); }
  static V round(V v) {
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static V exp2_int(V v) {
    const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
  }
  static V abs(V v) { return _mm512_abs_ps(v); }
  static V copy_sign(V magnitude, V sign) {
    const __m512i bit = _mm512_set1_epi32(static_cast<int>(0x80000000u));
    return _mm512_castsi512_ps(_mm512_or_epi32(_mm512_castps_si512(magnitude),
                                               _mm512_and_epi32(bit, _mm512_castps_si512(sign))));
  }
  static V select_less(V a, V b, V x, V y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
  }
  static V select_nan(V a, V x, V y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), y, x);
  }
};

constexpr TileKernels kSet = make_tile_kernels<Avx512>(Isa::kAvx512, "avx512");

}  // namespace

const TileKernels& tile_kernels_avx512() { return kSet; }

}  // namespace eddy::cpu
