#include "tests/runtime/testing/random_networks.h"

#include <cmath>
#include <vector>

#include "graph/base/random.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

// A network of random layers; the same for the same seed.
class RandomNetwork {
 public:
  RandomNetwork(GraphBuilder& builder, uint64_t seed, const Dims& input)
      : b_(builder), random_(seed), input_(input) {}

  void build() {
    Image image{b_.input("x", tensor_type(ElementType::kFloat, input_)), 3};
    image = convolve(image, pick(4, 40));
    const int64_t layers = pick(3, 9);
    for (int64_t i = 0; i < layers; ++i) image = layer(image, 2);
    b_.output("image", image.value);
    b_.output("mean", b_.op("GlobalAveragePool", {image.value}));
  }

 private:
  struct Image {
    Value value;
    int64_t channels;
  };

  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.below(static_cast<uint64_t>(high - low + 1)));
  }
  Value numbers(const Dims& dims, float low, float high) {
    std::vector<float> values(static_cast<size_t>(*dims.count()));
    for (float& value : values) value = random_.uniform(low, high);
    return b_.tensor<float>(dims, std::span<const float>(values));
  }

  Image convolve(const Image& x, int64_t filters, int64_t group = 1) {
    const int64_t taps = pick(0, 1) * 2 + 1;
    const float size = 1.5f / std::sqrt(static_cast<float>(x.channels / group * taps * taps));
    std::vector<Value> inputs = {x.value,
                                 numbers({filters, x.channels / group, taps, taps}, -size, size)};
    if (pick(0, 1) == 1) inputs.push_back(numbers({filters}, -0.5f, 0.5f));
    const Ints pads(4, taps / 2);
    return {b_.op("Conv", std::span<const Value>(inputs), {{"pads", pads}, {"group", group}}),
            filters};
  }
  Image keep(const Image& x, Value value) { return {value, x.channels}; }

  Image normalize(const Image& x) {
    const Dims dims{x.channels};
    return keep(x, b_.op("BatchNormalization",
                         {x.value, numbers(dims, 0.5f, 1.5f), numbers(dims, -0.5f, 0.5f),
                          numbers(dims, -0.5f, 0.5f), numbers(dims, 0.5f, 2)}));
  }
  Image scale(const Image& x) {
    const Dims dims{x.channels, 1, 1};
    const Value scaled = b_.op("Mul", {numbers(dims, 0.5f, 1.5f), x.value});
    return keep(x, b_.op("Add", {scaled, numbers(dims, -0.5f, 0.5f)}));
  }
  Image activate(const Image& x) {
    switch (pick(0, 4)) {
      case 0:
        return keep(x, b_.op("Sigmoid", {x.value}));
      case 1:
        return keep(x, b_.op("Clip", {x.value, b_.scalar(-0.25f), b_.scalar(1.0f)}));
      case 2:
        return keep(x, b_.op("Exp", {b_.op("Clip", {x.value, Value(), b_.scalar(1.0f)})}));
      default:
        return keep(x, b_.op("Relu", {x.value}));
    }
  }
  Image pool(const Image& x) {
    const Attributes window{{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
    return keep(x, b_.op(pick(0, 1) ? "MaxPool" : "AveragePool", {x.value}, window));
  }
  // Channels scaled by what their means say.
  Image gate(const Image& x) {
    const Image mean{b_.op("GlobalAveragePool", {x.value}), x.channels};
    const Image scale = convolve(mean, x.channels);
    return keep(x, b_.op("Mul", {x.value, b_.op("Sigmoid", {scale.value})}));
  }
  Image residual(const Image& x, int depth) {
    Image other = convolve(layer(x, depth), x.channels);
    if (pick(0, 1)) other = normalize(other);
    const Image mine = pick(0, 1) ? convolve(x, x.channels) : x;
    return activate(keep(x, b_.op("Add", {mine.value, other.value})));
  }
  Image join(const Image& x, int depth) {
    const Image a = convolve(x, pick(0, 1) ? 32 : pick(3, 20)), c = layer(x, depth);
    return {b_.op("Concat", {a.value, c.value}, {{"axis", int64_t{1}}}), a.channels + c.channels};
  }
  Image loop(const Image& x, int depth) {
    const auto made = b_.while_loop(
        {.initial = {x.value}, .trip_limit = b_.scalar<int64_t>(pick(1, 3))},
        [&](Value, ValueSpan c) {
          return WhileTest{b_.scalar(true), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          const Image inner = layer({f[0], x.channels}, depth);
          const Value back = convolve(inner, x.channels).value;
          return std::vector<Value>{b_.op("Tanh", {b_.op("Add", {back, x.value})})};
        });
    return {made[0], x.channels};
  }
  Image branch(const Image& x, int depth) {
    const Value sum = b_.op("ReduceSum", {x.value}, {{"keepdims", int64_t{0}}});
    const auto made = b_.if_else(
        b_.op("Greater", {sum, b_.scalar(0.0f)}),
        [&] { return std::vector<Value>{convolve(layer(x, depth), x.channels).value}; },
        [&] { return std::vector<Value>{b_.op("Neg", {x.value})}; });
    return {made[0], x.channels};
  }

  Image layer(const Image& x, int depth) {
    const int64_t last = depth > 0 ? 11 : 6;
    switch (pick(0, last)) {
      case 0:
        return activate(normalize(convolve(x, pick(1, 50))));
      case 1:
        return activate(scale(convolve(x, pick(8, 50))));
      case 2:
        return activate(convolve(x, x.channels, x.channels));
      case 3:
        return pool(x);
      case 4:
        return activate(x);
      case 5:
        return normalize(x);
      case 6:
        return gate(x);
      case 7:
        return join(x, depth - 1);
      case 8:
        return loop(x, depth - 1);
      case 9:
        return branch(x, depth - 1);
      default:
        return residual(x, depth - 1);
    }
  }

  GraphBuilder& b_;
  Random random_;
  const Dims input_;
};

}  // namespace

void build_random_network(GraphBuilder& builder, uint64_t seed, const Dims& input) {
  RandomNetwork(builder, seed, input).build();
}

}  // namespace eddy::testing
