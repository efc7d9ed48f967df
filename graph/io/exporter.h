// Exporter: writes a Graph as the messages of an ONNX model. Internal to graph/io.
//
// Split by subject: exporter.cc (model, regions, nodes), export_control_flow.cc (while and
// case-of), export_names.cc (names and opsets).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/io/export.h"
#include "graph/io/wire_writer.h"
#include "graph/ir/graph.h"
#include "graph/ir/opset.h"

namespace eddy {

class Exporter {
 public:
  Exporter(const Graph& graph, const ExportOptions& options) : graph_(graph), options_(options) {}

  Result<std::string> run();

 private:
  struct LoopForm {
    bool is_loop = false;
    bool has_condition = false;  // carried value 0 is the condition
  };

  // export_names.cc
  Status choose_names();
  void choose_name(ValueId value);
  std::string made_up(std::string_view stem);
  const std::string& name(ValueId value) const {
    EDDY_DCHECK(value.index() < names_.size()) << "value " << value.index() << " has no name yet";
    return names_[value.index()];
  }
  std::string name_or_empty(ValueId value) const;
  Status choose_opsets();
  std::string domain_of(const Node& node) const;

  // exporter.cc
  WireWriter main_graph();
  void write_initializers(WireWriter& proto) const;
  void write_nodes(const Region& region, WireWriter& proto);
  WireWriter node_proto(const Node& node);
  void write_exec(const Node& node, WireWriter& proto) const;
  void write_inputs(std::span<const ValueId> inputs, WireWriter& proto) const;
  void write_attribute(const Attributes::Entry& entry, WireWriter& proto) const;
  // The graph's outputs, each with a producer and a name of its own; forwards where needed.
  void write_results(const Region& region, std::span<const ValueId> results, WireWriter& proto);
  std::string forward(std::string_view from, const std::string& to, WireWriter& proto);
  WireWriter value_info(std::string_view name, const ValueType& type) const;

  // export_control_flow.cc
  void write_while(const Node& node, WireWriter& proto);
  void write_loop(const Node& node, LoopForm form, WireWriter& proto);
  void write_case(const Node& node, WireWriter& proto);
  LoopForm loop_form(const Node& node) const;
  bool is_constant_true(ValueId value) const;
  WireWriter region_graph(const Region& region);
  WireWriter loop_body(const Node& node, LoopForm form);

  const Graph& graph_;
  const ExportOptions& options_;
  std::vector<std::string> names_;  // of values in the file
  std::unordered_set<std::string> used_names_;
  size_t num_made_up_ = 0;
  std::map<std::string, int> opsets_;  // of each domain
};

WireWriter graph_attribute(std::string_view name, const WireWriter& graph);
WireWriter int_attribute(std::string_view name, int64_t value);

}  // namespace eddy
