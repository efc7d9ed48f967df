// What eddy bench training measures: graphs with a loss, and rows of inputs for them.
//
//   power     z <- z w while z > c, some 1,000 trips, of one float
//   tanh      h <- tanh(h W) + x, 16 wide
//   nested    a loop of n trips of z <- z w inside one of as many
//   mlp       784-512-512-10 with Relu, batch 64
//   cnn       5x5x32, pool, 5x5x64, pool, 3136-256-10; 28x28, batch 32
//   cells     64 steps of a loop of LSTM cells, 256 wide, batch 16
//
// The losses of the networks are means of squares: what their end costs is next to nothing.
#pragma once

#include <cstdint>

#include "graph/base/status.h"
#include "graph/ir/builder.h"
#include "runtime/api/library.h"
#include "runtime/api/tensor.h"

namespace eddy {

struct TrainingCase {
  std::string name;
  Graph graph;  // output "loss"
  NamedTensors inputs;
  double units = 1;         // iterations of one run
  bool is_network = false;  // with initializers to train
};

Result<TrainingCase> power_case(const Library& library, int64_t trips);
Result<TrainingCase> tanh_case(const Library& library, int64_t trips);
Result<TrainingCase> nested_case(const Library& library, int64_t trips);
Result<TrainingCase> mlp_case(const Library& library);
Result<TrainingCase> cnn_case(const Library& library);
Result<TrainingCase> cells_case(const Library& library);
// A chain of that many elementwise nodes, for the time of differentiating it.
Result<Graph> long_chain(const Library& library, int64_t nodes);

}  // namespace eddy
