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

// With offsets of up to two elements, and a mask.
OperatorCase deform_conv(int64_t channels, int64_t filters, int64_t size) {
  const auto make = [=](const OpTable& ops, uint64_t seed) {
    constexpr int64_t kTaps = 9;
    Maker maker(ops, 19, seed);
    const Value x = maker.input({1, channels, size, size});
    const Value offset = maker.input({1, 2 * kTaps, size, size}, -2, 2);
    const Value mask = maker.input({1, kTaps, size, size}, 0, 1);
    const HostValue w = random_floats(maker.random(), {filters, channels, 3, 3}, -1, 1);
    const HostValue b = random_floats(maker.random(), {filters}, -1, 1);
    GraphBuilder& builder = maker.builder();
    return maker.finish(
        "DeformConv",
        {x, builder.constant(w.view(), "w"), offset, builder.constant(b.view(), "b"), mask},
        {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  };
  return {"DeformConv",
          fmt::format("{} to {} channels of {} x {}, 3 x 3", channels, filters, size, size), make};
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

OperatorCase lp_pool(int64_t channels, int64_t size, int64_t stride) {
  const auto make = [=](const OpTable& ops, uint64_t seed) {
    Maker maker(ops, 18, seed);
    const Value x = maker.input({1, channels, size, size});
    return maker.finish("LpPool", {x},
                        {{"kernel_shape", std::vector<int64_t>{3, 3}},
                         {"strides", std::vector<int64_t>{stride, stride}},
                         {"p", int64_t{2}}});
  };
  return {"LpPool",
          fmt::format("{} channels of {} x {}, 3 x 3 by {}, p 2", channels, size, size, stride),
          make};
}

// Regions of any place and up to half of the image on each side.
HostValue random_regions(Random& random, int64_t regions, int64_t columns, float size) {
  HostValue rois = HostValue::tensor(ElementType::kFloat, Dims{regions, columns});
  auto* at = rois.view().mutable_as<float>();
  for (int64_t r = 0; r < regions; ++r, at += columns) {
    float* const corner = at + columns - 4;
    if (columns == 5) at[0] = 0;  // the only image
    for (int axis = 0; axis < 2; ++axis) {
      corner[axis] = random.uniform(0, size / 2);
      corner[axis + 2] = corner[axis] + random.uniform(1, size / 2);
    }
  }
  return rois;
}

OperatorCase max_roi_pool(int64_t regions, int64_t channels, int64_t size) {
  const auto make = [=](const OpTable& ops, uint64_t seed) {
    Maker maker(ops, 21, seed);
    const Value x = maker.input({1, channels, size, size});
    const Value rois =
        maker.input(random_regions(maker.random(), regions, 5, static_cast<float>(size)));
    return maker.finish("MaxRoiPool", {x, rois}, {{"pooled_shape", std::vector<int64_t>{7, 7}}});
  };
  return {"MaxRoiPool",
          fmt::format("{} regions of {} channels of {} x {}, 7 x 7", regions, channels, size, size),
          make};
}

OperatorCase roi_align(int64_t regions, int64_t channels, int64_t size, int64_t ratio) {
  const auto make = [=](const OpTable& ops, uint64_t seed) {
    Maker maker(ops, 16, seed);
    const Value x = maker.input({1, channels, size, size});
    const Value rois =
        maker.input(random_regions(maker.random(), regions, 4, static_cast<float>(size)));
    const Value images = maker.input(HostValue::tensor(ElementType::kInt64, Dims{regions}));
    return maker.finish(
        "RoiAlign", {x, rois, images},
        {{"output_height", int64_t{7}}, {"output_width", int64_t{7}}, {"sampling_ratio", ratio}});
  };
  return {"RoiAlign",
          fmt::format("{} regions of {} channels of {} x {}, 7 x 7, ratio {}", regions, channels,
                      size, size, ratio),
          make};
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
          deform_conv(16, 16, 14),
          deform_conv(64, 64, 28),
          deform_conv(128, 128, 56),
          einsum("bij,bjk->bik", {16, 32, 32}, {16, 32, 32}),
          einsum("bhid,bhjd->bhij", {1, 12, 128, 64}, {1, 12, 128, 64}),
          einsum("bij,bkj->bik", {4, 256, 256}, {4, 256, 256}),
          grid_sample(3, 64),
          grid_sample(32, 128),
          grid_sample(64, 256),
          lp_pool(16, 28, 1),
          lp_pool(64, 56, 2),
          lp_pool(64, 224, 2),
          matmul_bits(1, 1024, 1024),
          matmul_bits(1, 4096, 4096),
          matmul_bits(32, 2048, 2048),
          max_roi_pool(4, 16, 32),
          max_roi_pool(32, 128, 50),
          max_roi_pool(128, 256, 100),
          suppression(100, 1),
          suppression(1000, 20),
          suppression(5000, 80),
          roi_align(4, 16, 32, 2),
          roi_align(32, 128, 50, 2),
          roi_align(128, 256, 100, 0)};
}

}  // namespace eddy
