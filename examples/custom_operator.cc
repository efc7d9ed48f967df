// Custom operator: a polynomial with given coefficients, as one node.
//
// Shows: an OpDef (formal inputs, attributes, the rule for output types), a bind function that
// reads the attributes once, and a kernel that sees only views.
#include <cstdio>

#include "examples/report.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

struct Coefficients : KernelState {
  std::vector<float> values;  // of the highest power first
};

// The output may be the input's memory (in_place_inputs): x is read before y is written.
bool run_polynomial(const KernelArgs& args) {
  const auto& coefficients = static_cast<const Coefficients&>(*args.state).values;
  const float* x = args.inputs[0].as<float>();
  float* y = args.outputs[0].mutable_as<float>();
  for (int64_t i = 0; i < args.inputs[0].count(); ++i) {
    float sum = 0;
    for (float coefficient : coefficients) sum = sum * x[i] + coefficient;
    y[i] = sum;
  }
  return true;
}

Result<BoundKernel> bind_polynomial(const KernelInit& init) {
  const std::span<const float> given = init.attributes.get_floats("coefficients");
  if (given.empty()) return invalid_argument("a Polynomial needs at least one coefficient");
  auto state = std::make_unique<Coefficients>();
  state->values.assign(given.begin(), given.end());
  return BoundKernel{.run = run_polynomial, .run_value = nullptr, .state = std::move(state)};
}

OpDef polynomial_def() {
  return {.name = "Polynomial",
          .domain = "example",
          .inputs = {{.name = "x", .types = {ElementType::kFloat}}},
          .attributes = {{"coefficients", AttributeKind::kFloats, /*is_required=*/true}},
          .infer =
              [](InferContext& context) {
                context.set_output(0, context.input(0));
                return Status::ok();
              },
          .in_place_inputs = 1};
}

// The logistic map: x := 3.2 x - 3.2 x^2, a hundred times.
Status run() {
  Library library;
  EDDY_RETURN_IF_ERROR(library.add_operator(polynomial_def(), bind_polynomial));
  GraphBuilder b(library.ops());
  const auto x = b.while_loop(
      {.initial = {b.input("x", tensor_type(ElementType::kFloat, {2}))},
       .trip_limit = b.scalar<int64_t>(100)},
      [&](Value, ValueSpan carried) {
        return WhileTest{b.scalar(true), {carried[0]}};
      },
      [&](Value, ValueSpan forwarded) {
        return std::vector<Value>{b.op("Polynomial", {forwarded[0]},
                                       {{"coefficients", std::vector<float>{-3.2f, 3.2f, 0}}},
                                       {.domain = "example"})};
      });
  b.output("x", x[0]);
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), {}));
  EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs,
                        session->run({{"x", Tensor::of<float>({2}, {0.1f, 0.5f})}}));
  for (float value : outputs[0].second.values<float>()) std::printf("%.4f\n", value);
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
