// Models whose batches ranks share, for eddy bench ranks.
//
//   resnet50   50 layers, images of 224 x 224 (He et al., "Deep Residual Learning", CVPR 2016)
//   lstm_loop  10 layers of an LSTM of 256, in a loop over 64 steps
//   sentences  a sequence to sequence model (examples/dynamic_models/seq2seq.h) as one rank of
//              several has it, or one alone: its share of 64 sentences. Those of rank 0, and of one
//              rank alone, are done after 40 steps, those of others after 10.
//
// In the first two the samples lie along dimension "batch", and no sample has an influence on
// another. In the last one the samples decide how often its loop goes round, so each rank has a
// model of its own, and goes round for its own sentences alone.
// Weights and inputs are random, of one seed. Errors: the builder's, which would be a defect.
#pragma once

#include <cstdint>
#include <string>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/api/library.h"
#include "runtime/api/tensor.h"

namespace eddy {

struct SplitCase {
  std::string name;
  Graph graph;
  NamedTensors inputs;  // of all samples
};

inline constexpr int64_t kSplitSamples = 64;

Result<SplitCase> split_resnet50(const Library& library);
Result<SplitCase> split_lstm_loop(const Library& library);
// Of `rank`, with its inputs alone.
Result<SplitCase> split_sentences(const Library& library, uint32_t rank, uint32_t num_ranks);

}  // namespace eddy
