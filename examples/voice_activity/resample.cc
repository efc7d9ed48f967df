#include "examples/voice_activity/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace eddy::voice {
namespace {

constexpr int64_t kCrossings = 16;
constexpr int64_t kMostWeights = 1 << 20;

// The kernel at distance x (in input samples): `cutoff` is the pass band's width relative to the
// input's, `reach` where the window ends.
double weight(double x, double cutoff, double reach) {
  if (std::abs(x) >= reach) return 0;
  const double angle = std::numbers::pi * cutoff * x;
  const double sinc = angle == 0 ? 1 : std::sin(angle) / angle;
  return cutoff * sinc * 0.5 * (1 + std::cos(std::numbers::pi * x / reach));
}

}  // namespace

Resampler::Resampler(int from, int to)
    : step_(from / std::gcd(from, to)),
      phases_(to / std::gcd(from, to)),
      cutoff_(std::min(1.0, static_cast<double>(to) / from)),
      reach_(static_cast<double>(kCrossings) / cutoff_),
      half_(static_cast<int64_t>(std::ceil(reach_))) {
  const int64_t taps = 2 * half_;
  const int64_t num_rows = phases_ * taps <= kMostWeights ? phases_ : 1;
  weights_.resize(static_cast<size_t>(num_rows * taps));
  for (int64_t p = 0; p < num_rows; ++p) fill_row(p, weights_.data() + p * taps);
}

// Fills the weights for input samples base - half + 1 .. base + half.
void Resampler::fill_row(int64_t phase, float* row) const {
  for (int64_t t = 0; t < 2 * half_; ++t) {
    const double x = static_cast<double>(t - half_ + 1) -
                     static_cast<double>(phase) / static_cast<double>(phases_);
    row[t] = static_cast<float>(weight(x, cutoff_, reach_));
  }
}

const float* Resampler::row_of(int64_t phase) {
  const int64_t taps = 2 * half_;
  if (static_cast<int64_t>(weights_.size()) > taps) return weights_.data() + phase * taps;
  if (phases_ > 1) fill_row(phase, weights_.data());
  return weights_.data();
}

std::vector<float> Resampler::push(std::span<const float> samples) {
  num_in_ += static_cast<int64_t>(samples.size());
  if (step_ == phases_) return {samples.begin(), samples.end()};
  held_.insert(held_.end(), samples.begin(), samples.end());
  // The first output sample with its last input sample, base + half, still to come.
  const int64_t last_base = num_in_ - half_ - 1;
  if (last_base < 0) return {};
  return take(((last_base + 1) * phases_ + step_ - 1) / step_);
}

std::vector<float> Resampler::finish() {
  if (step_ == phases_) return {};
  return take((num_in_ * phases_ + step_ - 1) / step_);
}

// Output samples up to `end`.
std::vector<float> Resampler::take(int64_t end) {
  std::vector<float> result(static_cast<size_t>(std::max<int64_t>(0, end - num_out_)));
  for (float& sample : result) {
    const int64_t place = num_out_ * step_;
    const int64_t first = place / phases_ - half_ + 1;
    const float* row = row_of(place % phases_);
    const int64_t last = std::min(first + 2 * half_, num_in_);
    float sum = 0;
    for (int64_t n = std::max<int64_t>(first, 0); n < last; ++n) {
      sum += held_[static_cast<size_t>(n - held_from_)] * row[n - first];
    }
    sample = sum;
    ++num_out_;
  }
  const int64_t next_first = num_out_ * step_ / phases_ - half_ + 1;
  const int64_t num_done = std::clamp<int64_t>(next_first - held_from_, 0, std::ssize(held_));
  held_.erase(held_.begin(), held_.begin() + num_done);
  held_from_ += num_done;
  return result;
}

std::vector<float> resample(std::span<const float> samples, int from, int to) {
  Resampler resampler(from, to);
  std::vector<float> result = resampler.push(samples);
  const std::vector<float> rest = resampler.finish();
  result.insert(result.end(), rest.begin(), rest.end());
  return result;
}

}  // namespace eddy::voice
