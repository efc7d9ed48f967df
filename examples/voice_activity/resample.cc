#include "examples/voice_activity/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>

namespace eddy::voice {
namespace {

constexpr int64_t kCrossings = 16;

// The kernel at distance x (in input samples): `cutoff` is the pass band's width relative to the
// input's, `reach` where the window ends.
double weight(double x, double cutoff, double reach) {
  if (std::abs(x) >= reach) return 0;
  const double angle = std::numbers::pi * cutoff * x;
  const double sinc = angle == 0 ? 1 : std::sin(angle) / angle;
  return cutoff * sinc * 0.5 * (1 + std::cos(std::numbers::pi * x / reach));
}

}  // namespace

std::vector<float> resample(std::span<const float> samples, int from, int to) {
  if (from == to) return {samples.begin(), samples.end()};
  const int64_t common = std::gcd(from, to);
  const int64_t step = from / common;  // in `phases`ths of an input sample
  const int64_t phases = to / common;
  const double cutoff = std::min(1.0, static_cast<double>(to) / from);
  const double reach = static_cast<double>(kCrossings) / cutoff;
  const int64_t half = static_cast<int64_t>(std::ceil(reach));
  const int64_t taps = 2 * half;

  // Weights of phase p, for input samples base - half + 1 .. base + half.
  std::vector<float> weights(static_cast<size_t>(phases * taps));
  for (int64_t p = 0; p < phases; ++p) {
    for (int64_t t = 0; t < taps; ++t) {
      const double x = static_cast<double>(t - half + 1) - static_cast<double>(p) / phases;
      weights[static_cast<size_t>(p * taps + t)] = static_cast<float>(weight(x, cutoff, reach));
    }
  }

  const int64_t size = static_cast<int64_t>(samples.size());
  std::vector<float> result(static_cast<size_t>((size * phases + step - 1) / step));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t place = static_cast<int64_t>(i) * step;
    const int64_t first = place / phases - half + 1;
    const float* row = weights.data() + place % phases * taps;
    float sum = 0;
    for (int64_t n = std::max<int64_t>(first, 0); n < std::min(first + taps, size); ++n) {
      sum += samples[static_cast<size_t>(n)] * row[n - first];
    }
    result[i] = sum;
  }
  return result;
}

}  // namespace eddy::voice
