#include "tests/bench/networks.h"

#include <array>

#include <nlohmann/json.hpp>

#include "graph/base/check.h"
#include "graph/strategy/operators/regions.h"

namespace eddy {
namespace {

// Adds operators; every method returns the number of what it added.
class Maker {
 public:
  explicit Maker(int64_t batch) : batch_(batch) { graph_.is_training = true; }

  const Dims& shape(uint32_t op) const { return graph_.operators[op].shape; }

  uint32_t image(int64_t channels, int64_t height, int64_t width) {
    const uint32_t made = add("image", "elementwise", {batch_, channels, height, width}, {}, {});
    graph_.operators[made].flops = 0;
    return made;
  }
  // "Same" padding, or none.
  uint32_t conv(uint32_t from, int64_t channels, std::array<int64_t, 2> kernel, int64_t stride = 1,
                bool is_padded = true) {
    return window("conv2d", from, channels, kernel, stride, is_padded);
  }
  uint32_t conv(uint32_t from, int64_t channels, int64_t kernel, int64_t stride = 1,
                bool is_padded = true) {
    return conv(from, channels, {kernel, kernel}, stride, is_padded);
  }
  uint32_t pool(uint32_t from, int64_t kernel, int64_t stride, bool is_padded = true) {
    return window("MaxPool", from, shape(from)[1], {kernel, kernel}, stride, is_padded);
  }
  uint32_t global_pool(uint32_t from) {
    return add("pool", "GlobalAveragePool", {batch_, shape(from)[1], 1, 1}, {from}, {});
  }
  uint32_t concat(const std::vector<uint32_t>& from, int axis = 1) {
    Dims dims = shape(from[0]);
    dims[axis] = 0;
    for (const uint32_t part : from) dims[axis] += shape(part)[axis];
    return add("concat", "Concat", dims, from, {.axes = {axis}});
  }
  uint32_t sum(uint32_t a, uint32_t b) { return add("add", "elementwise", shape(a), {a, b}, {}); }
  uint32_t dense(uint32_t from, int64_t columns) {
    int64_t features = 1;
    for (int d = 1; d < shape(from).rank(); ++d) features *= shape(from)[d];
    return add("dense", "matmul", {batch_, columns}, {from}, {.in_features = features});
  }
  uint32_t embed(int64_t width) { return add("embed", "elementwise", {batch_, width}, {}, {}); }
  uint32_t softmax(uint32_t from) { return add("softmax", "Softmax", shape(from), {from}, {}); }
  // One step: four gates over the input and, from the second step on, the state.
  uint32_t lstm(uint32_t input, uint32_t state_or_none, int64_t width, uint32_t group) {
    std::vector<uint32_t> from = {input};
    if (state_or_none != kNone) from.push_back(state_or_none);
    const uint32_t made = add("lstm", "matmul", {batch_, width}, from, {});
    Operator& op = graph_.operators[made];
    const int64_t features = shape(input)[1] + width;
    op.weight_elements = 4 * features * width;
    op.flops = 8.0 * static_cast<double>(batch_ * features * width);
    op.reduction = 1;
    for (OperatorInput& input_of_step : op.inputs) input_of_step.dims[1] = InputDim{};
    share(made, group);
    return made;
  }
  uint32_t shared_dense(uint32_t from, int64_t columns, uint32_t group) {
    const uint32_t made = dense(from, columns);
    share(made, group);
    return made;
  }
  // Attention of a decoder's state over all encoder states, side by side in `memory`.
  uint32_t attend(uint32_t state, uint32_t memory, uint32_t group) {
    const int64_t width = shape(state)[1];
    const uint32_t made = add("attend", "matmul", shape(state), {state, memory},
                              {.in_features = width + shape(memory)[1]});
    Operator& op = graph_.operators[made];
    op.weight_elements = 2 * width * width;
    op.flops = static_cast<double>(batch_) * (4.0 * static_cast<double>(shape(memory)[1]) +
                                              4.0 * static_cast<double>(width * width));
    share(made, group);
    return made;
  }
  uint32_t new_group() { return graph_.num_weight_groups++; }
  OperatorGraph take() { return std::move(graph_); }

  static constexpr uint32_t kNone = UINT32_MAX;

 private:
  uint32_t add(const std::string& name, const std::string& type, const Dims& dims,
               const std::vector<uint32_t>& from, OperatorAttributes attributes) {
    const auto number = static_cast<uint32_t>(graph_.operators.size());
    Operator op;
    op.name = name + std::to_string(number);
    op.type = type;
    op.shape = dims;
    std::vector<Dims> shapes;
    for (const uint32_t producer : from) {
      op.inputs.push_back({.producer = producer});
      shapes.push_back(shape(producer));
    }
    if (type == "matmul" && attributes.in_features == 0) {
      for (const Dims& input : shapes) attributes.in_features += input[1];
    }
    const Status status = set_regions(op, attributes, shapes, nullptr);
    EDDY_CHECK(status.is_ok()) << status.to_string();
    op.weight_group = new_group();
    graph_.operators.push_back(std::move(op));
    return number;
  }
  uint32_t window(const std::string& type, uint32_t from, int64_t channels,
                  std::array<int64_t, 2> kernel, int64_t stride, bool is_padded) {
    Dims dims = {batch_, channels};
    for (int s = 0; s < 2; ++s) {
      const int64_t extent = shape(from)[2 + s];
      const int64_t covered = is_padded ? extent : extent - kernel[static_cast<size_t>(s)] + 1;
      dims.push_back((covered + stride - 1) / stride);
    }
    return add(type == "conv2d" ? "conv" : "pool", type, dims, {from},
               {.kernel = {kernel[0], kernel[1]}, .stride = {stride}});
  }
  void share(uint32_t op, uint32_t group) { graph_.operators[op].weight_group = group; }

  int64_t batch_;
  OperatorGraph graph_;
};

uint32_t bottleneck(Maker& make, uint32_t from, int64_t width, int64_t stride) {
  const uint32_t a = make.conv(from, width, 1, stride);
  const uint32_t b = make.conv(a, width, 3);
  const uint32_t c = make.conv(b, 4 * width, 1);
  const bool is_same = stride == 1 && make.shape(from)[1] == 4 * width;
  return make.sum(c, is_same ? from : make.conv(from, 4 * width, 1, stride));
}

uint32_t inception_a(Maker& make, uint32_t x, int64_t pooled) {
  const uint32_t a = make.conv(x, 64, 1);
  const uint32_t b = make.conv(make.conv(x, 48, 1), 64, 5);
  const uint32_t c = make.conv(make.conv(make.conv(x, 64, 1), 96, 3), 96, 3);
  const uint32_t d = make.conv(make.pool(x, 3, 1), pooled, 1);
  return make.concat({a, b, c, d});
}

uint32_t inception_b(Maker& make, uint32_t x) {
  const uint32_t a = make.conv(x, 384, 3, 2, false);
  const uint32_t b = make.conv(make.conv(make.conv(x, 64, 1), 96, 3), 96, 3, 2, false);
  return make.concat({a, b, make.pool(x, 3, 2, false)});
}

uint32_t inception_c(Maker& make, uint32_t x, int64_t width) {
  const uint32_t a = make.conv(x, 192, 1);
  const uint32_t b = make.conv(make.conv(make.conv(x, width, 1), width, {1, 7}), 192, {7, 1});
  uint32_t c = make.conv(make.conv(x, width, 1), width, {7, 1});
  c = make.conv(make.conv(make.conv(c, width, {1, 7}), width, {7, 1}), 192, {1, 7});
  const uint32_t d = make.conv(make.pool(x, 3, 1), 192, 1);
  return make.concat({a, b, c, d});
}

uint32_t inception_d(Maker& make, uint32_t x) {
  const uint32_t a = make.conv(make.conv(x, 192, 1), 320, 3, 2, false);
  uint32_t b = make.conv(make.conv(make.conv(x, 192, 1), 192, {1, 7}), 192, {7, 1});
  b = make.conv(b, 192, 3, 2, false);
  return make.concat({a, b, make.pool(x, 3, 2, false)});
}

uint32_t inception_e(Maker& make, uint32_t x) {
  const uint32_t a = make.conv(x, 320, 1);
  const uint32_t b = make.conv(x, 384, 1);
  const uint32_t c = make.conv(make.conv(x, 448, 1), 384, 3);
  const uint32_t d = make.conv(make.pool(x, 3, 1), 192, 1);
  return make.concat({a, make.conv(b, 384, {1, 3}), make.conv(b, 384, {3, 1}),
                      make.conv(c, 384, {1, 3}), make.conv(c, 384, {3, 1}), d});
}

constexpr int kSteps = 40;

}  // namespace

OperatorGraph alexnet() {
  Maker make(256);
  uint32_t x = make.pool(make.conv(make.image(3, 227, 227), 96, 11, 4, false), 3, 2, false);
  x = make.pool(make.conv(x, 256, 5), 3, 2, false);
  x = make.conv(make.conv(make.conv(x, 384, 3), 384, 3), 256, 3);
  x = make.pool(x, 3, 2, false);
  make.softmax(make.dense(make.dense(make.dense(x, 4096), 4096), 1000));
  return make.take();
}

OperatorGraph resnet101() {
  Maker make(64);
  uint32_t x = make.pool(make.conv(make.image(3, 224, 224), 64, 7, 2), 3, 2);
  const std::array<int, 4> depth = {3, 4, 23, 3};
  for (size_t stage = 0; stage < depth.size(); ++stage) {
    for (int i = 0; i < depth[stage]; ++i) {
      x = bottleneck(make, x, int64_t{64} << stage, i == 0 && stage > 0 ? 2 : 1);
    }
  }
  make.softmax(make.dense(make.global_pool(x), 1000));
  return make.take();
}

OperatorGraph inception_v3() {
  Maker make(64);
  uint32_t x = make.conv(make.image(3, 299, 299), 32, 3, 2, false);
  x = make.pool(make.conv(make.conv(x, 32, 3, 1, false), 64, 3), 3, 2, false);
  x = make.pool(make.conv(make.conv(x, 80, 1), 192, 3, 1, false), 3, 2, false);
  for (const int64_t pooled : {32, 64, 64}) x = inception_a(make, x, pooled);
  x = inception_b(make, x);
  for (const int64_t width : {128, 160, 160, 192}) x = inception_c(make, x, width);
  x = inception_e(make, inception_e(make, inception_d(make, x)));
  make.softmax(make.dense(make.global_pool(x), 1000));
  return make.take();
}

OperatorGraph rnnlm() {
  constexpr int64_t kWidth = 2048;
  Maker make(64);
  const uint32_t first_layer = make.new_group();
  const uint32_t second_layer = make.new_group();
  const uint32_t words = make.new_group();
  uint32_t a = Maker::kNone;
  uint32_t b = Maker::kNone;
  for (int step = 0; step < kSteps; ++step) {
    a = make.lstm(make.embed(kWidth), a, kWidth, first_layer);
    b = make.lstm(a, b, kWidth, second_layer);
    make.softmax(make.shared_dense(b, 10000, words));
  }
  return make.take();
}

OperatorGraph nmt() {
  constexpr int64_t kWidth = 1024;
  Maker make(64);
  std::array<uint32_t, 6> groups{};
  for (uint32_t& group : groups) group = make.new_group();
  std::vector<uint32_t> encoded;
  uint32_t a = Maker::kNone;
  uint32_t b = Maker::kNone;
  for (int step = 0; step < kSteps; ++step) {
    a = make.lstm(make.embed(kWidth), a, kWidth, groups[0]);
    b = make.lstm(a, b, kWidth, groups[1]);
    encoded.push_back(b);
  }
  const uint32_t memory = make.concat(encoded);
  for (int step = 0; step < kSteps; ++step) {
    a = make.lstm(make.embed(kWidth), a, kWidth, groups[2]);
    b = make.lstm(a, b, kWidth, groups[3]);
    const uint32_t attended = make.attend(b, memory, groups[4]);
    make.softmax(make.shared_dense(attended, 32000, groups[5]));
  }
  return make.take();
}

const std::vector<NamedNetwork>& networks() {
  static const std::vector<NamedNetwork> kNetworks = {{"AlexNet", alexnet},
                                                      {"ResNet-101", resnet101},
                                                      {"Inception-v3", inception_v3},
                                                      {"RNNLM", rnnlm},
                                                      {"NMT", nmt}};
  return kNetworks;
}

Result<Topology> cluster(std::string_view cards, const std::string& card, int num_devices) {
  constexpr int kPerNode = 4;
  const auto all = nlohmann::json::parse(cards, nullptr, false);
  if (!all.is_object() || !all.contains(card)) {
    return invalid_argument("cards.json has no card '" + card + "'");
  }
  const auto& spec = all[card];
  const auto& within = spec["within_node"];
  const auto& between = spec["between_nodes"];
  const auto name_of = [](int i) {
    return "gpu" + std::to_string(i / kPerNode) + "." + std::to_string(i % kPerNode);
  };
  TopologySpec topology;
  for (int i = 0; i < num_devices; ++i) {
    topology.devices.push_back({.name = name_of(i),
                                .flops = spec["flops"],
                                .memory_rate = spec["memory_rate"],
                                .launch = spec["launch"],
                                .memory_bytes = spec["memory_bytes"]});
  }
  for (int from = 0; from < num_devices; ++from) {
    for (int to = 0; to < num_devices; ++to) {
      if (from == to) continue;
      const bool is_within = from / kPerNode == to / kPerNode;
      LinkSpec link{.from = name_of(from),
                    .to = name_of(to),
                    .bandwidth = (is_within ? within : between)["bandwidth"],
                    .latency = (is_within ? within : between)["latency"]};
      if (!is_within) link.channel = "link:node" + std::to_string(from / kPerNode) + ">network";
      if (is_within && within["is_shared"]) link.channel = "link:" + link.from + ">bus";
      topology.links.push_back(std::move(link));
    }
  }
  return Topology::create(std::move(topology));
}

}  // namespace eddy
