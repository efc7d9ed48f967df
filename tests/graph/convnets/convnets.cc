#include "tests/graph/convnets/convnets.h"

#include <string>

#include "graph/ir/builder.h"

namespace eddy {
namespace {

struct Kernel {
  int64_t height = 1;
  int64_t width = 1;
  int64_t stride = 1;
  bool is_valid = false;  // no padding
};

class Network {
 public:
  Network(const OpTable& ops, const char* name) : b_(ops, name) {}

  Value image(int64_t batch, int64_t size) {
    return b_.input("image", tensor_type(ElementType::kFloat, {batch, 3, size, size}));
  }

  int64_t channels(Value x) const { return dims(x)[1]; }
  int64_t height(Value x) const { return dims(x)[2]; }

  Value conv(Value x, int64_t filters, const Kernel& k, int64_t groups = 1) {
    const Value weight = input({filters, channels(x) / groups, k.height, k.width});
    return b_.op("Conv", {x, weight, input({filters})},
                 {{"kernel_shape", std::vector<int64_t>{k.height, k.width}},
                  {"strides", std::vector<int64_t>{k.stride, k.stride}},
                  {"group", groups},
                  {"auto_pad", std::string(k.is_valid ? "VALID" : "SAME_UPPER")}});
  }
  Value relu(Value x) { return b_.op("Relu", {x}); }
  Value conv_relu(Value x, int64_t filters, const Kernel& k) { return relu(conv(x, filters, k)); }
  Value pool(const char* op, Value x, int64_t size, int64_t stride, bool is_valid = false) {
    return b_.op(op, {x},
                 {{"kernel_shape", std::vector<int64_t>{size, size}},
                  {"strides", std::vector<int64_t>{stride, stride}},
                  {"auto_pad", std::string(is_valid ? "VALID" : "SAME_UPPER")}});
  }
  Value max_pool(Value x, int64_t stride, bool is_valid = false) {
    return pool("MaxPool", x, 3, stride, is_valid);
  }
  Value average_pool(Value x, int64_t stride, int64_t size = 3) {
    return pool("AveragePool", x, size, stride);
  }
  Value concat(const std::vector<Value>& parts) {
    return b_.op("Concat", parts, {{"axis", int64_t{1}}});
  }
  Value add(Value x, Value y) { return b_.op("Add", {x, y}); }

  Result<Graph> classify(Value x, int64_t classes) {
    const Value flat = b_.op("Flatten", {b_.op("GlobalAveragePool", {x})});
    b_.output("scores", b_.op("Gemm", {flat, input({channels(x), classes}), input({classes})}));
    return b_.finish();
  }

 private:
  const Dims& dims(Value x) const { return b_.type(x).tensor.dims; }
  Value input(const Dims& dims) {
    return b_.input("weight" + std::to_string(num_weights_++),
                    tensor_type(ElementType::kFloat, dims));
  }

  GraphBuilder b_;
  int num_weights_ = 0;
};

// Inception-v3, block by block; the letters are those of its reference implementations.
class Inception : public Network {
 public:
  explicit Inception(const OpTable& ops) : Network(ops, "inception_v3") {}

  Value stem(Value x) {
    x = conv_relu(x, 32, {3, 3, 2, true});
    x = conv_relu(x, 32, {3, 3, 1, true});
    x = max_pool(conv_relu(x, 64, {3, 3}), 2, true);
    x = conv_relu(x, 80, {1, 1});
    return max_pool(conv_relu(x, 192, {3, 3, 1, true}), 2, true);
  }
  Value a(Value x, int64_t pool_filters) {
    const Value five = conv_relu(conv_relu(x, 48, {1, 1}), 64, {5, 5});
    const Value three = conv_relu(conv_relu(x, 64, {1, 1}), 96, {3, 3});
    return concat({conv_relu(x, 64, {1, 1}), five, conv_relu(three, 96, {3, 3}),
                   conv_relu(average_pool(x, 1), pool_filters, {1, 1})});
  }
  Value b(Value x) {
    const Value three = conv_relu(conv_relu(x, 64, {1, 1}), 96, {3, 3});
    return concat({conv_relu(x, 384, {3, 3, 2, true}), conv_relu(three, 96, {3, 3, 2, true}),
                   max_pool(x, 2, true)});
  }
  Value c(Value x, int64_t f) {
    Value seven = conv_relu(x, f, {1, 1});
    seven = conv_relu(conv_relu(seven, f, {1, 7}), 192, {7, 1});
    Value twice = conv_relu(conv_relu(x, f, {1, 1}), f, {7, 1});
    twice = conv_relu(conv_relu(twice, f, {1, 7}), f, {7, 1});
    return concat({conv_relu(x, 192, {1, 1}), seven, conv_relu(twice, 192, {1, 7}),
                   conv_relu(average_pool(x, 1), 192, {1, 1})});
  }
  Value d(Value x) {
    const Value three = conv_relu(conv_relu(x, 192, {1, 1}), 320, {3, 3, 2, true});
    Value seven = conv_relu(conv_relu(x, 192, {1, 1}), 192, {1, 7});
    seven = conv_relu(conv_relu(seven, 192, {7, 1}), 192, {3, 3, 2, true});
    return concat({three, seven, max_pool(x, 2, true)});
  }
  Value e(Value x) {
    const Value three = conv_relu(x, 384, {1, 1});
    const Value twice = conv_relu(conv_relu(x, 448, {1, 1}), 384, {3, 3});
    return concat({conv_relu(x, 320, {1, 1}), conv_relu(three, 384, {1, 3}),
                   conv_relu(three, 384, {3, 1}), conv_relu(twice, 384, {1, 3}),
                   conv_relu(twice, 384, {3, 1}), conv_relu(average_pool(x, 1), 192, {1, 1})});
  }
};

// NASNet-A: each cell combines its input and the one before it.
class Nasnet : public Network {
 public:
  explicit Nasnet(const OpTable& ops) : Network(ops, "nasnet_a_large") {}

  // Before and after a cell: the cell's own input and the one before that.
  struct Pair {
    Value previous;
    Value current;
  };

  Pair normal(const Pair& in, int64_t filters) {
    const Value p = adjust(in.previous, in.current, filters);
    const Value h = conv(relu(in.current), filters, {1, 1});
    return {
        in.current,
        concat({p, add(separable(h, filters, 5), separable(p, filters, 3)),
                add(separable(p, filters, 5), separable(p, filters, 3)), add(average_pool(h, 1), p),
                add(average_pool(p, 1), average_pool(p, 1)), add(separable(h, filters, 3), h)})};
  }
  Pair reduction(const Pair& in, int64_t filters) {
    const Value p = adjust(in.previous, in.current, filters);
    const Value h = conv(relu(in.current), filters, {1, 1});
    const Value first = add(separable(h, filters, 5, 2), separable(p, filters, 7, 2));
    const Value second = add(max_pool(h, 2), separable(p, filters, 7, 2));
    const Value third = add(average_pool(h, 2), separable(p, filters, 5, 2));
    const Value fourth = add(average_pool(first, 1), second);
    const Value fifth = add(separable(first, filters, 3), max_pool(h, 2));
    return {in.current, concat({second, third, fourth, fifth})};
  }

 private:
  // Twice: ReLU, depthwise, pointwise; the first with the stride.
  Value separable(Value x, int64_t filters, int64_t size, int64_t stride = 1) {
    Value y = conv(relu(x), channels(x), {size, size, stride}, channels(x));
    y = relu(conv(y, filters, {1, 1}));
    return conv(conv(y, filters, {size, size}, filters), filters, {1, 1});
  }
  // The previous input in the current one's extent, with as many filters as the cell.
  Value adjust(Value previous, Value current, int64_t filters) {
    if (height(previous) == height(current)) {
      if (channels(previous) == filters) return previous;
      return conv(relu(previous), filters, {1, 1});
    }
    const Value x = relu(previous);
    return concat({conv(average_pool(x, 2, 1), filters / 2, {1, 1}),
                   conv(average_pool(x, 2, 1), filters - filters / 2, {1, 1})});
  }
};

}  // namespace

Result<Graph> build_inception_v3(const OpTable& ops, int64_t batch) {
  Inception net(ops);
  Value x = net.stem(net.image(batch, 299));
  for (const int64_t filters : {32, 64, 64}) x = net.a(x, filters);
  x = net.b(x);
  for (const int64_t filters : {128, 160, 160, 192}) x = net.c(x, filters);
  x = net.e(net.e(net.d(x)));
  return net.classify(x, 1000);
}

Result<Graph> build_nasnet_a_large(const OpTable& ops, int64_t batch) {
  constexpr int64_t kFilters = 168;
  constexpr int kCells = 6;
  Nasnet net(ops);
  const Value image = net.image(batch, 331);
  const Value stem = net.conv(image, 96, {3, 3, 2, true});
  Nasnet::Pair pair = net.reduction({stem, stem}, kFilters / 4);
  pair = net.reduction(pair, kFilters / 2);
  for (int64_t stage = 0; stage < 3; ++stage) {
    const int64_t filters = kFilters << stage;
    if (stage > 0) pair = net.reduction(pair, filters);
    for (int cell = 0; cell < kCells; ++cell) pair = net.normal(pair, filters);
  }
  return net.classify(net.relu(pair.current), 1001);
}

}  // namespace eddy
