// What eddy bench training measures: graphs with a loss, and rows of inputs for them.
//
//   power     z <- z w while z > c, some 1,000 trips, of one float
//   tanh      h <- tanh(h W) + x, 16 wide; as `trips N` with many more trips
//   nested    a loop of n trips of z <- z w inside one of as many
//   mlp       784-512-512-10 with Relu, batch 64
//   cnn       5x5x32, pool, 5x5x64, pool, 3136-256-10; 28x28, batch 32
//   lstm      the operator LSTM: 64 steps, 256 wide, batch 16
//   cells     the same as a loop of cells
//   scan      a loop that reads a row of x in each step and hands on one: h <- tanh(x[i] + h W)
//   adaptive_time, nas_rnn, seq2seq, tree   of examples/dynamic_models, batch 1 and 64
//
// The losses of the networks are means of squares: what their end costs is next to nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/builder.h"
#include "runtime/api/library.h"
#include "runtime/api/tensor.h"

namespace eddy {

struct TrainingCase {
  std::string name;
  Graph graph;
  NamedTensors inputs;
  double units = 1;           // iterations of one run
  bool is_network = false;    // with initializers to train
  std::string loss = "loss";  // an output
  // Those to train; empty: all.
  std::vector<std::string> wrt = {};
  std::string counted = {};  // an output that has the units of a run; empty: `units` has
};

Result<TrainingCase> power_case(const Library& library, int64_t trips);
Result<TrainingCase> tanh_case(const Library& library, int64_t trips);
Result<TrainingCase> nested_case(const Library& library, int64_t trips);
Result<TrainingCase> mlp_case(const Library& library);
Result<TrainingCase> cnn_case(const Library& library);
Result<TrainingCase> lstm_case(const Library& library);
Result<TrainingCase> cells_case(const Library& library);
Result<TrainingCase> scan_case(const Library& library, int64_t steps);
// "tree b64".
Result<TrainingCase> dynamic_case(const Library& library, const std::string& name);
// A chain of that many elementwise nodes, for the time of differentiating it.
Result<Graph> long_chain(const Library& library, int64_t nodes);

}  // namespace eddy
