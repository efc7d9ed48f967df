// Two neighbours of eight places are one gather of doubles, which are taken apart behind it.
#if !defined(__clang__)
// gcc 12 takes its own header's "undefined" vectors for reads of uninitialized variables.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "ops/cpu/sample/region_inl.h"
#include "ops/cpu/sample/sample_inl.h"
#include "ops/cpu/sample/sample_sets.h"

namespace eddy::cpu {
namespace {

// Even and odd elements of sixteen pairs.
struct Pairs {
  __m512 left, right;
};

[[gnu::always_inline]] inline Pairs load_pairs(const float* plane, __m512i first) {
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  const __m512 low = _mm512_castpd_ps(_mm512_i32gather_pd(_mm512_castsi512_si256(first), plane, 4));
  const __m512 high =
      _mm512_castpd_ps(_mm512_i32gather_pd(_mm512_extracti64x4_epi64(first, 1), plane, 4));
  return {_mm512_permutex2var_ps(low, even, high), _mm512_permutex2var_ps(low, odd, high)};
}

void sample_by_sixteen(const SampleArgs& t) {
  const __m512 one = _mm512_set1_ps(1);
  for (int64_t i = 0; i < t.count; i += 16) {
    const int64_t rest = t.count - i;
    const __mmask16 there =
        rest >= 16 ? __mmask16{0xffff} : static_cast<__mmask16>((1u << rest) - 1u);
    const __m512i given = _mm512_mask_loadu_epi32(_mm512_set1_epi32(kNowhere), there, t.first + i);
    const __mmask16 is_somewhere = _mm512_cmpge_epi32_mask(given, _mm512_setzero_si512());
    const __m512i first = _mm512_maskz_mov_epi32(is_somewhere, given);
    const __m512 x = _mm512_maskz_loadu_ps(there, t.right + i);
    const __m512 y = _mm512_maskz_loadu_ps(there, t.down + i);
    const __m512 left = _mm512_sub_ps(one, x), up = _mm512_sub_ps(one, y);
    const Pairs upper = load_pairs(t.plane, first), lower = load_pairs(t.plane + t.width, first);
    __m512 sum = _mm512_mul_ps(upper.left, _mm512_mul_ps(up, left));
    sum = _mm512_fmadd_ps(upper.right, _mm512_mul_ps(up, x), sum);
    sum = _mm512_fmadd_ps(lower.left, _mm512_mul_ps(y, left), sum);
    sum = _mm512_fmadd_ps(lower.right, _mm512_mul_ps(y, x), sum);
    _mm512_mask_storeu_ps(t.out + i, there, _mm512_maskz_mov_ps(is_somewhere, sum));
  }
}

constexpr SampleLoops kLoops = {find, find_moved, sample_by_sixteen};
constexpr RegionLoops kRegionLoops = {mean_of_bins, most_of_bins};

}  // namespace

const SampleLoops& sample_loops_avx512() { return kLoops; }
const RegionLoops& region_loops_avx512() { return kRegionLoops; }

}  // namespace eddy::cpu
