// GradientRule, GradientTable, GradientContext: how a node hands adjoints back to its inputs,
// injected from outside (graph/ names no operator).
//
//   void mul_gradient(GradientContext& c) {
//     if (c.wants(0)) c.set_gradient(0, c.sum_to(c.op("Mul", {c.gradient(), c.input(1)}), 0));
//     if (c.wants(1)) c.set_gradient(1, c.sum_to(c.op("Mul", {c.gradient(), c.input(0)}), 1));
//   }
//   table.add({.op = "Mul",
//              .reads = {{{.inputs = 2, .input_shapes = 1}}, {{.inputs = 1, .input_shapes = 2}}},
//              .build = mul_gradient});
//
// A rule is data and one function. The data say, for each input, what its gradient reads of the
// forward pass, so that the pass keeps that and nothing else; a read that is not declared is a
// defect (CHECK). The function adds standard nodes for the inputs that are wanted. It may decide by
// attributes, constants and the source's types; what it builds has rules too, so gradient graphs
// can be differentiated again. An operator that is best differentiated as a loop or other nodes
// (LSTM) has an expansion instead, which replaces it on the way from a parameter to the loss.
//
// Errors: fail() names the node; the first one sticks. Cost: a rule's nodes. Threads: a table is
// immutable once it is used. Source: reverse accumulation, Griewank & Walther 2008.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/differentiate/adjoint.h"
#include "graph/ir/builder.h"

namespace eddy {

class GradientContext;
using GradientFunction = void (*)(GradientContext&);
// The node's outputs, by nodes that have rules. It may decide by attributes, constants and types:
// loops around the node are built anew where those widen.
using GradientExpansion = std::vector<Value> (*)(GraphBuilder& builder, const Node& call,
                                                 ValueSpan inputs);

// Inputs and outputs of the node as bits; bit 63 stands for all from 63 on.
inline constexpr uint64_t kAllValues = ~uint64_t{0};

struct GradientReads {
  uint64_t inputs = 0;
  uint64_t outputs = 0;
  uint64_t input_shapes = 0;  // free where types say them
  uint64_t output_shapes = 0;
};

struct GradientRule {
  std::string op;
  std::string domain = {};
  int since_version = 1;
  // By input; nullopt: no gradient goes there. The last one holds for all further inputs.
  std::vector<std::optional<GradientReads>> reads = {};
  // Neither of the two: its outputs have no derivative.
  GradientFunction build = nullptr;
  // What stands for the node where it hands adjoints back; beside `build`, only for a node that
  // lacks an output that `reads` names.
  GradientExpansion expand = nullptr;
  uint64_t row_products = 0;  // inputs whose adjoint may be set_row_product(), as bits
  std::string reason = {};    // why it has no derivative

  bool is_flat() const { return build == nullptr && expand == nullptr; }
  const std::optional<GradientReads>& reads_of(size_t input) const;
  bool lacks_output(const Node& node) const;
};

class GradientTable {
 public:
  // Refuses a second rule for the same (domain, op, since_version).
  Status add(GradientRule rule);
  const GradientRule* find_or_null(std::string_view domain, std::string_view op,
                                   int opset_version) const;
  const std::vector<GradientRule>& all() const { return rules_; }

  // Operators of all versions, with or without a rule, that cost no more to compute again than what
  // they make costs to keep: views, casts, shapes, elementwise ones of few instructions. The same
  // inputs must give the same bits.
  void add_cheap(std::string_view domain, std::initializer_list<std::string_view> ops);
  bool is_cheap(const OpDef& op) const;

 private:
  std::vector<GradientRule> rules_;                      // sorted by (domain, op, since_version)
  std::set<std::pair<std::string, std::string>> cheap_;  // by (domain, op)
};

// Values of the forward pass where the way back can read them, and the sums of adjoints.
class ForwardValues {
 public:
  virtual ~ForwardValues() = default;
  virtual Value value(ValueId id) = 0;
  virtual Value shape(ValueId id) = 0;  // int64[rank]
  // What has been added up for it so far, zeros at least; it is taken out of the sum.
  virtual Value take_sum(ValueId id) = 0;
  virtual void add(ValueId id, Value gradient) = 0;
  // Whether it will add left^T right by itself, later.
  virtual bool add_later(ValueId id, Value left, Value right) = 0;
};

class GradientContext {
 public:
  struct Call {
    NodeId node;
    const GradientRule* rule;
    std::vector<bool> wants;       // by input
    std::vector<Value> gradients;  // by output; none: nothing came back to it
    int opset;                     // of the nodes that rules add
  };
  GradientContext(const Graph& source, GraphBuilder& builder, ForwardValues& forward, Call call);

  size_t num_inputs() const { return node_.inputs.size(); }
  size_t num_outputs() const { return node_.outputs.size(); }
  bool has_input(size_t i) const { return i < num_inputs() && !node_.inputs[i].is_none(); }
  bool is_tensor(size_t i) const {
    return has_input(i) && source_.value(node_.inputs[i]).type.is_tensor();
  }
  bool wants(size_t i) const { return i < call_.wants.size() && call_.wants[i]; }
  const Attributes& attributes() const { return node_.attributes; }
  const std::string& op_name() const { return node_.op->name; }
  int opset_version() const { return node_.opset_version; }

  // Types of the forward pass; symbols are the source's.
  const TensorType& input_type(size_t i) const;
  const TensorType& output_type(size_t i = 0) const;
  ElementType element() const { return output_type().element; }
  // Negative after fail(): the gradient can't be written without it.
  int rank_or_fail(const TensorType& type, std::string_view what);
  const Constant* input_constant_or_null(size_t i) const;

  // Forward values, as far as the rule declares them. Of sequences those of the root only.
  Value input(size_t i);
  Value output(size_t i = 0);
  Value input_shape(size_t i);
  Value output_shape(size_t i = 0);

  // The adjoint of an output; none where nothing came back (never of the only output).
  Value gradient(size_t output = 0) const;
  Value gradient_or_zeros(size_t output);
  // Adds to the adjoint of input i. The value has the input's type.
  void set_gradient(size_t i, Value value);
  // Adds left^T right, matrices of as many rows: at once, or where a loop around the node would add
  // them up iteration by iteration, as one product of all rows behind it.
  void set_row_product(size_t i, Value left, Value right);
  // The adjoint of input i so far, zeros at least, for rules that add to a part of it in place and
  // set the result as its gradient. Reads the input's shape.
  Value take_sum(size_t i);

  Value op(std::string_view name, std::initializer_list<Value> inputs, Attributes attributes = {}) {
    return op(name, std::span(inputs.begin(), inputs.size()), std::move(attributes));
  }
  Value op(std::string_view name, std::span<const Value> inputs, Attributes attributes = {});
  std::vector<Value> ops(std::string_view name, std::span<const Value> inputs,
                         Attributes attributes, int num_outputs);
  // A loop of the way back, named after the node.
  std::vector<Value> while_loop(WhileOptions options, const WhileBefore& before,
                                const WhileAfter& after) {
    options.name = node_.name + "/grad/" + options.name;
    return builder_.while_loop(options, before, after);
  }
  // The same over a sequence's elements (adjoint.h).
  Value for_each_element(Value sequence, Value start, const MakeElement& make) {
    return eddy::for_each_element(builder_, sequence, start, node_.name + "/grad/elements", make);
  }
  Value cast(Value value, ElementType element);
  Value int64s(std::span<const int64_t> values) { return builder_.vector(values); }
  Value int64s(std::initializer_list<int64_t> values) { return builder_.int64s(values); }
  // A scalar of the element type, rounded to it; by default of output 0's.
  Value number(double value) { return number(element(), value); }
  Value number(ElementType element, double value);
  Constant make_constant(const TensorView& tensor) { return builder_.make_constant(tensor); }

  // Adds up the axes over which input i was broadcast to the shape of `value`; `from` is what is
  // known of that shape, by default output 0's type. Reads the input's shape.
  Value sum_to(Value value, size_t i) { return sum_to(value, output_type(), i); }
  Value sum_to(Value value, const TensorType& from, size_t i);

  void fail(Status status);

 private:
  const GradientReads& declared() const { return declared_; }
  Value sum_by_shapes(Value value, size_t i);

  const Graph& source_;
  const Node& node_;
  GraphBuilder& builder_;
  ForwardValues& forward_;
  const Call call_;
  GradientReads declared_;  // of all wanted inputs
};

}  // namespace eddy
