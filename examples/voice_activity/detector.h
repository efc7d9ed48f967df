// Detector: the Silero VAD model inside one while loop, as a session.
//
// The model judges one chunk of 512 samples (32 ms at 16 kHz) at a time. It is given the last 64
// samples before the chunk with it, and a state that it returns for the next chunk. Here a loop
// over all chunks of a sound carries state and context and stacks the probabilities, so that a
// whole sound is one run. What is carried is an input and an output of the graph, so that a sound
// of any length may come in blocks, and gives the same bits as in one.
//
// Errors: those of the import (the model's file is named) and of the run.
// Threads: as Session; the reports are of the run that ended last.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "examples/voice_activity/sound.h"
#include "runtime/api/session.h"

namespace eddy::voice {

// Inputs: `chunks` float[n, 512], `state` float[2, 1, 128] and `context` float[1, 64].
// Outputs: `probabilities` float[n, 1, 1], `last_state` and `last_context`.
Result<Graph> build_detector(const OpTable& ops, const std::string& model_path);

// The model's state after the sound so far; at first, silence.
struct DetectorMemory {
  Tensor state = Tensor::zeros(ElementType::kFloat, {2, 1, 128});
  Tensor context = Tensor::zeros(ElementType::kFloat, {1, 64});
};

class Detector {
 public:
  static Result<std::unique_ptr<Detector>> create(const std::string& model_path,
                                                  const SessionOptions& options);
  // The probability of speech in each chunk; the last one is filled up with silence. Goes on from
  // `memory`, and leaves in it what the next block goes on from.
  Result<std::vector<float>> detect(std::span<const float> samples, DetectorMemory& memory);
  Result<std::vector<float>> detect(std::span<const float> samples);  // a sound of its own
  LoopReport loop_report() const;                                     // of the loop over the chunks

 private:
  Library library_;
  std::unique_ptr<Session> session_;
};

}  // namespace eddy::voice
