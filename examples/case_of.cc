// Case-of: one of three computations, picked by a number at run time.
//
// Shows: case_of with a selector, and what happens to a selector that has no region: here the
// input is passed through. Regions that are not picked issue nothing.
#include <cstdio>

#include "examples/report.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

Result<Graph> build(const Library& library) {
  GraphBuilder b(library.ops());
  const Value which = b.input("which", tensor_type(ElementType::kInt64, {}));
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {3}));
  const CaseBody regions[] = {
      [&] { return std::vector<Value>{b.op("Neg", {x})}; },
      [&] {
        return std::vector<Value>{b.op("Mul", {x, x})};
      },
      [&] {
        return std::vector<Value>{b.op("ReduceSum", {x}, {{"keepdims", 0}})};
      },
  };
  const auto y = b.case_of({.name = "choose", .selector = which, .pass_through = {x}}, regions);
  b.output("y", y[0]);  // float of any shape: a vector of 3 or a scalar
  return b.finish();
}

Status run() {
  Library library;
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(library));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), {}));
  const Tensor x = Tensor::of<float>({3}, {1, 2, 3});
  const char* const meanings[] = {"negated", "squared", "summed", "no such region"};
  for (int64_t which = 0; which < 4; ++which) {
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs,
                          session->run({{"which", Tensor::scalar(which)}, {"x", x}}));
    std::printf("%lld, %s:", static_cast<long long>(which), meanings[which]);
    for (float value : outputs[0].second.values<float>()) std::printf(" %g", value);
    std::printf("\n");
  }
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
