// A language model with its own loop: a decoder of the kind that is served today, which reads a
// prompt token by token and then writes greedily until every row of the batch has stopped.
// (RMS normalization: Zhang and Sennrich 2019; rotary positions: Su et al. 2021; heads that share
// keys and values: Ainslie et al. 2023; gated units: Shazeer 2020.)
//
// ONNX's own operators of opset 24: Attention with caches that the loop carries, RMSNormalization,
// RotaryEmbedding, Swish. The stop token's (0) score rises with the step, so that random weights
// stop too; rows that have stopped stay so.
// Inputs `prompt` int64[words, batch], `limit`; outputs `tokens` int64[steps, batch] (what is read
// next after every step), `keys` and `values` (the last layer's caches) float[batch, shared heads,
// steps, width].
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct LanguageModelSize {
  int64_t layers = 2;
  int64_t heads = 8;
  int64_t shared = 2;    // heads of keys and values; divides `heads`
  int64_t width = 64;    // of a head
  int64_t inner = 1408;  // of the gated units
  int64_t vocabulary = 4096;
  int64_t words = 8;  // of the prompt
  int64_t limit = 64;
  float eagerness = 0.05f;  // by how much the stop token's score rises in one step
  int64_t batch = 1;
  uint64_t seed = 24;
};
Model make_language_model(const LanguageModelSize& size);

}  // namespace eddy::dynamic
