// The derivative of a root: Newton's loop, differentiated.
//
// Shows: differentiate. The loop becomes two: forward as before, with what the way back reads kept
// beside it, and backward as often as it went forward. Their trip counts are decided by the data:
// of 1 no step is needed, so there the root is `a` itself, and the derivative of that path is 1.
#include <cstdio>

#include "examples/report.h"
#include "graph/differentiate/differentiate.h"
#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

// root = sqrt(a), by x <- (x + a / x) / 2 until |x x - a| is small.
Result<Graph> build(const Library& library) {
  GraphBuilder b(library.ops());
  const Value a = b.input("a", tensor_type(ElementType::kDouble, {}));
  const auto root = b.while_loop(
      {.name = "newton", .initial = {a}},
      [&](Value, ValueSpan x) {
        const Value error = b.op("Abs", {b.op("Sub", {b.op("Mul", {x[0], x[0]}), a})});
        return WhileTest{b.op("Greater", {error, b.scalar(1e-9)}), {x[0]}};
      },
      [&](Value, ValueSpan x) {
        const Value sum = b.op("Add", {x[0], b.op("Div", {a, x[0]})});
        return std::vector<Value>{b.op("Mul", {sum, b.scalar(0.5)})};
      });
  b.output("root", root[0]);
  return b.finish();
}

Status run() {
  Library library;
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(library));
  EDDY_ASSIGN_OR_RETURN(GradientGraph gradient,
                        differentiate(std::move(graph), library.ops(), rules, {.loss = "root"}));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(gradient.graph), {}));
  for (const double a : {1.0, 2.0, 100.0}) {
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session->run({{"a", Tensor::scalar(a)}}));
    std::printf("sqrt(%g) = %.6f, its derivative %.6f\n", a, outputs[0].second.values<double>()[0],
                outputs[1].second.values<double>()[0]);
  }
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
