// A small recurrent decoder with weights made from a seed, as one while loop.
//
// Each step embeds the last token, updates a gated state and takes the most likely next token:
//
//   e = embedding[token]
//   z = sigmoid([e, h] Wz)        how much of the state is renewed
//   n = tanh([e, h] Wn)
//   h = h + z (n - h)
//   token = argmax(h Wo)
//
// until the stop token (0) comes, or a limit is reached. The stop test stands between the step
// and the collecting of its token: work in `before`, the decision, work in `after`.
//
// decode_plainly computes the same with loops, and no Eddy.
// Threads: pure. Cost: O(steps * (hidden * (embedding + hidden) + hidden * vocabulary)).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy::decoder {

inline constexpr int64_t kStop = 0;

// Row-major matrices.
struct Weights {
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  std::vector<float> embedding;  // [vocabulary, hidden]
  std::vector<float> renew;      // Wz: [2 * hidden, hidden]
  std::vector<float> proposal;   // Wn: [2 * hidden, hidden]
  std::vector<float> output;     // Wo: [hidden, vocabulary]
};
Weights make_weights(uint64_t seed, int64_t vocabulary, int64_t hidden);

// Inputs `first` (int64[1]) and `limit` (int64 scalar); output `tokens` (int64[steps, 1]), without
// the stop token.
Result<Graph> build_decoder(const OpTable& ops, const Weights& weights);
std::vector<int64_t> decode_plainly(const Weights& weights, int64_t first, int64_t limit);

}  // namespace eddy::decoder
