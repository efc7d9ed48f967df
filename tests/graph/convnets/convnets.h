// Two convolutional networks as graphs, in inference form: every shape is right, batch
// normalisation is folded into the convolutions, weights are inputs of the graph (so nothing is
// drawn or stored; feed zeros to run one).
//
//   Inception-v3    299 x 299; Szegedy et al. 2016, "Rethinking the Inception Architecture"
//   NASNet-A large  331 x 331, 6 cells a stage, 4,032 filters at the end; Zoph et al. 2018,
//                   "Learning Transferable Architectures for Scalable Image Recognition"
//
// Errors: the builder's, when `ops` lacks an operator.
#pragma once

#include <cstdint>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

Result<Graph> build_inception_v3(const OpTable& ops, int64_t batch = 1);
Result<Graph> build_nasnet_a_large(const OpTable& ops, int64_t batch = 1);

}  // namespace eddy
