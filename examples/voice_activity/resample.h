// resample: the same sound at another rate, by a windowed sinc.
//
// Each output sample is a weighted sum of the input around its place: a sinc that lets pass what
// both rates can hold, 16 zero crossings to each side under a Hann window. Weights are computed
// once for each of the places that an output sample can have between two input samples.
// Outside of the input is silence. Rates are positive. Output length: input length times
// to / from, rounded up. Cost: O(samples out * max(32, 32 * from / to)).
// Source: J. O. Smith, "Digital Audio Resampling", Stanford CCRMA.
#pragma once

#include <span>
#include <vector>

namespace eddy::voice {

std::vector<float> resample(std::span<const float> samples, int from, int to);

}  // namespace eddy::voice
