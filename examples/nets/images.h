// ImageParts: pieces of convolutional networks.
//
// Weights are drawn for the power of what they are applied to, that is the expected mean square of
// its elements: what a convolution makes has power 1 (He et al., "Delving Deep into Rectifiers",
// ICCV 2015). Powers are carried along, estimated where they depend on the data; normalizations
// shrink a little and shift, so errors of the estimates do not add up with depth.
//
// Windows are padded so that stride 1 keeps the size. Errors: the builder's.
#pragma once

#include <initializer_list>
#include <span>

#include "examples/dynamic_models/plain.h"
#include "graph/ir/builder.h"

namespace eddy::nets {

struct Image {
  Value value;  // [1, channels, size, size]
  int64_t channels = 0;
  int64_t size = 0;
  float power = 1;
};

// A value for ImageParts::input.
HostValue random_image(Random& random, int64_t size);

class ImageParts {
 public:
  // Both outlive it.
  ImageParts(GraphBuilder& builder, Random& random) : b_(builder), random_(random) {}

  // An input of 3 channels.
  Image input(const char* name, int64_t size);

  // Without bias, as normalizations follow.
  Image conv(const Image& x, int64_t channels, int64_t kernel, int64_t stride = 1);
  Image conv_unpadded(const Image& x, int64_t channels, int64_t kernel, int64_t stride);
  Image depthwise(const Image& x, int64_t kernel, int64_t stride = 1);
  // With bias, of one element.
  Image mix(const Image& x, int64_t channels);
  // Given moments, near those of what a convolution makes.
  Image norm(const Image& x);

  Image relu(const Image& x);
  Image relu6(const Image& x);
  Image silu(const Image& x);  // x * sigmoid(x)
  Image add(std::initializer_list<Image> parts);
  Image concat(std::span<const Image> parts);
  Image max_pool(const Image& x);  // 3 x 3, stride 2
  // 3 x 3, what is padded not counted.
  Image average_pool(const Image& x, int64_t stride = 1);
  // Every second element in both directions, from the first or from the second.
  Image thin_out(const Image& x, bool from_second);
  // Each channel by a number in 0..1 that depends on the means of all, by way of `reduced`
  // channels.
  Image squeeze_and_excite(const Image& x, int64_t reduced);
  // Scores of classes: [1, classes].
  Value classify(const Image& x, int64_t classes);

 private:
  struct Window {
    int64_t kernel = 1, stride = 1, pad = 0, group = 1;

    int64_t size(int64_t from) const { return (from + 2 * pad - kernel) / stride + 1; }
    Attributes attributes() const;
  };
  Image pool(const char* op, const Image& x, const Window& window);
  Image convolve(const Image& x, int64_t channels, const Window& window, bool has_bias = false);
  Value weights(std::vector<int64_t> dims, int64_t fan_in, float power, const char* name);
  Value numbers(int64_t count, float low, float high, const char* name);

  GraphBuilder& b_;
  Random& random_;
};

}  // namespace eddy::nets
