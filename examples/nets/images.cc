#include "examples/nets/images.h"

#include <cmath>

#include "examples/dynamic_models/parts.h"

namespace eddy::nets {
namespace {

using dynamic::Values;

// Mean squares of what becomes of normal numbers of variance 1.
constexpr float kPowerOfRelu = 0.5f, kPowerOfSilu = 0.36f, kPowerOfSigmoid = 0.29f;
// What is left of the power of a channel in its mean over the image, about.
constexpr float kPowerOfMean = 0.3f;

// Another value in its place.
Image with(Image x, Value value, float power) {
  x.value = value;
  x.power = power;
  return x;
}

}  // namespace

HostValue random_image(Random& random, int64_t size) {
  return dynamic::to_value(dynamic::random_array(random, {1, 3, size, size}, std::sqrt(3.0f)));
}

Image ImageParts::input(const char* name, int64_t size) {
  return {b_.input(name, tensor_type(ElementType::kFloat, {1, 3, size, size})), 3, size, 1};
}

Image ImageParts::conv(const Image& x, int64_t channels, int64_t kernel, int64_t stride) {
  return convolve(x, channels, {.kernel = kernel, .stride = stride, .pad = kernel / 2});
}

Image ImageParts::conv_unpadded(const Image& x, int64_t channels, int64_t kernel, int64_t stride) {
  return convolve(x, channels, {.kernel = kernel, .stride = stride});
}

Image ImageParts::depthwise(const Image& x, int64_t kernel, int64_t stride) {
  return convolve(x, x.channels,
                  {.kernel = kernel, .stride = stride, .pad = kernel / 2, .group = x.channels});
}

Image ImageParts::mix(const Image& x, int64_t channels) { return convolve(x, channels, {}, true); }

Image ImageParts::norm(const Image& x) {
  const int64_t n = x.channels;
  const Value inputs[] = {x.value, numbers(n, 0.8f, 1.2f, "scale"), numbers(n, -0.5f, 0.5f, "bias"),
                          numbers(n, -0.1f, 0.1f, "mean"), numbers(n, 1.0f, 1.3f, "variance")};
  return with(x, b_.op("BatchNormalization", inputs), 1);
}

Image ImageParts::relu(const Image& x) {
  return with(x, b_.op("Relu", {x.value}), kPowerOfRelu * x.power);
}

Image ImageParts::relu6(const Image& x) {
  const Value bounded = b_.op("Clip", {x.value, b_.scalar(0.0f), b_.scalar(6.0f)});
  return with(x, bounded, kPowerOfRelu * x.power);
}

Image ImageParts::silu(const Image& x) {
  const Value made = b_.op("Mul", {x.value, b_.op("Sigmoid", {x.value})});
  return with(x, made, kPowerOfSilu * x.power);
}

Image ImageParts::add(std::initializer_list<Image> parts) {
  EDDY_CHECK(parts.size() == 2) << parts.size() << " images";
  const Image &x = parts.begin()[0], &y = parts.begin()[1];
  return with(x, b_.op("Add", {x.value, y.value}), x.power + y.power);
}

Image ImageParts::concat(std::span<const Image> parts) {
  Image joined{{}, 0, parts[0].size, 0};
  Values values;
  for (const Image& part : parts) {
    values.push_back(part.value);
    joined.channels += part.channels;
    joined.power += part.power * static_cast<float>(part.channels);
  }
  joined.power /= static_cast<float>(joined.channels);
  joined.value = b_.op("Concat", values, {{"axis", 1}});
  return joined;
}

Image ImageParts::max_pool(const Image& x) {
  return pool("MaxPool", x, {.kernel = 3, .stride = 2, .pad = 1});
}

Image ImageParts::average_pool(const Image& x, int64_t stride) {
  return pool("AveragePool", x, {.kernel = 3, .stride = stride, .pad = 1});
}

Image ImageParts::thin_out(const Image& x, bool from_second) {
  Image thick = x;
  if (from_second) {
    // Padded before it is cut: ONNX Runtime makes a Pad before a pool the pool's own, also where
    // its windows are then too small for that.
    const Value padded = b_.op("Pad", {x.value, b_.int64s({0, 0, 0, 0, 0, 0, 1, 1})});
    const Value end = b_.int64s({x.size + 1, x.size + 1});
    thick.value = b_.op("Slice", {padded, b_.int64s({1, 1}), end, b_.int64s({2, 3})});
  }
  return pool("AveragePool", thick, {.stride = 2});
}

Image ImageParts::squeeze_and_excite(const Image& x, int64_t reduced) {
  const Image means = with(x, b_.op("GlobalAveragePool", {x.value}), kPowerOfMean * x.power);
  const Image wanted = mix(silu(mix(means, reduced)), x.channels);
  const Value factors = b_.op("Sigmoid", {wanted.value});
  return with(x, b_.op("Mul", {x.value, factors}), kPowerOfSigmoid * x.power);
}

Value ImageParts::classify(const Image& x, int64_t classes) {
  const Value means = dynamic::pool(b_, x.value);
  const Value filters =
      weights({classes, x.channels}, x.channels, kPowerOfMean * x.power, "classes");
  return b_.op("Gemm", {means, filters, numbers(classes, -0.5f, 0.5f, "bias")}, {{"transB", 1}});
}

Attributes ImageParts::Window::attributes() const {
  return {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
          {"strides", std::vector<int64_t>{stride, stride}},
          {"pads", std::vector<int64_t>{pad, pad, pad, pad}}};
}

Image ImageParts::pool(const char* op, const Image& x, const Window& window) {
  return {b_.op(op, {x.value}, window.attributes()), x.channels, window.size(x.size), x.power};
}

Image ImageParts::convolve(const Image& x, int64_t channels, const Window& window, bool has_bias) {
  const int64_t from = x.channels / window.group;
  const Value filters = weights({channels, from, window.kernel, window.kernel},
                                from * window.kernel * window.kernel, x.power, "filters");
  Attributes attributes = window.attributes();
  attributes.set("group", window.group);
  Values inputs = {x.value, filters};
  if (has_bias) inputs.push_back(numbers(channels, -0.5f, 0.5f, "bias"));
  return {b_.op("Conv", inputs, std::move(attributes)), channels, window.size(x.size), 1};
}

Value ImageParts::weights(std::vector<int64_t> dims, int64_t fan_in, float power,
                          const char* name) {
  const float range = std::sqrt(3 / (static_cast<float>(fan_in) * power));
  return dynamic::weight(b_, dynamic::random_array(random_, std::move(dims), range), name);
}

Value ImageParts::numbers(int64_t count, float low, float high, const char* name) {
  dynamic::Array array = dynamic::zeros({count});
  for (float& value : array.values) value = random_.uniform(low, high);
  return dynamic::weight(b_, array, name);
}

}  // namespace eddy::nets
