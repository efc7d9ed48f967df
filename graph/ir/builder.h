// GraphBuilder: the only maker of graphs. Infers types as nodes are added.
//
//   GraphBuilder b(op_table);
//   Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
//   Value two = b.scalar(2.0f);
//   auto root = b.while_loop({.name = "newton", .initial = {x}},
//       [&](Value, ValueSpan carried) {                     // before: -> predicate, forwarded
//         Value error = b.op("Abs", {b.op("Sub", {b.op("Mul", {carried[0], carried[0]}), two})});
//         return WhileTest{b.op("Greater", {error, b.scalar(1e-6f)}), {carried[0]}};
//       },
//       [&](Value, ValueSpan forwarded) -> std::vector<Value> { ... });
//   b.output("root", root[0]);
//   Result<Graph> graph = b.finish();
//
// Nodes go to the innermost open region: inside the lambdas of while_loop and case_of the loop's or
// branch's own. Values of enclosing regions may be used (they become captures), of closed ones not.
// Callers that can't be called back (another language's) use begin_while …, begin_case … instead.
// Loops: a carried value's type may change from one iteration to the next. After a body is built,
// parameter types are widened to the join of initial and next types and the region is inferred anew
// until nothing changes, so read a value's type after the loop, not inside it.
//
// Errors: the first one sticks; later calls do nothing and return invalid values, and finish()
// returns it with the name and path of the node. A builder is used once. Ownership: constants are
// copied unless given as a view of a blob handed over with adopt(). Threads: one at a time. Cost:
// amortised O(1) a node, plus its inference.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/base/name_set.h"
#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/ir/opset.h"

namespace eddy {

// A handle to a value of the graph under construction. Default: omitted or invalid.
struct Value {
  ValueId id;
  bool is_none() const { return id.is_none(); }
};

// What region functions are given: the parameters of their region.
using ValueSpan = std::span<const Value>;

struct WhileTest {
  Value predicate;  // one-element bool
  std::vector<Value> forwarded;
};
using WhileBefore = std::function<WhileTest(Value iteration, ValueSpan carried)>;
// Next carried values, then the scan rows.
using WhileAfter = std::function<std::vector<Value>(Value iteration, ValueSpan forwarded)>;
using CaseBody = std::function<std::vector<Value>()>;

struct WhileOptions {
  std::string name = {};            // empty: made up
  std::vector<Value> initial = {};  // carried values
  Value trip_limit = {};            // optional int64 scalar; at most that many iterations
  uint32_t num_scan_outputs = 0;
  // Declared types of the carried values, where wider than `initial` (ONNX body inputs).
  std::vector<std::optional<ValueType>> carried_types = {};
  // When a carried type widens, forget the regions and call `before` and `after` again with the
  // wider types, instead of inferring anew what they built. For callers whose functions decide by
  // types (passes that fold); they must not keep values of the regions they build.
  bool rebuild_on_widening = false;
};

struct CaseOptions {
  std::string name = {};
  Value selector = {};                   // one-element bool, int32 or int64
  std::vector<Value> pass_through = {};  // used when the selector is out of range
  int default_region = -1;
};

struct OpOptions {
  std::string name = {};
  std::string domain = {};
  int opset_version = 0;  // 0: the builder's default for the domain
  int num_outputs = 1;
  std::string device = {};
  std::vector<std::string> output_names = {};
};

class GraphBuilder {
 public:
  // `ops` must outlive the builder and its graph.
  explicit GraphBuilder(const OpTable& ops, std::string name = "graph");
  ~GraphBuilder();

  // Default opset of a domain for nodes that give none ("" starts at kDefaultOpset).
  void set_opset(std::string domain, int version);
  // The dimension that stands for `symbol` in this graph; the same number for the same symbol.
  int64_t symbol(std::string_view name);

  Value input(std::string name, const ValueType& type);
  void output(std::string name, Value value);

  // Copies. For kString, `data` points to std::string objects.
  Value constant(const TensorView& tensor, std::string name = {});
  // Borrows: tensor.data must point into a blob given to adopt().
  Value constant_in_blob(const TensorView& tensor, std::string name = {});
  // Constants are also wanted by attributes: bytes copied and owned by the graph.
  Constant make_constant(const TensorView& tensor);
  void adopt(std::shared_ptr<Blob> blob);
  // Takes over the bytes behind all constants of `graph`, which must not be used afterwards.
  void adopt_blobs_of(Graph&& graph);
  template <typename T>
  Value scalar(T value);
  template <typename T>
  Value vector(std::span<const T> values);
  template <typename T>
  Value vector(std::initializer_list<T> values) {
    return vector(std::span<const T>(values.begin(), values.size()));
  }
  Value int64s(std::initializer_list<int64_t> values) { return vector(values); }
  // b.tensor<float>({2, 2}, {1, 2, 3, 4}); as many values as the shape has elements (CHECK).
  template <typename T>
  Value tensor(const Dims& dims, std::span<const T> values);
  template <typename T>
  Value tensor(const Dims& dims, std::initializer_list<T> values) {
    return tensor(dims, std::span<const T>(values.begin(), values.size()));
  }

  // Adds an exec node, or those it stands for (OpDef::expand), and returns its first output, or all
  // of them.
  Value op(std::string_view op_name, std::span<const Value> inputs, Attributes attributes = {},
           OpOptions options = {});
  Value op(std::string_view op_name, std::initializer_list<Value> inputs,
           Attributes attributes = {}, OpOptions options = {}) {
    return op(op_name, std::span(inputs.begin(), inputs.size()), std::move(attributes),
              std::move(options));
  }
  // Cast to an element type.
  Value cast(Value value, ElementType element, std::string name = {}) {
    return op("Cast", {value}, {{"to", static_cast<int64_t>(element)}}, {.name = std::move(name)});
  }
  std::vector<Value> ops(std::string_view op_name, std::span<const Value> inputs,
                         Attributes attributes, OpOptions options);

  std::vector<Value> while_loop(const WhileOptions& options, const WhileBefore& before,
                                const WhileAfter& after);
  std::vector<Value> case_of(const CaseOptions& options, std::span<const CaseBody> regions);
  // case_of on a bool: `then_region` runs when it is true.
  std::vector<Value> if_else(Value condition, const CaseBody& then_region,
                             const CaseBody& else_region, std::string name = {});

  // while_loop() piece by piece: begin_while() opens `before` and returns its parameters
  // (iteration, carried values), begin_after() ends it and returns those of `after` (iteration,
  // forwarded values), end_while() returns the loop's outputs. Empty after an error.
  std::vector<Value> begin_while(const WhileOptions& options);
  std::vector<Value> begin_after(const WhileTest& test);
  std::vector<Value> end_while(std::span<const Value> next_and_rows);
  // case_of() likewise: as many times begin_branch() and end_branch() as it has regions.
  void begin_case(const CaseOptions& options, size_t num_regions);
  void begin_branch();
  void end_branch(std::span<const Value> results);
  std::vector<Value> end_case();

  const ValueType& type(Value value) const;
  // Graph::path() of the node that makes the value, and of the loop or case that is begun.
  std::string path(Value value) const { return graph_.path(graph_.value(value.id).producer); }
  std::string open_path() const { return graph_.path(controls_.back().node); }
  // Whether `id` numbers a value of this builder; what it may be used by is checked there.
  bool has_value(uint32_t id) const { return id < graph_.num_values(); }
  size_t num_symbols() const { return symbol_dims_.size(); }
  void set_name(Value value, std::string name);
  // Nodes made so far, in all regions.
  size_t num_nodes() const { return graph_.num_nodes(); }
  // Null unless the value is a constant.
  const Constant* constant_or_null(Value value) const;
  // Null unless a node of the innermost open region makes the value.
  const Node* producer_or_null(Value value) const;

  // Records an error of the caller's own (an importer's), unless there is one already.
  void fail(Status status);
  // Puts `context` before the message of the error, if there is one: the file it is about.
  void prepend_failure(std::string_view context) { status_.prepend_message(context); }
  const Status& status() const { return status_; }
  // Region path of where nodes are added now ("decode/after"), for messages.
  std::string current_path() const;

  // Completes captures, sorts, validates. The builder is empty afterwards.
  Result<Graph> finish();

 private:
  // builder.cc
  bool is_ok() const { return status_.is_ok(); }
  RegionId open_region(NodeId owner, std::string name);
  void close_region(std::span<const Value> results);
  Value add_value(ValueInfo info);
  Value add_constant(Constant constant, std::string name);
  Value add_parameter(const ValueType& type, std::string name);
  NodeId add_node(Node node);
  void add_outputs(NodeId node, size_t count, std::span<const std::string> names);
  std::string unique_node_name(RegionId region, std::string wanted, std::string_view stem);
  bool is_visible(Value value) const;
  bool is_usable(Value value, const std::string& what);
  std::vector<Value> output_values(NodeId node) const;
  std::vector<Value> expand(Node call, size_t num_outputs, const OpOptions& options);
  // Adds a node that asks the function's rule again (checked_call.h), where that may matter.
  void check_in_run(Node& call, size_t num_outputs);
  bool is_settled(const Node& call, size_t num_outputs) const;
  void fail_at(NodeId node, Status status);

  // builder_control.cc
  bool open_while(const WhileOptions& options, Node& node);
  struct Checkpoint;
  Checkpoint checkpoint() const;
  void roll_back(NodeId control_node, const Checkpoint& to);
  // False when a carried type had to widen: `options` then has the wider types.
  bool carried_types_hold(NodeId node, int round, WhileOptions& options) const;
  std::vector<Value> open_before(NodeId node, const WhileOptions& options);
  void close_before(const WhileTest& test);
  std::vector<Value> open_after(NodeId node);
  void close_after(NodeId node, std::span<const Value> results);
  std::vector<Value> complete_while(NodeId node);
  bool open_case(const CaseOptions& options, Node& node);
  void open_branch(NodeId node, size_t num_regions);
  void close_branch(NodeId node, std::span<const Value> results);
  std::vector<Value> complete_case(NodeId node);
  // A control node that is built piece by piece.
  enum class Stage : uint8_t { kBefore, kAfter, kBetweenBranches, kBranch };
  struct OpenControl {
    NodeId node;
    Stage stage;
    size_t num_regions;  // that it will have
  };
  bool is_at(Stage stage, const char* call);

  // builder_infer.cc
  Status infer_node(NodeId node);
  Status infer_exec(NodeId node);
  // What `use` makes of what is known of the node's inputs, an InferContext.
  template <typename Use>
  auto with_context(const Node& node, std::span<ValueType> outputs, const Use& use) const;
  // The types of the node's outputs by its operator's rule.
  Status infer_outputs(const Node& node, std::span<ValueType> outputs) const;
  Status infer_while(NodeId node);
  Status infer_case(NodeId node);
  Status infer_region(RegionId region);
  Status check_carried_predicate(const Node& node) const;
  // The type as it is in the first rounds; later its dimensions, then its rank, are given up.
  static ValueType loosened(ValueType type, int round);
  bool widen_carried(const Node& node, int round, bool& changed, Status& error);
  void forward_types(const Node& node);
  void set_type(ValueId value, const ValueType& type);
  void compute_captures();

  const OpTable& ops_;
  Graph graph_;
  Status status_;
  std::vector<RegionId> open_;         // innermost last
  std::vector<OpenControl> controls_;  // innermost last
  std::vector<std::pair<std::string, int>> opsets_;
  // What has been declared, by name: a graph may have 10^5 of each.
  std::unordered_map<std::string, int64_t> symbol_dims_;
  std::unordered_set<std::string> input_names_;
  std::unordered_set<std::string> output_names_;
  std::vector<NameSet> node_names_;  // per region
};

template <typename T>
Value GraphBuilder::scalar(T value) {
  return constant({&value, nullptr, 0, element_type_of<T>()});
}

template <typename T>
Value GraphBuilder::tensor(const Dims& dims, std::span<const T> values) {
  EDDY_CHECK(dims.count() == static_cast<int64_t>(values.size()))
      << values.size() << " values for a tensor of shape " << to_string(dims);
  return constant({const_cast<T*>(values.data()), dims.data(), dims.rank(), element_type_of<T>()});
}

template <typename T>
Value GraphBuilder::vector(std::span<const T> values) {
  const int64_t size = static_cast<int64_t>(values.size());
  return constant({const_cast<T*>(values.data()), &size, 1, element_type_of<T>()});
}

}  // namespace eddy
