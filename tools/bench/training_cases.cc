#include "tools/bench/training_cases.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "examples/dynamic_models/adaptive_time.h"
#include "examples/dynamic_models/nas_rnn.h"
#include "examples/dynamic_models/seq2seq.h"
#include "examples/dynamic_models/tree.h"
#include "graph/base/random.h"
#include "graph/compile/copy_graph.h"

namespace eddy {
namespace {

Tensor random_tensor(const Dims& dims, Random& random, double scale) {
  std::vector<float> numbers(static_cast<size_t>(*dims.count()));
  for (float& number : numbers) {
    number = static_cast<float>((random.uniform() * 2 - 1) * scale);
  }
  return Tensor::copy_of({numbers.data(), dims.data(), dims.rank(), ElementType::kFloat});
}

// Names, sizes and numbers of one network.
class Network {
 public:
  explicit Network(const Library& library) : b(library.ops()) {}

  Value input(const std::string& name, const Dims& dims) {
    inputs.emplace_back(name, random_tensor(dims, random_, 1));
    return b.input(name, tensor_type(ElementType::kFloat, dims));
  }
  // Uniform, as deep networks begin: 1 / sqrt(what one output adds up).
  Value weights(const std::string& name, const Dims& dims, int64_t terms) {
    const Tensor made = random_tensor(dims, random_, 1 / std::sqrt(static_cast<double>(terms)));
    return b.constant(made.view(), name);
  }
  Value dense(Value x, const std::string& name, int64_t from, int64_t to) {
    const Value product = b.op("MatMul", {x, weights(name + ".w", {from, to}, from)});
    return b.op("Add", {product, weights(name + ".b", {to}, from)});
  }
  Value mean_square(Value x) {
    return b.op("ReduceMean", {b.op("Mul", {x, x})}, {{"keepdims", int64_t{0}}});
  }
  Result<TrainingCase> finish(std::string name, Value loss, double units, bool is_network) {
    b.output("loss", loss);
    EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
    TrainingCase made{std::move(name), std::move(graph), std::move(inputs)};
    made.units = units;
    made.is_network = is_network;
    return made;
  }

  GraphBuilder b;
  NamedTensors inputs;

 private:
  Random random_{1};
};

// A model of examples/dynamic_models with a loss: the means of squares of some outputs.
class WithLoss : public GraphCopier {
 public:
  // Weights are added once, before any region, which the builder may make anew.
  WithLoss(const Graph& source, GraphBuilder& builder) : GraphCopier(source, builder) {
    for (uint32_t v = 0; v < source.num_values(); ++v) {
      const ValueInfo& info = source.value(ValueId(v));
      if (info.origin != ValueOrigin::kConstant || info.name.empty()) continue;
      const auto [at, is_new] = weights_.try_emplace(info.name);
      if (is_new) at->second = builder.constant(source.constant(info.constant).view(), info.name);
    }
  }

  void run_with_loss(const std::vector<std::string>& outputs) {
    run();
    Value loss;
    for (size_t i = 0; i < source_.outputs().size(); ++i) {
      if (std::ranges::find(outputs, source_.output_names()[i]) == outputs.end()) continue;
      const Value y = value(source_.outputs()[i]);
      const Value mean =
          builder_.op("ReduceMean", {builder_.op("Mul", {y, y})}, {{"keepdims", int64_t{0}}});
      loss = loss.is_none() ? mean : builder_.op("Add", {loss, mean});
    }
    builder_.output("squares", loss);
  }

 private:
  Value value(ValueId id) override {
    if (id.is_none()) return {};
    const ValueInfo& info = source_.value(id);
    const auto at =
        info.origin == ValueOrigin::kConstant ? weights_.find(info.name) : weights_.end();
    return at == weights_.end() ? GraphCopier::value(id) : at->second;
  }

  std::unordered_map<std::string, Value> weights_;
};

struct DynamicCase {
  dynamic::Model model;
  std::vector<std::string> losses, wrt;
  double units = 1;
  std::string counted = {};
};

std::optional<DynamicCase> find_dynamic(const std::string& name, int64_t batch) {
  if (name == "adaptive_time") {
    return DynamicCase{dynamic::make_adaptive_time({.batch = batch}),
                       {"rows"},
                       {"cell", "bias", "halt", "halt_bias"},
                       1,
                       "total"};
  }
  if (name == "nas_rnn") {
    const dynamic::NasRnnSize size{.batch = batch};
    return DynamicCase{
        dynamic::make_nas_rnn(size), {"h"}, {"from_x", "from_h"}, static_cast<double>(size.steps)};
  }
  if (name == "seq2seq") {
    return DynamicCase{dynamic::make_seq2seq({.batch = batch}),
                       {"h"},
                       {"embedding", "read", "read_bias", "write", "write_bias"}};
  }
  if (name != "tree") return std::nullopt;
  return DynamicCase{dynamic::make_tree({.batch = batch}),
                     {"rows", "loss"},
                     {"encode", "encode_bias", "decode", "decode_bias"}};
}

std::vector<Value> counted_loop(GraphBuilder& b, const std::string& name, int64_t trips,
                                std::vector<Value> initial, const WhileAfter& after) {
  return b.while_loop(
      {.name = name, .initial = std::move(initial), .trip_limit = b.scalar(trips)},
      [&](Value, ValueSpan carried) {
        return WhileTest{b.scalar(true), {carried.begin(), carried.end()}};
      },
      after);
}

}  // namespace

Result<TrainingCase> power_case(const Library& library, int64_t trips) {
  Network n(library);
  const double w = 0.99, limit = std::pow(w, static_cast<double>(trips) - 0.5);
  const auto scalar = [&](const char* name, double value) {
    n.inputs.emplace_back(name, Tensor::scalar(static_cast<float>(value)));
    return n.b.input(name, tensor_type(ElementType::kFloat, {}));
  };
  const Value z = scalar("z", 1), factor = scalar("w", w), least = scalar("c", limit);
  const auto made = n.b.while_loop(
      {.name = "power", .initial = {z}},
      [&](Value, ValueSpan c) {
        return WhileTest{n.b.op("Greater", {c[0], least}), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{n.b.op("Mul", {f[0], factor})};
      });
  return n.finish("power", made[0], static_cast<double>(trips), false);
}

Result<TrainingCase> tanh_case(const Library& library, int64_t trips) {
  Network n(library);
  const Value h = n.input("h", {1, 16}), x = n.input("x", {1, 16}), w = n.input("w", {16, 16});
  const auto made = counted_loop(n.b, "tanh", trips, {h}, [&](Value, ValueSpan f) {
    const Value product = n.b.op("MatMul", {f[0], w});
    return std::vector<Value>{n.b.op("Add", {n.b.op("Tanh", {product}), x})};
  });
  return n.finish("tanh", n.mean_square(made[0]), static_cast<double>(trips), false);
}

Result<TrainingCase> nested_case(const Library& library, int64_t trips) {
  Network n(library);
  const Value z = n.input("z", {}), w = n.input("w", {});
  const auto made = counted_loop(n.b, "outer", trips, {z}, [&](Value, ValueSpan f) {
    const auto inner = counted_loop(n.b, "inner", trips, {f[0]}, [&](Value, ValueSpan g) {
      return std::vector<Value>{n.b.op("Mul", {g[0], w})};
    });
    return std::vector<Value>{n.b.op("Add", {inner[0], z})};
  });
  const auto inner_trips = static_cast<double>(trips) * static_cast<double>(trips);
  return n.finish("nested", made[0], inner_trips, false);
}

Result<TrainingCase> mlp_case(const Library& library) {
  Network n(library);
  Value x = n.input("x", {64, 784});
  x = n.b.op("Relu", {n.dense(x, "first", 784, 512)});
  x = n.b.op("Relu", {n.dense(x, "second", 512, 512)});
  return n.finish("mlp", n.mean_square(n.dense(x, "last", 512, 10)), 1, true);
}

Result<TrainingCase> cnn_case(const Library& library) {
  Network n(library);
  Value x = n.input("x", {32, 1, 28, 28});
  const auto layer = [&](const std::string& name, int64_t from, int64_t to) {
    const Attributes window = {{"kernel_shape", std::vector<int64_t>{2, 2}},
                               {"strides", std::vector<int64_t>{2, 2}}};
    x = n.b.op("Conv",
               {x, n.weights(name + ".w", {to, from, 5, 5}, from * 25),
                n.weights(name + ".b", {to}, from * 25)},
               {{"pads", std::vector<int64_t>{2, 2, 2, 2}}});
    x = n.b.op("MaxPool", {n.b.op("Relu", {x})}, window);
  };
  layer("first", 1, 32);
  layer("second", 32, 64);
  x = n.b.op("Reshape", {x, n.b.int64s({32, 3136})});
  x = n.b.op("Relu", {n.dense(x, "third", 3136, 256)});
  return n.finish("cnn", n.mean_square(n.dense(x, "last", 256, 10)), 1, true);
}

Result<TrainingCase> cells_case(const Library& library) {
  constexpr int64_t kSteps = 64, kBatch = 16, kWidth = 256;
  Network n(library);
  const Value x = n.input("x", {kSteps, kBatch, kWidth});
  const Value h0 = n.input("h", {kBatch, kWidth}), c0 = n.input("c", {kBatch, kWidth});
  const Value w = n.weights("w", {kWidth, 4 * kWidth}, kWidth);
  const Value r = n.weights("r", {kWidth, 4 * kWidth}, kWidth);
  const Value bias = n.weights("b", {4 * kWidth}, kWidth);
  const auto made = counted_loop(n.b, "cells", kSteps, {h0, c0}, [&](Value i, ValueSpan f) {
    GraphBuilder& b = n.b;
    const Value row = b.op("Gather", {x, i}, {{"axis", int64_t{0}}});
    const Value sum =
        b.op("Add", {b.op("Add", {b.op("MatMul", {row, w}), b.op("MatMul", {f[0], r})}), bias});
    const auto gates =
        b.ops("Split", std::vector<Value>{sum}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{4}}},
              {.num_outputs = 4});
    const Value kept = b.op("Mul", {b.op("Sigmoid", {gates[1]}), f[1]});
    const Value fresh = b.op("Mul", {b.op("Sigmoid", {gates[0]}), b.op("Tanh", {gates[3]})});
    const Value c = b.op("Add", {kept, fresh});
    return std::vector<Value>{b.op("Mul", {b.op("Sigmoid", {gates[2]}), b.op("Tanh", {c})}), c};
  });
  return n.finish("cells", n.mean_square(made[0]), 1, true);
}

Result<TrainingCase> lstm_case(const Library& library) {
  constexpr int64_t kSteps = 64, kBatch = 16, kWidth = 256;
  Network n(library);
  const Value x = n.input("x", {kSteps, kBatch, kWidth});
  const Value w = n.weights("w", {1, 4 * kWidth, kWidth}, kWidth);
  const Value r = n.weights("r", {1, 4 * kWidth, kWidth}, kWidth);
  const Value bias = n.weights("b", {1, 8 * kWidth}, kWidth);
  const auto made = n.b.ops("LSTM", std::vector<Value>{x, w, r, bias}, {{"hidden_size", kWidth}},
                            {.num_outputs = 2});
  return n.finish("lstm", n.mean_square(made[1]), 1, true);
}

Result<TrainingCase> scan_case(const Library& library, int64_t steps) {
  Network n(library);
  const Value h = n.input("h", {1, 16}), w = n.input("w", {16, 16});
  const Value x = n.input("x", {steps, 1, 16});
  const auto made = n.b.while_loop(
      {.name = "scan", .initial = {h}, .trip_limit = n.b.scalar(steps), .num_scan_outputs = 1},
      [&](Value, ValueSpan carried) {
        return WhileTest{n.b.scalar(true), {carried.begin(), carried.end()}};
      },
      [&](Value i, ValueSpan f) {
        const Value row = n.b.op("Gather", {x, i}, {{"axis", int64_t{0}}});
        const Value next = n.b.op("Tanh", {n.b.op("Add", {row, n.b.op("MatMul", {f[0], w})})});
        return std::vector<Value>{next, next};
      });
  return n.finish("scan", n.mean_square(made[1]), static_cast<double>(steps), false);
}

Result<TrainingCase> dynamic_case(const Library& library, const std::string& name) {
  const size_t space = name.find(" b");
  EDDY_CHECK(space != std::string::npos) << name << " has no batch";
  auto found = find_dynamic(name.substr(0, space), std::stoll(name.substr(space + 2)));
  EDDY_CHECK(found.has_value()) << name << " is no case";
  EDDY_ASSIGN_OR_RETURN(Graph source, found->model.build(library.ops()));
  GraphBuilder builder(library.ops(), source.name());
  WithLoss(source, builder).run_with_loss(found->losses);
  builder.adopt_blobs_of(std::move(source));
  EDDY_ASSIGN_OR_RETURN(Graph graph, builder.finish());
  TrainingCase made{name, std::move(graph), {}};
  for (const auto& [input, value] : found->model.inputs) {
    made.inputs.emplace_back(input, Tensor::copy_of(value.view()));
  }
  made.loss = "squares";
  made.units = found->units;
  made.is_network = true;
  made.wrt = std::move(found->wrt);
  made.counted = std::move(found->counted);
  return made;
}

Result<Graph> long_chain(const Library& library, int64_t nodes) {
  Network n(library);
  const Value start = n.input("x", {4});
  Value x = start;
  for (int64_t i = 0; i + 1 < nodes; ++i)
    x = n.b.op(i % 2 == 0 ? "Tanh" : "Mul",
               i % 2 == 0 ? std::vector<Value>{x} : std::vector<Value>{x, start});
  EDDY_ASSIGN_OR_RETURN(TrainingCase made, n.finish("chain", n.mean_square(x), 1, false));
  return std::move(made.graph);
}

}  // namespace eddy
