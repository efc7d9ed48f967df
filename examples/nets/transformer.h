// TransformerParts: pieces of transformers. Linear maps keep the mean square of what they are
// applied to, given that a normalization stands before them.
//
// Errors: the builder's.
#pragma once

#include "examples/dynamic_models/plain.h"
#include "graph/ir/builder.h"

namespace eddy::nets {

struct Heads {
  int64_t count = 1, width = 1;  // of each

  int64_t hidden() const { return count * width; }
};

class TransformerParts {
 public:
  // Both outlive it.
  TransformerParts(GraphBuilder& builder, Random& random) : b_(builder), random_(random) {}

  // Numbers of mean square 1: [rows, width].
  Value table(int64_t rows, int64_t width, const char* name);
  // x * weights + bias.
  Value dense(Value x, int64_t from, int64_t to);
  Value norm(Value x, int64_t width, float epsilon);
  // By the error function (Hendrycks and Gimpel, 2016).
  Value gelu(Value x);
  // Up to `inner`, GELU, down again.
  Value feed_forward(Value x, int64_t hidden, int64_t inner);

  // [1, rows, hidden] to [1, heads, rows, width], and back.
  Value split_heads(Value x, int64_t rows, const Heads& heads);
  Value merge_heads(Value x, int64_t rows, const Heads& heads);
  // Of queries to keys, all with heads split; `bias`, unless none, is added to the scores.
  Value attend(Value queries, Value keys, Value values, const Heads& heads, Value bias_or_none);

 private:
  GraphBuilder& b_;
  Random& random_;
};

}  // namespace eddy::nets
