// Tile loops for x86-64-v2 (SSE4.1): no fused multiply-add, no masks.
#include <smmintrin.h>

#include "ops/cpu/tile/tile_inl.h"
#include "ops/cpu/tile/tile_sets.h"

namespace eddy::cpu {
namespace {

struct Sse4 {
  using V = __m128;
  static constexpr int kWidth = 4;
  static constexpr int kMaxRows = 4;
  static constexpr int kMaxVectors = 2;
  static constexpr int kShortRows = 4;
  static constexpr int tall_rows(int) { return 0; }

  static V zero() { return _mm_setzero_ps(); }
  static V set1(float x) { return _mm_set1_ps(x); }
  static V load(const float* p) { return _mm_loadu_ps(p); }
  static void store(float* p, V v) { _mm_storeu_ps(p, v); }
  static V load_first(const float* p, int n) {
    if (n == kWidth) return load(p);
    alignas(16) float lanes[kWidth] = {0, 0, 0, 0};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return _mm_load_ps(lanes);
  }
  static void store_first(float* p, V v, int n) {
    if (n == kWidth) return store(p, v);
    alignas(16) float lanes[kWidth];
    _mm_store_ps(lanes, v);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }
  static V fma(V a, V b, V c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V mul(V a, V b) { return a * b; }
  static V div(V a, V b) { return a / b; }
  static V min(V a, V b) { return _mm_min_ps(a, b); }
  static V max(V a, V b) { return _mm_max_ps(a, b); }
  static float sum(V v) {
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)));
  }
  static V round(V v) { return _mm_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static V exp2_int(V v) {
    const __m128i biased = _mm_add_epi32(_mm_cvtps_epi32(v), _mm_set1_epi32(127));
    return _mm_castsi128_ps(_mm_slli_epi32(biased, 23));
  }
  static V abs(V v) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), v); }
  static V copy_sign(V magnitude, V sign) {
    return _mm_or_ps(magnitude, _mm_and_ps(_mm_set1_ps(-0.0f), sign));
  }
  static V select_less(V a, V b, V x, V y) { return _mm_blendv_ps(y, x, _mm_cmplt_ps(a, b)); }
  static V select_nan(V a, V x, V y) { return _mm_blendv_ps(y, x, _mm_cmpunord_ps(a, a)); }
};

constexpr TileKernels kSet = make_tile_kernels<Sse4>(Isa::kBaseline, "sse4");

}  // namespace

const TileKernels& tile_kernels_baseline() { return kSet; }

}  // namespace eddy::cpu
