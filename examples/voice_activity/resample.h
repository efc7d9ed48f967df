// Resampler: the same sound at another rate, by a windowed sinc, block by block.
//
// Each output sample is a weighted sum of the input around its place: a sinc that lets pass what
// both rates can hold, 16 zero crossings to each side under a Hann window. Weights are computed
// once for each of the places that an output sample can have between two input samples; where
// there are too many such places (odd rates), anew for each output sample.
// Outside of the input is silence. Rates are positive. Output length: input length times
// to / from, rounded up. However the input is cut into blocks, the output's bits are the same.
// Cost: O(samples out * max(32, 32 * from / to)). Memory: that of a block and of the weights.
// Source: J. O. Smith, "Digital Audio Resampling", Stanford CCRMA.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace eddy::voice {

class Resampler {
 public:
  Resampler(int from, int to);
  // What `samples` and those before decide of the output, beyond what was given out.
  std::vector<float> push(std::span<const float> samples);
  // The rest. Nothing may be pushed afterwards.
  std::vector<float> finish();

 private:
  void fill_row(int64_t phase, float* row) const;
  const float* row_of(int64_t phase);
  std::vector<float> take(int64_t end);

  int64_t step_, phases_;  // between output samples, in `phases_`ths of an input sample
  double cutoff_, reach_;
  int64_t half_;                // of the weights of one output sample
  std::vector<float> weights_;  // of each phase, or of one
  std::vector<float> held_;     // input that further output needs
  int64_t held_from_ = 0;
  int64_t num_in_ = 0;
  int64_t num_out_ = 0;
};

// All at once.
std::vector<float> resample(std::span<const float> samples, int from, int to);

}  // namespace eddy::voice
