#include "tests/runtime/cuda/counted_nets.h"

#include <vector>

namespace eddy::testing {
namespace {

struct Window {
  int64_t height = 1, width = 1, stride = 1, pad_height = 0, pad_width = 0;

  Attributes attributes() const {
    return {{"kernel_shape", std::vector<int64_t>{height, width}},
            {"strides", std::vector<int64_t>{stride, stride}},
            {"pads", std::vector<int64_t>{pad_height, pad_width, pad_height, pad_width}}};
  }
};

struct Image {
  Value value;
  int64_t channels;
};

class Parts {
 public:
  explicit Parts(GraphBuilder& b, float scale = 0) : b_(b), scale_(scale) {}

  // Unlike all others, so that no nodes are equal.
  Value weights(const std::vector<int64_t>& dims) {
    size_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
    std::vector<float> numbers(count);
    ++num_weights_;
    for (size_t i = 0; i < count && scale_ != 0; ++i) {
      const size_t pattern = (7 * i + i / 13 + static_cast<size_t>(num_weights_)) % 17;
      numbers[i] = scale_ * (static_cast<float>(pattern) - 8);
    }
    numbers[0] += 1e-6f * static_cast<float>(num_weights_);
    return b_.tensor<float>(Dims(dims), std::span<const float>(numbers));
  }
  Image conv(const Image& x, int64_t filters, const Window& window) {
    const Value w = weights({filters, x.channels, window.height, window.width});
    return {b_.op("Conv", {x.value, w, weights({filters})}, window.attributes()), filters};
  }
  Image relu(const Image& x) { return {b_.op("Relu", {x.value}), x.channels}; }
  Image conv_relu(const Image& x, int64_t filters, const Window& window) {
    return relu(conv(x, filters, window));
  }
  // As wide as it is high, keeping the size.
  Image square(const Image& x, int64_t filters, int64_t kernel) {
    return conv_relu(x, filters, {kernel, kernel, 1, kernel / 2, kernel / 2});
  }
  Image pool(const char* op, const Image& x, const Window& window) {
    return {b_.op(op, {x.value}, window.attributes()), x.channels};
  }
  Image mean_pool(const Image& x) { return pool("AveragePool", x, {3, 3, 1, 1, 1}); }
  Image half_pool(const Image& x) { return pool("MaxPool", x, {3, 3, 2}); }
  Image concat(const std::vector<Image>& images) {
    std::vector<Value> values;
    int64_t channels = 0;
    for (const Image& image : images) {
      values.push_back(image.value);
      channels += image.channels;
    }
    return {b_.op("Concat", values, {{"axis", 1}}), channels};
  }
  Value classify(const Image& x) {
    const Value mean = b_.op("GlobalAveragePool", {x.value});
    const Value flat = b_.op("Flatten", {mean});
    return b_.op("Gemm", {flat, weights({1000, x.channels}), weights({1000})}, {{"transB", 1}});
  }
  Value dense(Value x, int64_t from, int64_t to) {
    return b_.op("Add", {b_.op("MatMul", {x, weights({from, to})}), weights({to})});
  }
  Value gemm(Value x, int64_t width) {
    return b_.op("Gemm", {x, weights({width, width}), weights({width})}, {{"transB", 1}});
  }
  Value norm(Value x, int64_t width) {
    return b_.op("LayerNormalization", {x, weights({width}), weights({width})}, {{"axis", -1}});
  }

 private:
  GraphBuilder& b_;
  const float scale_;  // 0: all but the first are 0
  int num_weights_ = 0;
};

Image bottleneck(Parts& parts, GraphBuilder& b, const Image& x, int64_t width, int64_t stride,
                 bool is_first) {
  Image y = parts.conv_relu(x, width, {});
  y = parts.conv_relu(y, width, {3, 3, stride, 1, 1});
  y = parts.conv(y, 4 * width, {});
  const Image around = is_first ? parts.conv(x, 4 * width, {1, 1, stride}) : x;
  return parts.relu({b.op("Add", {y.value, around.value}), 4 * width});
}

// The modules of torchvision's inception.py, by its names.
Image inception_a(Parts& p, const Image& x, int64_t pooled) {
  const Image five = p.square(p.square(x, 48, 1), 64, 5);
  const Image three = p.square(p.square(p.square(x, 64, 1), 96, 3), 96, 3);
  return p.concat({p.square(x, 64, 1), five, three, p.square(p.mean_pool(x), pooled, 1)});
}
Image inception_b(Parts& p, const Image& x) {
  const Image twice = p.conv_relu(p.square(p.square(x, 64, 1), 96, 3), 96, {3, 3, 2});
  return p.concat({p.conv_relu(x, 384, {3, 3, 2}), twice, p.half_pool(x)});
}
Image inception_c(Parts& p, const Image& x, int64_t width) {
  const Window wide = {1, 7, 1, 0, 3}, high = {7, 1, 1, 3, 0};
  const Image once = p.conv_relu(p.conv_relu(p.square(x, width, 1), width, wide), 192, high);
  Image twice = p.conv_relu(p.square(x, width, 1), width, high);
  twice = p.conv_relu(p.conv_relu(twice, width, wide), width, high);
  twice = p.conv_relu(twice, 192, wide);
  return p.concat({p.square(x, 192, 1), once, twice, p.square(p.mean_pool(x), 192, 1)});
}
Image inception_d(Parts& p, const Image& x) {
  const Window wide = {1, 7, 1, 0, 3}, high = {7, 1, 1, 3, 0};
  const Image three = p.conv_relu(p.square(x, 192, 1), 320, {3, 3, 2});
  Image seven = p.conv_relu(p.conv_relu(p.square(x, 192, 1), 192, wide), 192, high);
  seven = p.conv_relu(seven, 192, {3, 3, 2});
  return p.concat({three, seven, p.half_pool(x)});
}
Image inception_e(Parts& p, const Image& x) {
  const Window wide = {1, 3, 1, 0, 1}, high = {3, 1, 1, 1, 0};
  const Image three = p.square(x, 384, 1);
  const Image again = p.square(p.square(x, 448, 1), 384, 3);
  return p.concat({p.square(x, 320, 1),
                   p.concat({p.conv_relu(three, 384, wide), p.conv_relu(three, 384, high)}),
                   p.concat({p.conv_relu(again, 384, wide), p.conv_relu(again, 384, high)}),
                   p.square(p.mean_pool(x), 192, 1)});
}

constexpr int64_t kTokens = 128, kHeads = 12, kHeadWidth = 8;

Value gelu(GraphBuilder& b, Value x) {
  const Value erf = b.op("Erf", {b.op("Div", {x, b.scalar(1.41421356f)})});
  const Value twice = b.op("Mul", {x, b.op("Add", {erf, b.scalar(1.0f)})});
  return b.op("Mul", {twice, b.scalar(0.5f)});
}

Value attention(Parts& p, GraphBuilder& b, Value x) {
  const int64_t hidden = kHeads * kHeadWidth;
  const std::vector<int64_t> split = {1, kTokens, kHeads, kHeadWidth};
  const auto heads = [&](std::vector<int64_t> order) {
    const Value shape = b.tensor<int64_t>({4}, std::span<const int64_t>(split));
    return b.op("Transpose", {b.op("Reshape", {p.dense(x, hidden, hidden), shape})},
                {{"perm", std::move(order)}});
  };
  const Value queries = heads({0, 2, 1, 3}), keys = heads({0, 2, 3, 1}),
              values = heads({0, 2, 1, 3});
  const Value scores = b.op("Div", {b.op("MatMul", {queries, keys}), b.scalar(2.828427f)});
  const Value attended = b.op("MatMul", {b.op("Softmax", {scores}, {{"axis", -1}}), values});
  const Value merged = b.op("Transpose", {attended}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  const std::vector<int64_t> flat = {1, kTokens, hidden};
  const Value shape = b.tensor<int64_t>({3}, std::span<const int64_t>(flat));
  return p.dense(b.op("Reshape", {merged, shape}), hidden, hidden);
}

using Ints = std::vector<int64_t>;

Value turn(GraphBuilder& b, Value x, Ints perm) {
  return b.op("Transpose", {x}, {{"perm", std::move(perm)}});
}
Value reshape(GraphBuilder& b, Value x, const Ints& dims) {
  return b.op("Reshape", {x, b.vector(std::span<const int64_t>(dims))});
}

// Queries, keys and values of one product over [tokens, 1, hidden]: by PyTorch 2 entries of it once
// its thirds stand in front, by PyTorch 1 slices.
std::vector<Value> unpacked(GraphBuilder& b, Value packed, bool is_2) {
  const int64_t hidden = kHeads * kHeadWidth;
  std::vector<Value> parts;
  if (is_2) {
    packed = reshape(b, packed, {kTokens, 1, 3, hidden});
    packed = turn(b, b.op("Unsqueeze", {packed, b.int64s({0})}), {3, 1, 2, 0, 4});
    packed = b.op("Squeeze", {packed, b.int64s({3})});
  }
  for (int64_t i = 0; i < 3; ++i) {
    parts.push_back(is_2 ? b.op("Gather", {packed, b.scalar(i)}, {{"axis", 0}})
                         : b.op("Slice", {packed, b.int64s({i * hidden}),
                                          b.int64s({(i + 1) * hidden}), b.int64s({2})}));
  }
  return parts;
}

// torch.nn.MultiheadAttention, batch first.
Value packed_attention(Parts& p, GraphBuilder& b, Value x, bool is_2) {
  const int64_t hidden = kHeads * kHeadWidth;
  const Value first = turn(b, x, {1, 0, 2});
  std::vector<Value> heads = unpacked(b, p.dense(first, hidden, 3 * hidden), is_2);
  const Ints each = {kTokens, kHeads, kHeadWidth}, one = {1, kHeads, kTokens, kHeadWidth};
  for (size_t i = 0; i < 3; ++i) {
    heads[i] = turn(b, reshape(b, heads[i], each), i == 1 && !is_2 ? Ints{1, 2, 0} : Ints{1, 0, 2});
    if (is_2) heads[i] = reshape(b, heads[i], one);
  }
  if (is_2) {
    const Value root = b.scalar(0.594604f);
    heads[0] = b.op("Mul", {heads[0], root});
    heads[1] = b.op("Mul", {turn(b, heads[1], {0, 1, 3, 2}), root});
  } else {
    heads[0] = b.op("Div", {heads[0], b.scalar(2.828427f)});
  }
  const Value scores = b.op("MatMul", {heads[0], heads[1]});
  const Value attended = b.op("MatMul", {b.op("Softmax", {scores}, {{"axis", -1}}), heads[2]});
  const Value merged = turn(b, attended, is_2 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2});
  const Value out = p.gemm(reshape(b, merged, {kTokens, hidden}), hidden);
  return turn(b, reshape(b, out, {kTokens, 1, hidden}), {1, 0, 2});
}

// What is around attention.
template <typename Attention>
void encoder(GraphBuilder& b, int num_layers, const Attention& attend) {
  Parts p(b, 0.03125f);
  const int64_t hidden = kHeads * kHeadWidth;
  Value x = b.input("x", tensor_type(ElementType::kFloat, {1, kTokens, hidden}));
  for (int layer = 0; layer < num_layers; ++layer) {
    x = p.norm(b.op("Add", {x, attend(p, x)}), hidden);
    const Value inner = gelu(b, p.dense(x, hidden, 4 * hidden));
    x = p.norm(b.op("Add", {x, p.dense(inner, 4 * hidden, hidden)}), hidden);
  }
  b.output("y", x);
}

}  // namespace

void resnet50(GraphBuilder& b) {
  Parts parts(b);
  Image x = {b.input("x", tensor_type(ElementType::kFloat, {1, 3, 224, 224})), 3};
  x = parts.conv_relu(x, 64, {7, 7, 2, 3, 3});
  x = parts.pool("MaxPool", x, {3, 3, 2, 1, 1});
  const int depths[] = {3, 4, 6, 3};
  int64_t width = 64;
  for (const int depth : depths) {
    for (int i = 0; i < depth; ++i) {
      const int64_t stride = i == 0 && width > 64 ? 2 : 1;
      x = bottleneck(parts, b, x, width, stride, i == 0);
    }
    width *= 2;
  }
  b.output("y", parts.classify(x));
}

void inception_v3(GraphBuilder& b) {
  Parts p(b);
  Image x = {b.input("x", tensor_type(ElementType::kFloat, {1, 3, 299, 299})), 3};
  x = p.square(p.conv_relu(p.conv_relu(x, 32, {3, 3, 2}), 32, {3, 3}), 64, 3);
  x = p.conv_relu(p.square(p.half_pool(x), 80, 1), 192, {3, 3});
  x = p.half_pool(x);
  for (const int64_t pooled : {32, 64, 64}) x = inception_a(p, x, pooled);
  x = inception_b(p, x);
  for (const int64_t width : {128, 160, 160, 192}) x = inception_c(p, x, width);
  x = inception_d(p, x);
  for (int i = 0; i < 2; ++i) x = inception_e(p, x);
  b.output("y", p.classify(x));
}

void bert_like(GraphBuilder& b) {
  encoder(b, 12, [&](Parts& p, Value x) { return attention(p, b, x); });
}

void packed_encoder(GraphBuilder& b, int num_layers) {
  encoder(b, num_layers, [&](Parts& p, Value x) { return packed_attention(p, b, x, true); });
}

void sliced_encoder(GraphBuilder& b, int num_layers) {
  encoder(b, num_layers, [&](Parts& p, Value x) { return packed_attention(p, b, x, false); });
}

}  // namespace eddy::testing
