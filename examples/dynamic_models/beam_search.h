// Beam search over an LSTM: the best `beams` unfinished and finished sentences are kept at each
// step, until all that are kept have written the stop token (0).
//
// The stop token's score rises with the step, so that random weights stop too. The rows of a batch
// start from states of their own and search until the last has stopped; beams that have stopped
// stay as they are. Inputs `limit`, `start` float[batch, hidden] (the cell's first state); outputs
// `tokens` and `parents` (beam that each grew from) int64[steps, batch, beams], `scores` (log
// probabilities) float[steps, batch, beams], best first.
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct BeamSearchSize {
  int64_t hidden = 256;
  int64_t vocabulary = 3797;
  int64_t beams = 4;
  int64_t limit = 50;
  float eagerness = 0.5f;  // by how much the stop token's score rises in one step
  int64_t batch = 1;
  uint64_t seed = 10;
};
Model make_beam_search(const BeamSearchSize& size);

}  // namespace eddy::dynamic
