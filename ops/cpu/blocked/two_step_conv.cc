#include "ops/cpu/blocked/two_step_conv.h"

#include "ops/cpu/blocked/plain_conv.h"
#include "ops/cpu/blocked/plain_winograd_conv.h"
#include "ops/cpu/blocked/swapped_conv.h"
#include "ops/cpu/blocked/swapped_winograd_conv.h"

namespace eddy::cpu {

std::unique_ptr<const TwoStepConv> TwoStepConv::create_or_null(const ConvShape& shape,
                                                               bool may_round) {
  if (may_round && PlainWinogradConv::suits(shape)) {
    return std::make_unique<const PlainWinogradConv>(shape);
  }
  if (PlainConv::suits(shape)) return std::make_unique<const PlainConv>(shape);
  return nullptr;
}

std::unique_ptr<const TwoStepConv> TwoStepConv::create_swapped_or_null(const ConvShape& shape) {
  if (SwappedWinogradConv::suits(shape)) return std::make_unique<const SwappedWinogradConv>(shape);
  if (SwappedConv::suits(shape)) return std::make_unique<const SwappedConv>(shape);
  return nullptr;
}

}  // namespace eddy::cpu
