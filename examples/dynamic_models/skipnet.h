// A residual network whose blocks are skipped on the way: a small recurrent cell looks at what
// has been computed and opens or shuts the next block's gate. (Wang et al. 2018, "SkipNet";
// ResNet-101: [3, 4, 23, 3] bottleneck blocks, LSTM gates of 10.)
//
// Narrower than the original (`width` 64 there), without batch normalisation and with a stem of
// one convolution. One image at a time: each decides for itself. Input `x` float[1, 3, image,
// image]; outputs `gates` (every block's score; above 0 it is computed), `logits`, `taken`.
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct SkipNetSize {
  std::vector<int64_t> blocks = {3, 4, 23, 3};
  int64_t width = 32;
  int64_t image = 112;
  uint64_t seed = 9;
};
Model make_skipnet(const SkipNetSize& size);

}  // namespace eddy::dynamic
