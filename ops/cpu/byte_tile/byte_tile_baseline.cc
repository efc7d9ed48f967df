// Byte tiles for x86-64-v2 (SSE4.1): bytes widened to 16 bits, products added in pairs.
#include <smmintrin.h>

#include "ops/cpu/byte_tile/byte_tile_inl.h"
#include "ops/cpu/byte_tile/byte_tile_sets.h"

namespace eddy::cpu {
namespace {

struct Sse4Words {
  using V = __m128i;
  static constexpr int kWidth = 4;
  static constexpr int kMaxRows = 4;
  static constexpr int kMaxVectors = 2;
  static constexpr int kGroup = 2;
  static constexpr int kElementBytes = 2;

  static V set1(int32_t x) { return _mm_set1_epi32(x); }
  static V load(const void* p) { return _mm_loadu_si128(static_cast<const V*>(p)); }
  static V load_first(const int32_t* p, int n) {
    if (n == kWidth) return load(p);
    alignas(16) int32_t lanes[kWidth] = {0, 0, 0, 0};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return _mm_load_si128(reinterpret_cast<const V*>(lanes));
  }
  static void store_first(int32_t* p, V v, int n) {
    alignas(16) int32_t lanes[kWidth];
    _mm_store_si128(reinterpret_cast<V*>(lanes), v);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }
  static V sub(V a, V b) { return _mm_sub_epi32(a, b); }
  static V multiply(V a, V b) { return _mm_mullo_epi32(a, b); }
  static V dot(V sum, V a, V b) { return _mm_add_epi32(sum, _mm_madd_epi16(a, b)); }
};

constexpr ByteTileKernels kSet = make_byte_tile_kernels<Sse4Words>(ByteIsa::kBaseline, "sse4");

}  // namespace

const ByteTileKernels& byte_tile_kernels_baseline() { return kSet; }

}  // namespace eddy::cpu
