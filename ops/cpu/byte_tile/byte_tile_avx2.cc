// Byte tiles for AVX2: bytes widened to 16 bits, products added in pairs.
#include <immintrin.h>

#include "ops/cpu/byte_tile/byte_tile_inl.h"
#include "ops/cpu/byte_tile/byte_tile_sets.h"

namespace eddy::cpu {
namespace {

struct Avx2Words {
  using V = __m256i;
  static constexpr int kWidth = 8;
  static constexpr int kMaxRows = 4;
  static constexpr int kMaxVectors = 2;
  static constexpr int kGroup = 2;
  static constexpr int kElementBytes = 2;

  static V first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static V set1(int32_t x) { return _mm256_set1_epi32(x); }
  static V load(const void* p) { return _mm256_loadu_si256(static_cast<const V*>(p)); }
  static V load_first(const int32_t* p, int n) { return _mm256_maskload_epi32(p, first(n)); }
  static void store_first(int32_t* p, V v, int n) { _mm256_maskstore_epi32(p, first(n), v); }
  static V sub(V a, V b) { return _mm256_sub_epi32(a, b); }
  static V multiply(V a, V b) { return _mm256_mullo_epi32(a, b); }
  static V dot(V sum, V a, V b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
};

constexpr ByteTileKernels kSet = make_byte_tile_kernels<Avx2Words>(ByteIsa::kAvx2, "avx2");

}  // namespace

const ByteTileKernels& byte_tile_kernels_avx2() { return kSet; }

}  // namespace eddy::cpu
