// A network of two layers trained by several ranks, each with its share of the samples.
//
//   mpirun -n 4 training [TRACE]
//
// Shows: the gradient of a graph (graph/differentiate) with communication added to it. Each
// parameter's gradient is averaged over all ranks as soon as the backward pass has made it, on a
// channel of its own, while what is left of that pass goes on: the last layer's first. Ranks have
// the same parameters at the start and the same averages in each step, so they have the same
// afterwards. The losses are those of one rank with all samples, but for rounding. Rank 0 writes a
// trace of the last step to the file TRACE, where averages lie beside products.
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "examples/report.h"
#include "graph/base/random.h"
#include "graph/compile/copy_graph.h"
#include "graph/differentiate/differentiate.h"
#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/api/session.h"
#include "runtime/mpi/mpi_transport.h"
#include "runtime/net/world.h"
#include "runtime/trace/trace_recorder.h"

namespace eddy {
namespace {

constexpr int64_t kSamples = 64;
constexpr int64_t kInputs = 16;
constexpr int64_t kHidden = 32;
constexpr int kSteps = 20;
constexpr double kRate = 0.3;

struct Parameter {
  const char* name;
  Dims dims;
};
const Parameter kParameters[] = {
    {"w1", {kInputs, kHidden}}, {"b1", {kHidden}}, {"w2", {kHidden, 1}}, {"b2", {1}}};

ValueType doubles(const Dims& dims) { return tensor_type(ElementType::kDouble, dims); }

// The mean square of what the network of these samples has wrong.
Result<Graph> forward(const Library& library, int64_t num_samples) {
  GraphBuilder b(library.ops(), "training");
  const Value x = b.input("x", doubles({num_samples, kInputs}));
  const Value wanted = b.input("wanted", doubles({num_samples, 1}));
  std::vector<Value> p;
  for (const Parameter& each : kParameters) p.push_back(b.input(each.name, doubles(each.dims)));
  const auto layer = [&](const std::string& name, Value in, Value w, Value bias) {
    return b.op("Add", {b.op("MatMul", {in, w}, {}, {.name = name}), bias});
  };
  const Value hidden = b.op("Tanh", {layer("layer1", x, p[0], p[1])});
  const Value wrong = b.op("Sub", {layer("layer2", hidden, p[2], p[3]), wanted});
  b.output("loss", b.op("ReduceMean", {b.op("Mul", {wrong, wrong})}, {{"keepdims", int64_t{0}}}));
  return b.finish();
}

// The graph of a gradient, whose outputs are averaged over all ranks; then a step against each.
class Averaging : public GraphCopier {
 public:
  Averaging(const Graph& source, GraphBuilder& builder, int64_t num_ranks)
      : GraphCopier(source, builder), num_ranks_(num_ranks) {}

  void run(const GradientReport& report) {
    for (const ValueId id : source_.inputs()) {
      define(id, builder_.input(source_.value(id).name, input_type(source_.value(id))));
    }
    nodes(Graph::kRoot);
    builder_.output("loss", average(source_.outputs()[0], 0, "loss"));
    for (size_t i = 0; i < report.gradients.size(); ++i) {
      const std::string& name = report.gradients[i].parameter;
      const Value gradient =
          average(source_.outputs()[i + 1], static_cast<int64_t>(i + 1), name + "_average");
      const Value change = builder_.op("Mul", {gradient, builder_.scalar(kRate)});
      builder_.output(name + ".next", builder_.op("Sub", {value(parameter(name)), change}));
    }
  }

 private:
  Value average(ValueId own, int64_t channel, const std::string& name) {
    return builder_.op(
        "AllReduce", {value(own)},
        {{"reduction", std::string("average")}, {"size", num_ranks_}, {"channel", channel}},
        {.name = name, .domain = "eddy"});
  }
  ValueId parameter(const std::string& name) const {
    for (const ValueId id : source_.inputs()) {
      if (source_.value(id).name == name) return id;
    }
    return {};
  }

  const int64_t num_ranks_;
};

Result<Graph> training_step(const Library& library, int64_t num_samples, int64_t num_ranks) {
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  EDDY_ASSIGN_OR_RETURN(Graph graph, forward(library, num_samples));
  DifferentiateOptions options{.loss = "loss"};
  for (const Parameter& each : kParameters) options.wrt.emplace_back(each.name);
  EDDY_ASSIGN_OR_RETURN(GradientGraph gradient,
                        differentiate(std::move(graph), library.ops(), rules, options));
  GraphBuilder builder(library.ops(), gradient.graph.name());
  Averaging(gradient.graph, builder, num_ranks).run(gradient.report);
  builder.adopt_blobs_of(std::move(gradient.graph));
  return builder.finish();
}

std::vector<double> draw(Random& random, size_t count, double scale) {
  std::vector<double> values(count);
  for (double& value : values) value = (random.uniform() * 2 - 1) * scale;
  return values;
}

Tensor tensor(const Dims& dims, const std::vector<double>& values) {
  return Tensor::of(dims, std::span<const double>(values));
}

// All samples, the same on every rank, of which each takes its own.
NamedTensors samples_of(uint32_t rank, int64_t count) {
  Random random(5);
  const std::vector<double> all = draw(random, static_cast<size_t>(kSamples * kInputs), 1);
  std::vector<double> x;
  std::vector<double> wanted;
  for (int64_t s = rank * count; s < (rank + 1) * count; ++s) {
    const auto first = all.begin() + s * kInputs;
    x.insert(x.end(), first, first + kInputs);
    wanted.push_back(std::sin(3 * first[0]) * first[1]);
  }
  return {{"x", tensor({count, kInputs}, x)}, {"wanted", tensor({count, 1}, wanted)}};
}

NamedTensors first_parameters() {
  Random random(6);
  NamedTensors parameters;
  for (const Parameter& each : kParameters) {
    size_t count = 1;
    for (const int64_t dim : each.dims) count *= static_cast<size_t>(dim);
    parameters.emplace_back(each.name, tensor(each.dims, draw(random, count, 0.4)));
  }
  return parameters;
}

Status train(Session& session, const World& world, int64_t count, const std::string& trace_file) {
  const NamedTensors samples = samples_of(world.rank(), count);
  NamedTensors parameters = first_parameters();
  std::optional<TraceRecorder> trace;
  for (int step = 0; step < kSteps; ++step) {
    NamedTensors inputs = samples;
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    RunOptions options;
    if (step + 1 == kSteps && world.rank() == 0 && !trace_file.empty()) {
      options.trace_or_null = &trace.emplace();
    }
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session.run(inputs, options));
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].second = outputs[i + 1].second;
    if (world.rank() > 0 || (step % 5 != 0 && step + 1 < kSteps)) continue;
    std::printf("step %d: loss %.9f\n", step, outputs[0].second.values<double>()[0]);
  }
  return trace ? trace->write_json(trace_file) : Status::ok();
}

Status run(const std::string& trace_file) {
  EDDY_ASSIGN_OR_RETURN(auto transport, open_mpi_transport({}));
  const std::shared_ptr<World> world = World::open(std::move(transport));
  const auto num_ranks = static_cast<int64_t>(world->num_ranks());
  if (kSamples % num_ranks != 0) {
    return invalid_argument("the 64 samples can't be shared evenly by " +
                            std::to_string(num_ranks) + " ranks; take 1, 2, 4, ... 64");
  }
  const int64_t count = kSamples / num_ranks;
  const Library library;
  SessionOptions options;
  options.ranks.world = world;
  EDDY_ASSIGN_OR_RETURN(Graph graph, training_step(library, count, num_ranks));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), options));
  return train(*session, *world, count, trace_file);
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) { return eddy::report(eddy::run(argc > 1 ? argv[1] : "")); }
