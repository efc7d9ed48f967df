#include "examples/nets/net.h"

namespace eddy::nets {

std::span<const Recipe> all_nets() {
  static constexpr Recipe kRecipes[] = {
      {"bert_base", bert_base},
      {"mobilenet_v2", mobilenet_v2},
      {"efficientnet_b0", efficientnet_b0},
      {"nasnet_a_large", nasnet_a_large},
      {"lstm", lstm},
      {"decoder", decoder},
  };
  return kRecipes;
}

}  // namespace eddy::nets
