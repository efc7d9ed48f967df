// Byte tiles for AVX-512 VNNI: four products of unsigned by signed bytes into each 32-bit sum.
#if !defined(__clang__)
// gcc 12 takes its own header's "undefined" vectors for reads of uninitialized variables.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "ops/cpu/byte_tile/byte_tile_inl.h"
#include "ops/cpu/byte_tile/byte_tile_sets.h"

namespace eddy::cpu {
namespace {

struct Avx512Vnni {
  using V = __m512i;
  static constexpr int kWidth = 16;
  static constexpr int kMaxRows = 6;
  static constexpr int kMaxVectors = 4;
  static constexpr int kGroup = 4;
  static constexpr int kElementBytes = 1;

  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static V set1(int32_t x) { return _mm512_set1_epi32(x); }
  static V load(const void* p) { return _mm512_loadu_si512(p); }
  static V load_first(const int32_t* p, int n) { return _mm512_maskz_loadu_epi32(first(n), p); }
  static void store_first(int32_t* p, V v, int n) { _mm512_mask_storeu_epi32(p, first(n), v); }
  static V sub(V a, V b) { return _mm512_sub_epi32(a, b); }
  static V multiply(V a, V b) { return _mm512_mullo_epi32(a, b); }
  static V dot(V sum, V a, V b) { return _mm512_dpbusd_epi32(sum, a, b); }
};

constexpr ByteTileKernels kSet =
    make_byte_tile_kernels<Avx512Vnni>(ByteIsa::kAvx512Vnni, "avx512 vnni");

}  // namespace

const ByteTileKernels& byte_tile_kernels_avx512() { return kSet; }

}  // namespace eddy::cpu
