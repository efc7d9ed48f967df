// A residual network that skips blocks: a small recurrent cell reads the last result and opens or
// shuts the next block's gate. (Wang et al. 2018, "SkipNet", on ResNet-101 of He et al. 2016: a
// stem of 7 x 7 and a max-pool, [3, 4, 23, 3] bottlenecks of 64 to 512 channels that widen
// fourfold, 1000 classes; LSTM gates of 10.)
//
// Batch normalisation is as for inference, folded into the convolutions' biases. Each image decides
// for itself: in a batch a block is computed while any image needs it, and the others keep their
// shortcut, so that a row is what it would be alone. Input `x` float[batch, 3, image, image];
// outputs `gates` (every block's score; above 0 it is taken), `logits`, `taken` (of all images).
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct SkipNetSize {
  std::vector<int64_t> blocks = {3, 4, 23, 3};
  int64_t width = 64;
  int64_t image = 224;
  int64_t classes = 1000;
  int64_t batch = 1;
  uint64_t seed = 13;  // 18 of 33 blocks are taken at full size
};
Model make_skipnet(const SkipNetSize& size);

}  // namespace eddy::dynamic
