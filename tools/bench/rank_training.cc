#include "tools/bench/rank_training.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/random.h"
#include "graph/compile/copy_graph.h"
#include "graph/differentiate/differentiate.h"
#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"

namespace eddy {
namespace {

constexpr float kRate = 0.001F;

struct Parameter {
  std::string name;
  Dims dims;
};

std::vector<Parameter> parameters() {
  return {{"w1", {784, 512}}, {"b1", {512}},     {"w2", {512, 512}},
          {"b2", {512}},      {"w3", {512, 10}}, {"b3", {10}}};
}

ValueType floats(const Dims& dims) { return tensor_type(ElementType::kFloat, dims); }

Result<Graph> forward(const Library& library, int64_t samples) {
  GraphBuilder b(library.ops(), "training");
  Value x = b.input("x", floats({samples, 784}));
  std::vector<Value> p;
  for (const Parameter& each : parameters()) p.push_back(b.input(each.name, floats(each.dims)));
  for (size_t layer = 0; layer < 3; ++layer) {
    x = b.op("Add", {b.op("MatMul", {x, p[2 * layer]}), p[2 * layer + 1]});
    if (layer < 2) x = b.op("Relu", {x});
  }
  b.output("loss", b.op("ReduceMean", {b.op("Mul", {x, x})}, {{"keepdims", int64_t{0}}}));
  return b.finish();
}

// A step against each gradient, or against the ranks' average of it.
class Step : public GraphCopier {
 public:
  Step(const Graph& source, GraphBuilder& builder, int64_t num_ranks)
      : GraphCopier(source, builder), num_ranks_(num_ranks) {}

  void run(const GradientReport& report) {
    for (const ValueId id : source_.inputs()) {
      define(id, builder_.input(source_.value(id).name, input_type(source_.value(id))));
    }
    nodes(Graph::kRoot);
    builder_.output("loss", value(source_.outputs()[0]));
    for (size_t i = 0; i < report.gradients.size(); ++i) {
      const std::string& name = report.gradients[i].parameter;
      const Value gradient = average(value(source_.outputs()[i + 1]), static_cast<int64_t>(i));
      const Value change = builder_.op("Mul", {gradient, builder_.scalar(kRate)});
      builder_.output(name + ".next", builder_.op("Sub", {value(input(name)), change}));
    }
  }

 private:
  Value average(Value own, int64_t channel) {
    if (num_ranks_ == 1) return own;
    return builder_.op("AllReduce", {own},
                       {{"reduction", std::string("average")},
                        {"order", std::string("any")},
                        {"size", num_ranks_},
                        {"channel", channel}},
                       {.domain = "eddy"});
  }
  ValueId input(const std::string& name) const {
    for (const ValueId id : source_.inputs()) {
      if (source_.value(id).name == name) return id;
    }
    return {};
  }

  const int64_t num_ranks_;
};

Tensor random_tensor(const Dims& dims, Random& random, double scale) {
  std::vector<float> numbers(static_cast<size_t>(*dims.count()));
  for (float& number : numbers) {
    number = static_cast<float>((random.uniform() * 2 - 1) * scale);
  }
  return Tensor::copy_of({numbers.data(), dims.data(), dims.rank(), ElementType::kFloat});
}

}  // namespace

Result<Graph> rank_training_step(const Library& library, int64_t samples, int64_t num_ranks) {
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  EDDY_ASSIGN_OR_RETURN(Graph graph, forward(library, samples));
  DifferentiateOptions options{.loss = "loss"};
  for (const Parameter& each : parameters()) options.wrt.push_back(each.name);
  EDDY_ASSIGN_OR_RETURN(GradientGraph gradient,
                        differentiate(std::move(graph), library.ops(), rules, options));
  GraphBuilder builder(library.ops(), gradient.graph.name());
  Step(gradient.graph, builder, num_ranks).run(gradient.report);
  builder.adopt_blobs_of(std::move(gradient.graph));
  return builder.finish();
}

NamedTensors rank_training_inputs(int64_t samples, uint32_t rank) {
  Random data(7 + rank), start(1);
  NamedTensors inputs = {{"x", random_tensor({samples, 784}, data, 1)}};
  for (const Parameter& each : parameters()) {
    const double terms = each.dims.rank() == 2 ? static_cast<double>(each.dims[0]) : 512;
    inputs.emplace_back(each.name, random_tensor(each.dims, start, 1 / std::sqrt(terms)));
  }
  return inputs;
}

}  // namespace eddy
