// Newton: square roots by Newton's method, in a loop that stops when the error is small.
//
// Shows: while_loop. `before` decides from the carried values whether to go on and forwards them;
// `after` makes the next ones. How often it runs is decided by the data, at run time.
#include <cstdio>

#include "examples/report.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

Result<Graph> build(const Library& library) {
  GraphBuilder b(library.ops());
  const Value a = b.input("a", tensor_type(ElementType::kDouble, {}));
  const Value tolerance = b.input("tolerance", tensor_type(ElementType::kDouble, {}));
  const auto root = b.while_loop(
      {.name = "newton", .initial = {a}},
      [&](Value, ValueSpan x) {
        const Value error = b.op("Abs", {b.op("Sub", {b.op("Mul", {x[0], x[0]}), a})});
        return WhileTest{b.op("Greater", {error, tolerance}), {x[0]}};
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
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(library));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), {}));
  for (const double a : {1.0, 2.0, 100.0, 1e6}) {
    EDDY_ASSIGN_OR_RETURN(
        const NamedTensors outputs,
        session->run({{"a", Tensor::scalar(a)}, {"tolerance", Tensor::scalar(1e-6)}}));
    const LoopReport loop = session->loop_reports().at(0);
    std::printf("sqrt(%g) = %.6f after %lld iterations of %s\n", a,
                outputs[0].second.values<double>()[0], static_cast<long long>(loop.iterations),
                loop.path.c_str());
  }
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
