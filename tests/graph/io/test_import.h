// Importing in tests: the standard operators, and expectations on messages.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "graph/io/import.h"
#include "ops/schema/standard.h"
#include "tests/graph/io/graph_text.h"
#include "tests/graph/io/model_writer.h"

namespace eddy::test {

inline const OpTable& standard_ops() {
  static const OpTable* const table = [] {
    auto* made = new OpTable();
    const Status status = add_standard_schemas(*made);
    EDDY_CHECK(status.is_ok()) << status.to_string();
    return made;
  }();
  return *table;
}

inline Result<Graph> import_text(const std::string& model, const ImportOptions& options = {}) {
  return import_onnx_bytes(as_bytes(model), standard_ops(), options);
}

inline Graph must_import(const std::string& model) {
  Result<Graph> graph = import_text(model);
  EDDY_CHECK(graph.is_ok()) << graph.status().to_string();
  return std::move(graph).value();
}

// The import fails with that code and one line that holds `part`.
inline void expect_import_error(const std::string& model, StatusCode code, std::string_view part,
                                const ImportOptions& options = {}) {
  const Result<Graph> graph = import_text(model, options);
  ASSERT_FALSE(graph.is_ok());
  const std::string text = graph.status().to_string();
  EXPECT_EQ(graph.status().code(), code) << text;
  EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

// The number of exec nodes of one operator, in all regions.
inline size_t count_ops(const Graph& graph, std::string_view op) {
  size_t count = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    count += node.op != nullptr && node.op->name == op ? 1 : 0;
  }
  return count;
}

}  // namespace eddy::test
