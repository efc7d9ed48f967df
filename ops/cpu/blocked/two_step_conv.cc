#include "ops/cpu/blocked/two_step_conv.h"

#include "ops/cpu/blocked/large_window_conv.h"
#include "ops/cpu/blocked/large_winograd_conv.h"
#include "ops/cpu/blocked/plain_conv.h"
#include "ops/cpu/blocked/plain_winograd_conv.h"

namespace eddy::cpu {

std::unique_ptr<const TwoStepConv> TwoStepConv::create_or_null(const ConvShape& shape,
                                                               bool may_round) {
  if (may_round && PlainWinogradConv::suits(shape)) {
    return std::make_unique<const PlainWinogradConv>(shape);
  }
  if (may_round && LargeWinogradConv::suits(shape)) {
    return std::make_unique<const LargeWinogradConv>(shape);
  }
  if (PlainConv::suits(shape)) return std::make_unique<const PlainConv>(shape);
  if (LargeWindowConv::suits(shape)) return std::make_unique<const LargeWindowConv>(shape);
  return nullptr;
}

}  // namespace eddy::cpu
