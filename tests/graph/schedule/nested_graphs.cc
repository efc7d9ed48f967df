#include "tests/graph/schedule/nested_graphs.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/base/random.h"

namespace eddy {
namespace {

constexpr int64_t kSizes[] = {8, 40, 40, 200, 1000};

Status infer_size(InferContext& context) {
  for (size_t i = 0; i < context.num_outputs(); ++i) {
    context.set_output(i,
                       tensor_type(ElementType::kFloat, {context.attributes().get_int("size", 1)}));
  }
  return Status::ok();
}
Status infer_same(InferContext& context) {
  context.set_output(0, context.input(0));
  return Status::ok();
}
Status infer_open(InferContext& context) {
  context.set_output(0, tensor_type(ElementType::kFloat, {kUnknownDim}));
  return Status::ok();
}
Status infer_bool(InferContext& context) {
  context.set_output(0, tensor_type(ElementType::kBool, {}));
  return Status::ok();
}
Status infer_view(InferContext& context) {
  const TensorType& type = context.input(0).tensor;
  if (!type.is_ranked) return infer_same(context);
  const int64_t size = type.dims[type.dims.rank() - 1];
  context.set_output(0, type.dims.rank() == 1 ? tensor_type(ElementType::kFloat, {1, size})
                                              : tensor_type(ElementType::kFloat, {size}));
  return Status::ok();
}

OpTable make_ops() {
  const std::vector<FormalInput> any = {{"x", kAllTypes, InputFlag::kVariadic}};
  const std::vector<FormalAttribute> size = {{"size", AttributeKind::kInt, true}};
  OpTable ops;
  const auto add = [&](OpDef def) {
    def.domain = "nested";
    EDDY_CHECK(ops.add(std::move(def)).is_ok()) << "a second definition";
  };
  add({.name = "Make", .inputs = any, .attributes = size, .infer = infer_size});
  add({.name = "Two",
       .inputs = any,
       .min_outputs = 2,
       .max_outputs = 2,
       .attributes = size,
       .infer = infer_size});
  add({.name = "Step", .inputs = {{"x"}, {"y"}}, .infer = infer_same, .in_place_inputs = 3});
  add({.name = "View", .inputs = {{"x"}}, .infer = infer_view, .is_view = true});
  add({.name = "Test", .inputs = any, .infer = infer_bool});
  add({.name = "Grow", .inputs = {{"x"}, {"y"}}, .infer = infer_open, .may_append = true});
  add({.name = "Keep", .inputs = {{"x"}}, .infer = infer_same, .is_value_op = true});
  return ops;
}

class Maker {
 public:
  Maker(uint64_t seed, const NestedGraphOptions& options)
      : random_(seed), options_(options), b_(nested_ops(), "nested") {
    b_.set_opset("nested", 1);
    nodes_left_ = 1 + static_cast<int64_t>(random_.below(options.max_nodes));
    one_in_control_ = 3 + random_.below(8);
  }

  Graph run() {
    for (uint64_t i = 1 + random_.below(3); i > 0; --i) {
      visible_.push_back(b_.input("x" + std::to_string(i), some_type()));
    }
    fill(0);
    b_.output("y", pick());
    if (random_.below(2) == 0) b_.output("z", some_value(some_type()));
    Result<Graph> graph = b_.finish();
    EDDY_CHECK(graph.is_ok()) << graph.status().to_string();
    return std::move(*graph);
  }

 private:
  ValueType some_type() {
    return tensor_type(ElementType::kFloat, {kSizes[random_.below(std::size(kSizes))]});
  }
  // Often a young one.
  Value pick() {
    const size_t window =
        random_.below(2) == 0 ? std::min<size_t>(4, visible_.size()) : visible_.size();
    return visible_[visible_.size() - 1 - random_.below(window)];
  }
  std::vector<Value> pick_some() {
    std::vector<Value> values(1 + random_.below(3));
    for (Value& value : values) value = pick();
    return values;
  }
  Value node(const char* name, const std::vector<Value>& inputs, Attributes attributes = {}) {
    --nodes_left_;
    return b_.op(name, inputs, std::move(attributes), {.domain = "nested", .device = device()});
  }
  std::string device() {
    if (options_.num_devices == 1) return {};
    return nested_devices(options_.num_devices)[random_.below(options_.num_devices)];
  }
  // By value: types that the builder returns move when a node is added.
  Value make(ValueType type) {
    const Dims& dims = type.tensor.dims;
    const Value made = node("Make", pick_some(), {{"size", dims[dims.rank() - 1]}});
    return dims.rank() == 1 ? made : node("View", {made});
  }
  // A visible one of the type, or a new one.
  Value some_value(ValueType type) {
    for (int tries = 0; tries < 6 && random_.below(8) != 0; ++tries) {
      const Value value = pick();
      if (b_.type(value) == type) return value;
    }
    return make(type);
  }
  std::vector<Value> some_values(const std::vector<ValueType>& types) {
    std::vector<Value> values;
    for (const ValueType& type : types) values.push_back(some_value(type));
    return values;
  }
  std::vector<ValueType> some_types() {
    std::vector<ValueType> types(1 + random_.below(3));
    for (ValueType& type : types) type = some_type();
    return types;
  }

  // Adds nodes to the open region; all stay visible.
  void fill(int depth) {
    for (uint64_t n = 1 + random_.below(depth == 0 ? options_.max_nodes : 6);
         n > 0 && nodes_left_ > 0; --n) {
      add(depth);
    }
  }
  // The same, visible inside only; returns values of the types.
  std::vector<Value> body(int depth, ValueSpan parameters, const std::vector<ValueType>& types) {
    const size_t outside = visible_.size();
    visible_.insert(visible_.end(), parameters.begin(), parameters.end());
    if (random_.below(8) != 0) fill(depth);
    std::vector<Value> results = some_values(types);
    visible_.resize(outside);
    return results;
  }

  void add(int depth) {
    if (depth < options_.max_depth && random_.below(one_in_control_) == 0) {
      return random_.below(2) == 0 ? add_loop(depth) : add_branch(depth);
    }
    switch (random_.below(12)) {
      case 0:
      case 1:
        return visible_.push_back(node("View", {pick()}));
      case 2:
      case 3:
      case 4:
      case 5: {
        const Value x = pick();
        return visible_.push_back(
            node("Step", {x, random_.below(2) == 0 ? pick() : some_value(b_.type(x))}));
      }
      case 6:
        if (random_.below(4) == 0) return visible_.push_back(node("Keep", {pick()}));
        if (random_.below(4) == 0) return void(node("Grow", {pick(), pick()}));
        [[fallthrough]];
      case 7: {
        --nodes_left_;
        const auto both = b_.ops("Two", pick_some(), {{"size", some_type().tensor.dims[0]}},
                                 {.domain = "nested", .num_outputs = 2, .device = device()});
        return visible_.insert(visible_.end(), both.begin(), both.end()), void();
      }
      default:
        return visible_.push_back(make(some_type()));
    }
  }

  void add_loop(int depth) {
    --nodes_left_;
    const std::vector<ValueType> carried = some_types();
    std::vector<ValueType> forwarded = random_.below(2) == 0 ? carried : some_types();
    WhileOptions options;
    options.initial = some_values(carried);
    if (random_.below(2) == 0) options.trip_limit = b_.scalar<int64_t>(3);
    options.num_scan_outputs = static_cast<uint32_t>(random_.below(2));
    std::vector<ValueType> next = carried;
    for (uint32_t s = 0; s < options.num_scan_outputs; ++s) next.push_back(some_type());
    const bool forwards_only = random_.below(2) == 0 && forwarded == carried;
    const auto outputs = b_.while_loop(
        options,
        [&](Value, ValueSpan parameters) {
          if (forwards_only) {
            const Value test = node("Test", {parameters[0]});
            return WhileTest{test, {parameters.begin(), parameters.end()}};
          }
          std::vector<Value> results = body(depth + 1, parameters, forwarded);
          return WhileTest{node("Test", {results[0]}), results};
        },
        [&](Value, ValueSpan parameters) { return body(depth + 1, parameters, next); });
    for (const Value output : outputs) {
      if (b_.type(output).tensor.is_static()) visible_.push_back(output);
    }
  }

  void add_branch(int depth) {
    --nodes_left_;
    const std::vector<ValueType> types = some_types();
    CaseOptions options;
    options.selector = node("Test", {pick()});
    if (random_.below(2) == 0) options.pass_through = some_values(types);
    std::vector<CaseBody> bodies(1 + random_.below(3), [&] { return body(depth + 1, {}, types); });
    const auto outputs = b_.case_of(options, bodies);
    for (const Value output : outputs) {
      if (b_.type(output).tensor.is_static()) visible_.push_back(output);
    }
  }

  Random random_;
  const NestedGraphOptions options_;
  GraphBuilder b_;
  std::vector<Value> visible_;
  int64_t nodes_left_ = 0;
  uint64_t one_in_control_ = 4;
};

}  // namespace

const OpTable& nested_ops() {
  static const OpTable ops = make_ops();
  return ops;
}

Graph nested_graph(uint64_t seed, const NestedGraphOptions& options) {
  return Maker(seed, options).run();
}

std::vector<std::string> nested_devices(uint32_t num_devices) {
  std::vector<std::string> names = {"cpu"};
  for (uint32_t d = 1; d < num_devices; ++d) names.push_back("gpu" + std::to_string(d));
  return names;
}

std::vector<uint32_t> nested_value_devices(const Graph& graph,
                                           const std::vector<std::string>& devices) {
  std::vector<uint32_t> result(graph.num_values(), 0);
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const ValueInfo& info = graph.value(ValueId(v));
    if (info.origin != ValueOrigin::kNodeOutput) continue;
    const auto named = std::ranges::find(devices, graph.node(info.producer).device);
    if (named != devices.end()) result[v] = static_cast<uint32_t>(named - devices.begin());
  }
  return result;
}

PlanOptions nested_options(uint64_t seed) {
  constexpr AssignPolicy kPolicies[] = {AssignPolicy::kRank, AssignPolicy::kMatching,
                                        AssignPolicy::kSerial};
  PlanOptions options;
  options.is_auto = false;
  options.policy = kPolicies[seed % 7 == 0 ? 2 : seed % 2];
  options.max_streams = seed % 3 == 0 ? 1 + seed % 5 : 0;
  return options;
}

}  // namespace eddy
