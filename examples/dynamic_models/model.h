// Model: a graph that decides at run time, its inputs, and the same computed by plain loops.
//
// Each file of this folder makes one model of the literature from a size and a seed. The plain
// loops use no Eddy; they give every output, scan rows of every step included, and how often the
// model went round (or which blocks it took), so that a comparison sees the first step that is
// wrong.
//
// Threads: pure. Cost: making one draws its weights; `run_plainly` is slow on purpose.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/host_value.h"
#include "graph/ir/graph.h"

namespace eddy::dynamic {

struct PlainResult {
  std::vector<HostValue> outputs;  // as the graph's
  int64_t trips = 0;               // iterations of `counted_loop`, or blocks taken
};

struct Model {
  std::string name;  // "lstm"
  std::string size;  // "10 layers, 64 steps, hidden 256, batch 1"
  int64_t batch = 1;
  // Path of the loop that `trips` counts; empty: the model's last output has the count.
  std::string counted_loop;
  std::vector<std::pair<std::string, HostValue>> inputs;  // as the graph's
  std::function<Result<Graph>(const OpTable& ops)> build;
  std::function<PlainResult()> run_plainly;
};

enum class Scale { kSmall, kFull };  // for tests; for `eddy bench dynamic`

struct Recipe {
  std::string name;  // the model's
  std::function<Model()> make;
};

// All of them, with batch 1, and with a larger batch where rows may be computed together. Weights
// are drawn when a model is made.
std::vector<Recipe> all_models(Scale scale);

}  // namespace eddy::dynamic
