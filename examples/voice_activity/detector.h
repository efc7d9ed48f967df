// Detector: the Silero VAD model inside one while loop, as a session.
//
// The model judges one chunk of 512 samples (32 ms at 16 kHz) at a time. It is given the last 64
// samples before the chunk with it, and a state that it returns for the next chunk. Here a loop
// over all chunks of a recording carries state and context and stacks the probabilities, so that
// a whole recording is one run.
//
// Errors: those of the import (the model's file is named) and of the run.
// Threads: as Session; the reports are of the run that ended last.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/api/session.h"

namespace eddy::voice {

inline constexpr int kSampleRate = 16000;
inline constexpr int64_t kChunkSamples = 512;
inline constexpr double kChunkSeconds = static_cast<double>(kChunkSamples) / kSampleRate;

// Input `chunks`: float[n, 512]. Output `probabilities`: float[n, 1, 1].
Result<Graph> build_detector(const OpTable& ops, const std::string& model_path);

class Detector {
 public:
  static Result<std::unique_ptr<Detector>> create(const std::string& model_path,
                                                  const SessionOptions& options);
  // The probability of speech in each chunk; the last one is filled up with silence.
  Result<std::vector<float>> detect(std::span<const float> samples);
  LoopReport loop_report() const;  // of the loop over the chunks

 private:
  Library library_;
  std::unique_ptr<Session> session_;
};

}  // namespace eddy::voice
