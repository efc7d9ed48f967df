// A classifier that stops as soon as it is sure: after every stage of convolutions a small
// classifier looks, and the later stages run only if it doubts (Teerapittayanon et al. 2016,
// "BranchyNet"). Case-of nodes nest as deep as there are stages.
//
// A batch goes on while any of its images is in doubt. Inputs `x` float[batch, 3, image, image],
// `threshold` (of the largest share); outputs `shares` float[batch, classes] of the last stage
// that ran, `stages`, counted by the branches.
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct EarlyExitSize {
  int64_t stages = 5;
  int64_t channels = 32;
  int64_t image = 32;
  float threshold = 0.5f;
  int64_t batch = 1;
  uint64_t seed = 8;
};
Model make_early_exit(const EarlyExitSize& size);

}  // namespace eddy::dynamic
