// Bytes to a graph, or to an error of one line: import_onnx_bytes.
#include "graph/io/import.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

ImportOptions small_limits() {
  ImportOptions options;
  options.limits.max_nodes = 2000;
  options.limits.min_memory_bytes = size_t{16} << 20;
  return options;
}

}  // namespace
}  // namespace eddy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace eddy;
  const Result<Graph> graph =
      import_onnx_bytes(fuzz::as_bytes(data, size), test::standard_ops(), small_limits());
  if (!graph.is_ok()) fuzz::expect_one_line(graph.status());
  return 0;
}
