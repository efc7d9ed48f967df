// A residual network of three stages in which a policy decides, block by block, what is computed.
// (Wu et al. 2018, "BlockDrop"; ResNet-32 for CIFAR: [5, 5, 5] blocks of 16, 32, 64 channels.)
//
// A dropped block is its shortcut alone. Inputs `x` float[batch, 3, image, image], `gates`
// int64[blocks], common to the batch; outputs `means` (after every block, the mean of each
// channel), `logits` and `taken`, counted by the branches themselves.
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct BlockDropSize {
  int64_t blocks_per_stage = 5;
  int64_t channels = 16;  // of the first stage; doubled by each later one
  int64_t image = 32;
  int64_t open = 7;  // gates
  int64_t batch = 1;
  uint64_t seed = 5;
};
Model make_blockdrop(const BlockDropSize& size);

}  // namespace eddy::dynamic
