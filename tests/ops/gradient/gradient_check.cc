#include "tests/ops/gradient/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"
#include "ops/schema/standard.h"

namespace eddy::testing {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-6;

ValueType declared(GraphBuilder& b, const TestTensor& tensor, Shapes shapes,
                   const std::string& name) {
  TensorType type = tensor.type();
  if (shapes == Shapes::kUnranked) return TensorType(type.element);
  for (int axis = 0; axis < type.dims.rank() && shapes != Shapes::kStatic; ++axis) {
    type.dims[axis] =
        shapes == Shapes::kUnknown ? kUnknownDim : b.symbol(name + "_" + std::to_string(axis));
  }
  return type;
}

const char* text_of(Shapes shapes) {
  switch (shapes) {
    case Shapes::kStatic:
      return "static";
    case Shapes::kSymbolic:
      return "symbolic";
    case Shapes::kUnknown:
      return "unknown";
    case Shapes::kUnranked:
      return "unranked";
  }
  return "";
}

// Adds sum(value * weights), with the weights as one more input.
Value add_weighted(GraphBuilder& b, Value sum, Value value, const TestTensor& weights,
                   const std::string& name, NamedValues& inputs) {
  inputs[name] = weights;
  const Value product = b.op("Mul", {value, b.input(name, ValueType(weights.type()))});
  const Value scalar = b.op("ReduceSum", {product}, {{"keepdims", int64_t{0}}});
  // Also where the rank is not known.
  const Value part = b.op("Reshape", {scalar, b.int64s({})});
  return sum.is_none() ? part : b.op("Add", {sum, part});
}

double weighted(const TestValue& value, const TestValue* weights) {
  const TensorView view = value.tensor().view();
  double sum = 0;
  for (int64_t i = 0; i < view.count(); ++i) {
    sum += number_at(view, i) * (weights == nullptr ? 1 : number_at(weights->tensor().view(), i));
  }
  return sum;
}

}  // namespace

const OpTable& gradient_ops() {
  static const OpTable* const table = [] {
    auto* made = new OpTable();
    const Status status = add_standard_schemas(*made);
    EDDY_CHECK(status.is_ok()) << status.to_string();
    return made;
  }();
  return *table;
}

const GradientTable& gradient_rules() {
  static const GradientTable* const table = [] {
    auto* made = new GradientTable();
    const Status status = add_standard_gradients(*made);
    EDDY_CHECK(status.is_ok()) << status.to_string();
    return made;
  }();
  return *table;
}

Result<LossGraph> make_loss(const OpCall& call, Shapes shapes, uint64_t seed) {
  EDDY_ASSIGN_OR_RETURN(const auto results, run_op(call, KernelSet::kReference));
  GraphBuilder b(gradient_ops());
  NamedValues inputs;
  std::vector<Value> values;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TestValue& given = call.inputs[i];
    const std::string name = "x" + std::to_string(i);
    if (given.kind == TestValue::Kind::kOmitted) {
      values.push_back({});
    } else if ((call.constant_inputs >> i) & 1) {
      values.push_back(b.constant(given.tensor().view(), name));
    } else {
      values.push_back(b.input(name, declared(b, given.tensor(), shapes, name)));
      inputs[name] = given;
    }
  }
  OpOptions options;
  options.name = "node";
  options.domain = call.domain;
  options.opset_version = call.opset;
  options.num_outputs = static_cast<int>(call.num_outputs);
  const std::vector<Value> outputs = b.ops(call.op, values, call.attributes, options);
  EDDY_RETURN_IF_ERROR(b.status());
  Random random(seed);
  Value loss;
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (results[o].element != ElementType::kDouble) continue;
    const TestTensor weights =
        TestTensor::random(ElementType::kDouble, results[o].tensor().dims(), random);
    loss = add_weighted(b, loss, outputs[o], weights, "w" + std::to_string(o), inputs);
  }
  b.output("loss", loss);
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  return LossGraph{std::move(graph), std::move(inputs)};
}

std::string compare_with_differences(const GradientGraph& gradient, const NamedValues& inputs,
                                     const std::string& output, const std::string& seed,
                                     double tolerance) {
  const auto base = run_graph(gradient.graph, inputs);
  if (!base.is_ok()) return base.status().to_string();
  const auto value_at = [&](const NamedValues& at) -> Result<double> {
    EDDY_ASSIGN_OR_RETURN(const GraphRun run, run_graph(gradient.graph, at));
    if (run.decisions != base->decisions) return run_failed("another path is taken");
    return weighted(run.outputs.at(output), seed.empty() ? nullptr : &at.at(seed));
  };
  for (const GradientOutput& of : gradient.report.gradients) {
    const TestTensor x = inputs.at(of.parameter).tensor();
    const TestTensor found = base->outputs.at(of.output).tensor();
    if (!(found.dims() == x.dims())) {
      return of.output + " has the shape " + to_string(found.dims()) + ", not " +
             to_string(x.dims());
    }
    for (int64_t i = 0; i < x.count(); ++i) {
      double sides[2] = {};
      for (const int side : {0, 1}) {
        NamedValues moved = inputs;
        const TestTensor copy = x.copy();
        copy.view().mutable_as<double>()[i] += side == 0 ? -kStep : kStep;
        moved[of.parameter] = copy;
        const auto value = value_at(moved);
        if (!value.is_ok()) return value.status().to_string();
        sides[side] = *value;
      }
      const double expected = (sides[1] - sides[0]) / (2 * kStep);
      const double made = number_at(found.view(), i);
      if (!(std::abs(made - expected) <= tolerance * std::max(1.0, std::abs(expected)))) {
        return of.output + "[" + std::to_string(i) + "] is " + std::to_string(made) +
               ", differences say " + std::to_string(expected);
      }
    }
  }
  return "";
}

// Nodes that make floating-point values of such have rules, too, or are flat: what rules emit can
// be differentiated.
void expect_closed(const Graph& graph) {
  const auto is_float = [&](ValueId id) {
    return !id.is_none() && kFloatTypes.contains(graph.value(id).type.tensor.element);
  };
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec || !std::ranges::any_of(node.inputs, is_float) ||
        !std::ranges::any_of(node.outputs, is_float)) {
      continue;
    }
    EXPECT_NE(gradient_rules().find_or_null(node.op->domain, node.op->name, node.opset_version),
              nullptr)
        << node.op->name << " at " << graph.path(NodeId(n)) << " has no rule";
  }
}

void expect_gradient(const OpCall& call, uint64_t seed) {
  for (const Shapes shapes :
       {Shapes::kStatic, Shapes::kSymbolic, Shapes::kUnknown, Shapes::kUnranked}) {
    SCOPED_TRACE(call.op + " of opset " + std::to_string(call.opset) + ", shapes " +
                 text_of(shapes) + ", seed " + std::to_string(seed));
    auto loss = make_loss(call, shapes, seed);
    ASSERT_TRUE(loss.is_ok()) << loss.status().to_string();
    const auto gradient =
        differentiate(std::move(loss->graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
    if (shapes == Shapes::kUnranked && !gradient.is_ok()) {
      EXPECT_NE(gradient.status().message().find("rank"), std::string::npos)
          << gradient.status().to_string();
      continue;
    }
    const bool needs_sizes =
        !gradient.is_ok() && shapes != Shapes::kStatic &&
        gradient.status().message().find("declare its shape") != std::string::npos;
    if (needs_sizes) continue;
    ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
    expect_closed(gradient->graph);
    EXPECT_EQ(compare_with_differences(*gradient, loss->inputs, "loss", "", kTolerance), "");
  }
}

void expect_second_order(const OpCall& call, uint64_t seed) {
  for (const Shapes shapes : {Shapes::kStatic, Shapes::kUnknown}) {
    SCOPED_TRACE("twice: " + call.op + ", shapes " + text_of(shapes) + ", seed " +
                 std::to_string(seed));
    auto loss = make_loss(call, shapes, seed);
    ASSERT_TRUE(loss.is_ok()) << loss.status().to_string();
    auto first =
        differentiate(std::move(loss->graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
    ASSERT_TRUE(first.is_ok()) << first.status().to_string();
    Random random(seed + 1);
    for (const GradientOutput& of : first->report.gradients) {
      if (of.parameter[0] != 'x') continue;
      auto second = differentiate(first->graph.copy(), gradient_ops(), gradient_rules(),
                                  {.loss = of.output, .seed = "seed", .suffix = ".grad2"});
      ASSERT_TRUE(second.is_ok()) << of.output << ": " << second.status().to_string();
      NamedValues inputs = loss->inputs;
      inputs["seed"] =
          TestTensor::random(ElementType::kDouble, inputs.at(of.parameter).tensor().dims(), random);
      EXPECT_EQ(compare_with_differences(*second, inputs, of.output, "seed", 1e-5), "");
    }
  }
}

}  // namespace eddy::testing
