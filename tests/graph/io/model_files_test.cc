// Claim: the models that the benchmarks and the conformance tests use are imported, and come back
// equal after export. Files of Debian's libonnx-testdata are skipped where it is not installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "graph/io/export.h"
#include "graph/io/tensor_file.h"
#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary
namespace fs = std::filesystem;

void expect_round_trip(const Graph& graph) {
  const Result<std::string> file = format_onnx(graph);
  ASSERT_TRUE(file.is_ok()) << file.status().to_string();
  const Result<Graph> back = import_text(*file);
  ASSERT_TRUE(back.is_ok()) << back.status().to_string();
  EXPECT_EQ(describe(graph), describe(*back));
}

TEST(ModelFiles, BenchmarkModelsAreImportedAndComeBackEqual) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator("tests/bench/models")) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path().string());
    const Result<Graph> graph = import_onnx(entry.path().string(), standard_ops());
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    expect_round_trip(*graph);
    ++count;
  }
  EXPECT_EQ(count, 19u);
}

bool is_control_flow_test(const std::string& name) {
  for (const char* part : {"test_if", "test_loop", "test_scan", "test_sequence", "test_optional",
                           "test_identity_sequence", "test_identity_opt"}) {
    if (name.starts_with(part)) return true;
  }
  return name.ends_with("_delta_expanded");
}

// Reads every value of the test's data sets with the types that the graph declares.
void expect_data_readable(const fs::path& folder, const Graph& graph) {
  for (const auto& set : fs::directory_iterator(folder)) {
    if (!set.is_directory()) continue;
    const auto read = [&](const std::string& stem, std::span<const ValueId> values) {
      for (size_t i = 0; i < values.size(); ++i) {
        const fs::path file = set.path() / (stem + std::to_string(i) + ".pb");
        const ValueType& type = graph.value(values[i]).type;
        const Result<HostValue> value = read_value(file.string(), type);
        ASSERT_TRUE(value.is_ok()) << value.status().to_string();
        if (type.is_tensor()) {
          EXPECT_EQ(value->kind, HostValue::Kind::kTensor);
          EXPECT_EQ(value->element, type.tensor.element);
        }
      }
    };
    read("input_", graph.inputs());
    read("output_", graph.outputs());
  }
}

TEST(ModelFiles, ControlFlowTestsOfOnnxAreImportedWithTheirData) {
  const fs::path root = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(root)) GTEST_SKIP() << "libonnx-testdata is not installed";
  size_t count = 0;
  for (const char* part : {"node", "simple"}) {
    for (const auto& entry : fs::directory_iterator(root / part)) {
      if (!is_control_flow_test(entry.path().filename().string())) continue;
      SCOPED_TRACE(entry.path().string());
      const Result<Graph> graph =
          import_onnx((entry.path() / "model.onnx").string(), standard_ops());
      ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
      expect_round_trip(*graph);
      expect_data_readable(entry.path(), *graph);
      ++count;
    }
  }
  EXPECT_GE(count, 22u);
}

// Whatever the file, importing it ends in a graph or in one line.
TEST(ModelFiles, EveryModelOfOnnxIsImportedOrRefusedByName) {
  const fs::path root = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(root)) GTEST_SKIP() << "libonnx-testdata is not installed";
  size_t imported = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "model.onnx") continue;
    const Result<Graph> graph = import_onnx(entry.path().string(), standard_ops());
    imported += graph.is_ok() ? 1 : 0;
    if (graph.is_ok()) continue;
    EXPECT_EQ(graph.status().message().find('\n'), std::string::npos);
    EXPECT_EQ(graph.status().code(), StatusCode::kUnsupported) << graph.status().to_string();
  }
  EXPECT_GT(imported, 100u);
}

}  // namespace
}  // namespace eddy
