#include "tools/bench/operator_cases.h"

#include <fmt/format.h>

#include "graph/base/random.h"
#include "graph/ir/builder.h"

namespace eddy {
namespace {

using Made = OperatorCase::Made;

HostValue random_floats(Random& random, const Dims& dims, float low, float high) {
  HostValue value = HostValue::tensor(ElementType::kFloat, dims);
  const TensorView view = value.view();
  for (int64_t i = 0; i < view.count(); ++i) {
    view.mutable_as<float>()[i] = random.uniform(low, high);
  }
  return value;
}

// A graph of one node whose inputs are all fed.
class Maker {
 public:
  Maker(const OpTable& ops, int opset, uint64_t seed) : builder_(ops, "case"), random_(seed) {
    builder_.set_opset("", opset);
  }

  Value input(const Dims& dims, float low = -1, float high = 1) {
    return input(random_floats(random_, dims, low, high));
  }
  Value input(HostValue value) {
    const std::string name = "x" + std::to_string(feed_.size());
    const Value made = builder_.input(name, TensorType(value.element, value.dims));
    feed_.push_back(std::move(value));
    return made;
  }
  GraphBuilder& builder() { return builder_; }
  Random& random() { return random_; }
  Result<Made> finish(std::string_view op, std::initializer_list<Value> inputs,
                      Attributes attributes, std::string domain = "") {
    builder_.output("y", builder_.op(op, inputs, std::move(attributes), {.domain = domain}));
    EDDY_ASSIGN_OR_RETURN(Graph graph, builder_.finish());
    return Made{std::move(graph), std::move(feed_)};
  }

 private:
  GraphBuilder builder_;
  Random random_;
  std::vector<HostValue> feed_;
};

OperatorCase attention(int64_t queries, int64_t keys) {
  constexpr int64_t kHeads = 12, kSize = 64;
  const auto make = [=](const OpTable& ops, uint64_t seed) {
    Maker maker(ops, 23, seed);
    const Value q = maker.input({1, kHeads, queries, kSize});
    const Value k = maker.input({1, kHeads, keys, kSize});
    const Value v = maker.input({1, kHeads, keys, kSize});
    return maker.finish("Attention", {q, k, v}, {{"is_causal", queries == keys ? 1 : 0}});
  };
  return {"Attention",
          fmt::format("{} heads of {}, {} queries, {} keys", kHeads, kSize, queries, keys), make};
}

OperatorCase einsum(const char* equation, const Dims& a, const Dims& b) {
  const auto make = [=](const OpTable& ops, uint64_t seed) {
    Maker maker(ops, 22, seed);
    const Value x = maker.input(a), y = maker.input(b);
    return maker.finish("Einsum", {x, y}, {{"equation", std::string(equation)}});
  };
  return {"Einsum", fmt::format("{} of {} and {}", equation, to_string(a), to_string(b)), make};
}

OperatorCase grid_sample(int64_t channels, int64_t size) {
  const auto make = [=](const OpTable& ops, uint64_t seed) {
    Maker maker(ops, 20, seed);
    const Value x = maker.input({1, channels, size, size});
    const Value grid = maker.input({1, size, size, 2}, -1.1f, 1.1f);
    return maker.finish("GridSample", {x, grid}, {});
  };
  return {"GridSample", fmt::format("{} channels of {} x {}, linear", channels, size, size), make};
}

// Weights of 4 bits, a scale for each 32 of a column.
OperatorCase matmul_bits(int64_t rows, int64_t depth, int64_t columns) {
  const auto make = [=](const OpTable& ops, uint64_t seed) {
    constexpr int64_t kBlock = 32;
    Maker maker(ops, 22, seed);
    const Value a = maker.input({rows, depth});
    HostValue packed =
        HostValue::tensor(ElementType::kUint8, Dims{columns, depth / kBlock, kBlock / 2});
    for (std::byte& byte : packed.bytes) {
      byte = static_cast<std::byte>(maker.random().below(256));
    }
    const HostValue scales = random_floats(maker.random(), {columns * depth / kBlock}, 0.01f, 0.1f);
    GraphBuilder& b = maker.builder();
    return maker.finish(
        "MatMulNBits", {a, b.constant(packed.view(), "b"), b.constant(scales.view(), "scales")},
        {{"K", depth}, {"N", columns}, {"bits", 4}, {"block_size", kBlock}}, "com.microsoft");
  };
  return {"MatMulNBits", fmt::format("{} rows, {} x {}, 4 bits", rows, depth, columns), make};
}

OperatorCase suppression(int64_t boxes, int64_t classes) {
  const auto make = [=](const OpTable& ops, uint64_t seed) -> Result<Made> {
    Maker maker(ops, 22, seed);
    HostValue corners = HostValue::tensor(ElementType::kFloat, Dims{1, boxes, 4});
    auto* corner = corners.view().mutable_as<float>();
    for (int64_t i = 0; i < boxes; ++i, corner += 4) {
      for (int axis = 0; axis < 2; ++axis) {
        corner[axis] = maker.random().uniform(0, 600);
        corner[axis + 2] = corner[axis] + maker.random().uniform(5, 100);
      }
    }
    const Value box = maker.input(std::move(corners));
    const Value scores = maker.input({1, classes, boxes}, 0, 1);
    GraphBuilder& b = maker.builder();
    return maker.finish("NonMaxSuppression",
                        {box, scores, b.scalar<int64_t>(100), b.scalar(0.5f), b.scalar(0.3f)}, {});
  };
  return {"NonMaxSuppression", fmt::format("{} boxes, {} classes", boxes, classes), make};
}

}  // namespace

std::vector<OperatorCase> operator_cases() {
  return {attention(1, 512),
          attention(128, 128),
          attention(512, 512),
          einsum("bij,bjk->bik", {16, 32, 32}, {16, 32, 32}),
          einsum("bhid,bhjd->bhij", {1, 12, 128, 64}, {1, 12, 128, 64}),
          einsum("bij,bkj->bik", {4, 256, 256}, {4, 256, 256}),
          grid_sample(3, 64),
          grid_sample(32, 128),
          grid_sample(64, 256),
          matmul_bits(1, 1024, 1024),
          matmul_bits(1, 4096, 4096),
          matmul_bits(32, 2048, 2048),
          suppression(100, 1),
          suppression(1000, 20),
          suppression(5000, 80)};
}

}  // namespace eddy
