// Sequence to sequence: an LSTM reads a sentence, another writes one, greedily, until every row
// of the batch has written the stop token (0) or 50 steps are done (Sutskever et al. 2014).
//
// With random weights nothing would make it stop, so the input `stop_at` lends the stop token
// a winning score from that step on. Inputs `source` int64[length, batch], `limit`, `stop_at`;
// outputs `tokens` int64[steps, batch] (rows that have stopped repeat the stop token), `h`.
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct Seq2seqSize {
  int64_t hidden = 256;
  int64_t vocabulary = 3797;
  int64_t length = 16;  // of the source
  int64_t limit = 50;
  int64_t stop_at = 10;  // steps
  int64_t batch = 1;
  uint64_t seed = 4;
};
Model make_seq2seq(const Seq2seqSize& size);

}  // namespace eddy::dynamic
