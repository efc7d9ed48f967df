// Print a plan: what Eddy decided about a graph before any run.
//
// Shows: streams, ranks, records and waits of each region as text; given the name of a file, the
// same as a picture (SVG). The graph is a diamond with a loop on one side. `eddy plan` prints and
// draws the same of a model.
#include <iostream>

#include "examples/draw_plan.h"
#include "examples/report.h"
#include "graph/compile/plan_text.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

// y = tanh(x) scaled in a loop until its sum is small, beside exp(x); then the two are added.
Result<Graph> build(const Library& library) {
  GraphBuilder b(library.ops(), "diamond");
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {4}));
  const Value left = b.op("Tanh", {x}, {}, {.name = "left"});
  const Value right = b.op("Exp", {x}, {}, {.name = "right"});
  const auto small = b.while_loop(
      {.name = "shrink", .initial = {left}},
      [&](Value, ValueSpan carried) {
        const Value sum = b.op("ReduceSum", {carried[0]}, {{"keepdims", 0}}, {.name = "sum"});
        return WhileTest{b.op("Greater", {sum, b.scalar(1.0f)}, {}, {.name = "large"}),
                         {carried[0]}};
      },
      [&](Value, ValueSpan forwarded) {
        return std::vector<Value>{
            b.op("Mul", {forwarded[0], b.scalar(0.5f)}, {}, {.name = "halve"})};
      });
  b.output("y", b.op("Add", {small[0], right}, {}, {.name = "join"}));
  return b.finish();
}

Status run(const char* picture_or_null) {
  Library library;
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(library));
  // Left to itself, Eddy keeps nodes as small as these on one stream.
  const SessionOptions options{.num_threads = 2, .assignment = Assignment::kRank};
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), options));
  std::cout << plan_text(drawn_plan(*session));
  std::cout << "proved: " << (session->plan().is_proved ? "yes" : "no") << "\n";
  if (picture_or_null == nullptr) return Status::ok();
  return write_plan(*session, "diamond: two streams, two records, two waits", picture_or_null);
}

}  // namespace
}  // namespace eddy

int main(int count, char** arguments) {
  return eddy::report(eddy::run(count > 1 ? arguments[1] : nullptr));
}
