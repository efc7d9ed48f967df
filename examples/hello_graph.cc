// Hello, graph: a dense layer, built once and run for batches of any size.
//
// Shows: a library, a builder, an input with a symbolic dimension, a session, two runs.
#include <cstdio>

#include "examples/report.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

// y = relu(x * weights + bias), with two features in and two out.
Result<Graph> build(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("batch"), 2}));
  const Value weights = b.tensor<float>({2, 2}, {1, -1, 2, 3});
  const Value sum = b.op("Add", {b.op("MatMul", {x, weights}), b.vector<float>({0.5f, -0.5f})});
  b.output("y", b.op("Relu", {sum}));
  return b.finish();
}

void print_rows(const Tensor& tensor) {
  const int64_t columns = tensor.dims()[1];
  for (int64_t row = 0; row < tensor.dims()[0]; ++row) {
    const float* values = tensor.values<float>().data() + row * columns;
    std::printf("  %g %g\n", values[0], values[1]);
  }
}

Status run() {
  Library library;
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(library));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), {}));
  std::printf("%s: %s\n", session->inputs()[0].name.c_str(), session->inputs()[0].text.c_str());

  const Tensor one = Tensor::of<float>({1, 2}, {1, 2});
  const Tensor three = Tensor::of<float>({3, 2}, {1, 0, 0, 1, -1, -1});
  for (const Tensor& x : {one, three}) {
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session->run({{"x", x}}));
    std::printf("%s =\n", outputs[0].first.c_str());
    print_rows(outputs[0].second);
  }
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
