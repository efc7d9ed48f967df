// Host predicate: a C++ function decides after each iteration whether the loop goes on.
//
// Shows: a named host function and the operator that calls it. The function runs exactly once for
// each decision, in the order of the iterations, and sees read-only views.
#include <cstdio>

#include "examples/report.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

// Halves x while the host function "again?" returns true.
Result<Graph> build(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2}));
  const auto halved = b.while_loop(
      {.name = "halve", .initial = {x}},
      [&](Value iteration, ValueSpan carried) {
        const Value again = b.op("HostPredicate", {iteration, carried[0]}, {{"name", "again?"}},
                                 {.domain = "eddy"});
        return WhileTest{again, {carried[0]}};
      },
      [&](Value, ValueSpan forwarded) {
        return std::vector<Value>{b.op("Mul", {forwarded[0], b.scalar(0.5f)})};
      });
  b.output("halved", halved[0]);
  return b.finish();
}

Status run() {
  Library library;
  int calls = 0;  // decisions of one run come one after another
  EDDY_RETURN_IF_ERROR(library.add_host_function(
      "again?", [&calls](std::span<const TensorView> inputs) -> Result<int64_t> {
        const int64_t iteration = inputs[0].as<int64_t>()[0];
        const float* x = inputs[1].as<float>();
        const bool again = x[0] + x[1] > 1;
        std::printf("after %lld iteration%s: %g + %g, %s\n", static_cast<long long>(iteration),
                    iteration == 1 ? "" : "s", x[0], x[1], again ? "again" : "enough");
        ++calls;
        return again;
      }));
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(library));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), {}));
  EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs,
                        session->run({{"x", Tensor::of<float>({2}, {6, 2})}}));
  const std::span<const float> halved = outputs[0].second.values<float>();
  std::printf("%g %g after %d decisions\n", halved[0], halved[1], calls);
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
