// Importer: walks an OnnxModel and drives a GraphBuilder. Internal to graph/io.
//
// Split by subject: importer.cc (graphs, nodes, names), import_values.cc (constants, attributes,
// types), import_control_flow.cc (If, Loop, CaseOf, While, SequenceMap), import_scan.cc,
// import_flex_attention.cc, import_function.cc. Errors go into the builder, where the first one
// sticks; functions return whether all is still well.
#pragma once

#include <forward_list>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/name_map.h"
#include "graph/io/external_data.h"
#include "graph/io/function_table.h"
#include "graph/io/import_options.h"
#include "graph/io/node_order.h"
#include "graph/io/onnx_model.h"
#include "graph/io/opset_table.h"
#include "graph/ir/builder.h"

namespace eddy {

class Importer {
 public:
  // `evict_files` drops the files' pages; it is called now and then while constants that can't stay
  // in their file are copied, so that both need not be in memory side by side.
  Importer(const OnnxModel& model, const FunctionTable& functions, GraphBuilder& builder,
           ExternalData& external, MemoryBudget& budget, const ImportOptions& options,
           std::function<void()> evict_files);

  // The whole model as a graph of its own: declares inputs and outputs.
  void import_root();
  // The model inside the builder's open region.
  std::vector<NamedValue> import_inline(std::span<const NamedValue> inputs);

 private:
  using AttributeMap = std::unordered_map<std::string_view, const OnnxAttribute*>;

  // What holds for all nodes of the model's graph, or of one call of a function.
  struct Env {
    OpsetTable opsets;
    std::string prefix;       // of names of nodes and values
    AttributeMap attributes;  // a function's, as its caller gave them
    bool is_function = false;
  };
  // The names of one graph. Inner scopes hide outer ones.
  struct Scope {
    const Scope* parent = nullptr;
    const Env* env = nullptr;
    NameMap<Value> values = {};
    // The names of initializers: in the file they lie beside the weights, which a lookup there
    // would bring back into memory.
    std::forward_list<std::string> names = {};
  };
  // A node with its attributes resolved.
  struct NodeContext {
    const OnnxNode& node;
    Scope& scope;
    OpKey key;
    std::vector<std::pair<std::string_view, const OnnxAttribute*>> attributes = {};
    AttributeMap index = {};  // of the same, where they are many

    const OnnxAttribute* find_or_null(std::string_view name) const;
  };
  struct ScanPlan;
  struct FlexAttention;

  bool is_ok() const { return builder_.status().is_ok(); }
  bool fail(Status status);
  // Fails with the node in front of the message: "node 'x' (Loop): ...".
  bool fail_at(const NodeContext& at, Status status);
  bool fail_at(const NodeContext& at, std::string message);
  bool charge(uint64_t size_bytes) { return budget_.charge(size_bytes) || fail(budget_.error()); }
  bool charge_node(const OnnxNode& node, const Env& env);

  // importer.cc
  bool define(Scope& scope, std::string_view name, Value value);
  std::optional<Value> find(const Scope& scope, std::string_view name) const;
  bool import_initializers(const OnnxGraph& graph, Scope& scope);
  template <typename Initializer>  // OnnxTensor or OnnxSparseTensor
  bool import_initializer(const Initializer& initializer, std::string_view name, Scope& scope);
  void remember_if_true(Value value);
  bool import_nodes(const std::vector<OnnxNode>& nodes, Scope& scope);
  bool import_node(const OnnxNode& node, Scope& scope);
  bool resolve_attributes(NodeContext& at);
  bool dispatch(NodeContext& at);
  bool import_exec(const NodeContext& at);
  bool import_forward(const NodeContext& at);
  bool inputs_of(const NodeContext& at, std::vector<Value>* values);
  bool bind_outputs(const NodeContext& at, std::span<const Value> values);
  // A graph among a node's attributes, with `inputs` bound to its inputs. Empty on failure.
  std::vector<Value> import_body(const OnnxGraph& graph, const Scope& outer,
                                 std::span<const Value> inputs);
  bool graph_results(const OnnxGraph& graph, Scope& scope, std::vector<Value>* values);
  std::string node_name(const NodeContext& at) const;
  std::string value_name(const Scope& scope, std::string_view name) const;
  std::string device_of(const OnnxNode& node) const;
  // Empty where the file has nothing that Eddy understands.
  std::optional<ValueType> declared_type(const OnnxValueInfo& info);
  bool declare_inputs(Scope& scope);
  // An input of a map type: the keys and values of `name` become inputs, lists of one length. A
  // node that reads `name` reads both in its place.
  bool declare_map(const OnnxValueInfo& input);
  bool declare_outputs(Scope& scope);

  // import_values.cc
  Value make_constant(Result<DecodedTensor> decoded, std::string name);
  void count_copied(size_t size_bytes);
  Result<DecodedTensor> decode(const OnnxTensor& tensor);
  Result<DecodedTensor> decode_charged(const OnnxTensor& tensor);
  // The dense tensor.
  Result<DecodedTensor> decode(const OnnxSparseTensor& sparse);
  Result<DecodedTensor> decode_charged(const OnnxSparseTensor& sparse);
  bool import_constant(const NodeContext& at);
  Value constant_of(const NodeContext& at, std::string_view name, const OnnxAttribute& attribute);
  bool to_attributes(const NodeContext& at, Attributes* attributes);
  std::optional<AttributeValue> to_attribute(const NodeContext& at, const OnnxAttribute& from);

  // import_control_flow.cc
  bool import_if(const NodeContext& at);
  bool import_loop(const NodeContext& at);
  bool wrap_optional(const NodeContext& at, Value carried, Value& next);
  bool import_sequence_map(const NodeContext& at);
  bool import_case_of(const NodeContext& at);
  bool import_while(const NodeContext& at);
  const OnnxGraph* body_or_null(const NodeContext& at, std::string_view name);
  bool check_counts(const NodeContext& at, const OnnxGraph& body, std::string_view name,
                    size_t num_inputs, size_t num_outputs);
  bool check_condition(const NodeContext& at, const std::string& what, Value condition);
  std::vector<std::optional<ValueType>> wider_types(std::span<const OnnxValueInfo> declared,
                                                    std::span<const Value> initial,
                                                    bool trust_unranked);
  void name_parameters(const OnnxGraph& body, const Scope& scope, std::span<const Value> values);
  // The decision of a loop or case, marked where the node says how ranks agree on it.
  Value marked(const NodeContext& at, Value decision);
  void name_outputs(const NodeContext& at, std::span<const Value> values);
  // One constant serves all loops without a condition.
  Value always_true();
  bool is_used(const OnnxGraph& graph, std::string_view name);
  // As builder_.while_loop, minding how deep in loops we are.
  std::vector<Value> while_loop(const WhileOptions& options, const WhileBefore& before,
                                const WhileAfter& after);

  // import_scan.cc
  bool import_scan(const NodeContext& at);
  bool plan_scan(const NodeContext& at, ScanPlan* plan);
  bool check_scan(const NodeContext& at, const ScanPlan& plan);
  std::vector<Value> scan_once(const NodeContext& at, const ScanPlan& plan,
                               std::span<const Value> states, std::span<const Value> scanned);
  std::vector<Value> scan_batches(const NodeContext& at, const ScanPlan& plan,
                                  std::span<const Value> inputs);
  Value scan_length(const NodeContext& at, std::span<const Value> scanned,
                    std::span<const int64_t> axes);
  Value axis_length(const NodeContext& at, Value value, int64_t axis);
  Value turn_output(const NodeContext& at, Value stacked, bool is_reversed, int64_t axis);
  // A node of the importer's own, in the file's opset, or in `oldest` where that is newer: from 13
  // on operators take axes and limits as inputs.
  Value helper(const NodeContext& at, std::string_view op, std::initializer_list<Value> inputs,
               Attributes attributes = {}, int oldest = 13);

  // import_flex_attention.cc
  bool import_flex_attention(const NodeContext& at);
  bool plan_flex_attention(const NodeContext& at, FlexAttention& flex);
  Value flex_attention(const NodeContext& at, const FlexAttention& flex);
  Value modified(const NodeContext& at, const OnnxGraph* graph, Value value);

  // import_function.cc
  bool import_call(const NodeContext& at, const OnnxFunction& function);

  // Counts one level of regions and calls while it lives.
  class Level;
  bool enter_level();

  const OnnxModel& model_;
  const FunctionTable& functions_;
  GraphBuilder& builder_;
  ExternalData& external_;
  MemoryBudget& budget_;
  const ImportOptions& options_;
  const std::function<void()> evict_files_;
  size_t num_copied_bytes_ = 0;  // since files were evicted
  Env root_env_;
  FreeNames free_names_;
  std::vector<const OnnxFunction*> calls_;                              // open, outermost first
  std::unordered_map<std::string_view, std::pair<Value, Value>> maps_;  // keys and values
  Value always_true_;
  int64_t num_nodes_ = 0;
  int level_ = 0;
  int loop_depth_ = 0;  // above 0 the types of values may still widen
};

class Importer::Level {
 public:
  explicit Level(Importer& importer) : importer_(importer), is_ok_(importer.enter_level()) {}
  ~Level() {
    EDDY_DCHECK(importer_.level_ > 0) << "a level is left twice";
    --importer_.level_;
  }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  bool is_ok() const { return is_ok_; }

 private:
  Importer& importer_;
  bool is_ok_;
};

}  // namespace eddy
