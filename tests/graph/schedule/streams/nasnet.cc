#include "tests/graph/schedule/streams/nasnet.h"

#include <initializer_list>
#include <tuple>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

class Network {
 public:
  uint32_t op(std::initializer_list<uint32_t> inputs) {
    for (uint32_t input : inputs) edges_.push_back({input, num_nodes_});
    return num_nodes_++;
  }
  uint32_t chain(uint32_t input, int length) {
    for (int i = 0; i < length; ++i) input = op({input});
    return input;
  }
  uint32_t relu_conv(uint32_t x) { return chain(x, 2); }
  // Twice: relu, depthwise, pointwise.
  uint32_t separable(uint32_t x) { return chain(x, 6); }
  // The same with a pad, and a crop that keeps the batch norm behind it apart.
  uint32_t cropped_separable(uint32_t x) { return chain(x, 10); }
  uint32_t pool(uint32_t x) { return op({x}); }
  uint32_t cropped_pool(uint32_t x) { return chain(x, 3); }

  // Halves the resolution of the previous cell's output along two shifted paths.
  uint32_t factorized_reduction(uint32_t x) {
    const uint32_t relu = op({x});
    const uint32_t straight = chain(relu, 2);
    const uint32_t shifted = chain(relu, 4);
    return op({op({straight, shifted})});
  }

  uint32_t normal_body(uint32_t left, uint32_t right) {
    const uint32_t c0 = op({separable(right), separable(left)});
    const uint32_t c1 = op({separable(left), separable(left)});
    const uint32_t c2 = op({pool(right), left});
    const uint32_t c3 = op({pool(left), pool(left)});
    const uint32_t c4 = op({separable(right), right});
    return op({left, c0, c1, c2, c3, c4});
  }
  // `near` feeds the pools and half of the separable branches, `far` the other half.
  uint32_t reduction_body(uint32_t near, uint32_t far, bool crops) {
    const auto branch = [&](uint32_t x) { return crops ? cropped_separable(x) : separable(x); };
    const auto pooled = [&](uint32_t x) { return crops ? cropped_pool(x) : pool(x); };
    const uint32_t c0 = op({branch(near), branch(far)});
    const uint32_t c1 = op({pooled(near), branch(far)});
    const uint32_t c2 = op({pooled(near), branch(far)});
    const uint32_t c3 = op({pool(c0), c1});
    const uint32_t c4 = op({branch(c0), pooled(near)});
    return op({c1, c2, c3, c4});
  }

  // One cell that changes resolution or width, then five normal ones. Returns the last two.
  std::pair<uint32_t, uint32_t> stage(uint32_t previous, uint32_t current) {
    uint32_t next = normal_body(factorized_reduction(previous), relu_conv(current));
    previous = std::exchange(current, next);
    for (int cell = 0; cell < 5; ++cell) {
      const uint32_t left = relu_conv(previous);
      next = normal_body(left, relu_conv(current));
      previous = std::exchange(current, next);
    }
    return {previous, current};
  }
  uint32_t reduction(uint32_t previous, uint32_t current, bool crops) {
    const uint32_t far = relu_conv(previous);
    return reduction_body(relu_conv(current), far, crops);
  }

  Dag build() const { return build_dag(num_nodes_, edges_).value(); }

 private:
  uint32_t num_nodes_ = 0;
  std::vector<Edge> edges_;
};

}  // namespace

Dag nasnet_a_large() {
  Network net;
  const uint32_t conv0 = net.op({});
  const uint32_t stem0 = net.reduction_body(net.relu_conv(conv0), conv0, false);
  const uint32_t left = net.relu_conv(stem0);
  const uint32_t stem1 = net.reduction_body(left, net.factorized_reduction(conv0), false);
  auto [previous, current] = net.stage(stem0, stem1);
  uint32_t reduced = net.reduction(previous, current, true);
  std::tie(previous, current) = net.stage(previous, reduced);
  reduced = net.reduction(previous, current, false);
  std::tie(previous, current) = net.stage(previous, reduced);
  net.chain(current, 4);  // relu, average pool, reshape, linear
  return net.build();
}

}  // namespace eddy::testing
