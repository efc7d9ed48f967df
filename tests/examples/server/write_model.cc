// write_model FILE [endless]: an ONNX file for the test of the program, of a model that adds two
// inputs, or of one that counts n down to zero and so never ends where n is no whole number.
#include <cstdio>

#include "examples/report.h"
#include "graph/io/export.h"
#include "graph/ir/builder.h"
#include "runtime/api/library.h"

namespace eddy {
namespace {

void build_adding(GraphBuilder& b) {
  const ValueType rows = tensor_type(ElementType::kFloat, {b.symbol("batch"), 2});
  const Value a = b.input("a", rows);
  b.output("y", b.op("Add", {a, b.input("b", rows)}));
}

void build_endless(GraphBuilder& b) {
  const auto end = b.while_loop(
      {.name = "countdown", .initial = {b.input("n", tensor_type(ElementType::kDouble, {}))}},
      [&](Value, ValueSpan n) {
        return WhileTest{b.op("Not", {b.op("Equal", {n[0], b.scalar(0.0)})}), {n[0]}};
      },
      [&](Value, ValueSpan n) {
        return std::vector<Value>{b.op("Sub", {n[0], b.scalar(1.0)})};
      });
  b.output("end", end[0]);
}

Status write(const std::string& path, bool is_endless) {
  const Library library;
  GraphBuilder b(library.ops());
  is_endless ? build_endless(b) : build_adding(b);
  EDDY_ASSIGN_OR_RETURN(const Graph graph, b.finish());
  return export_onnx(graph, path);
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return std::fputs("usage: write_model FILE [endless]\n", stderr), 2;
  return eddy::report(eddy::write(argv[1], argc == 3));
}
