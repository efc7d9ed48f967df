// Transcriber: the words in a recording, by Moonshine and its vocabulary.
//
// Sound is brought to one loudness first (kLoudness), so that the words do not depend on how far
// away the microphone stood. They do depend on it: of Front_Center.wav of alsa-utils, which is 2.7
// dB quieter, the model makes "Front center" as it is and "Front, center." at kLoudness, under ONNX
// Runtime as here. Silence stays as it is.
//
// Errors: those of build_moonshine and Vocabulary; kInvalidArgument for sound longer than
// kMaxSeconds; those of the run. Threads: as Session.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "examples/speech_to_text/moonshine.h"
#include "examples/speech_to_text/vocabulary.h"
#include "runtime/api/session.h"

namespace eddy::speech {

// Attention covers all pairs of moments, so memory grows with the square of the time. Speech of any
// length is cut into pieces first (pieces.h).
inline constexpr int kMaxSeconds = 60;

// Root mean square of the samples: 20 dB below full scale, the usual level of speech.
inline constexpr double kLoudness = 0.1;

// `samples` (at kSampleRate) at kLoudness, filled up with silence where the encoder needs more.
std::vector<float> prepare_sound(std::span<const float> samples);

struct Transcript {
  std::string text;
  std::vector<int64_t> tokens;  // end-of-text included, if it was reached
  bool has_ended = false;       // by end-of-text, not by the limit
};

class Transcriber {
 public:
  static Result<std::unique_ptr<Transcriber>> create(const MoonshineFiles& files,
                                                     const std::string& vocabulary_path,
                                                     const SessionOptions& options);
  // Tokens that speech of this length may have: six a second, as the model's authors have it.
  static int64_t token_limit(size_t num_samples);
  // `samples` at kSampleRate.
  Result<Transcript> transcribe(std::span<const float> samples, int64_t token_limit);
  LoopReport loop_report() const;  // of the loop over the tokens

 private:
  Library library_;
  Vocabulary vocabulary_;
  std::unique_ptr<Session> session_;
};

}  // namespace eddy::speech
