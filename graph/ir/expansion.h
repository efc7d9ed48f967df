// Expansion: what replaces a node whose operator is a function of other operators.
//
//   void expand_swiglu(Expansion& e) {
//     const Value gate = e.op("Swish", {e.input(0)}, {{"alpha", e.get_float("alpha", 1)}});
//     e.set_output(0, e.op("Mul", {gate, e.input(1)}));
//   }
//
// The builder first checks the node as any other, by counts, types, attributes and the operator's
// rule (OpDef::infer; in the run again, by a node of its own: checked_call.h), and then calls
// OpDef::expand instead of keeping the node. What stands in the
// graph are the nodes made here: they are named "<node>/<operator>", keep the node's device, and
// are of the node's opset, but at least kOldestInner; those of a function of another domain are of
// kForeignInner. Every device, pass and file format thereby has the operator.
//
// An expansion may decide by attributes, constants, element types and ranks. It may not decide by
// sizes: a loop's carried types may widen after the body was built, so sizes are computed by nodes
// (Shape ...), which fold to constants where they are known.
//
// Errors: fail() names the node; later calls do nothing. Each output that is wanted must be set, to
// a result of op(). Cost: that of the nodes it makes. Threads: the builder's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/builder.h"

namespace eddy {

class Expansion {
 public:
  // The first opset in which axes are inputs wherever they can be.
  static constexpr int kOldestInner = 18;
  // The first opset with Attention whose caches lie outside, which other domains' functions need.
  static constexpr int kForeignInner = 24;

  Expansion(GraphBuilder& builder, const Node& call, size_t num_outputs);

  size_t num_inputs() const { return call_.inputs.size(); }
  bool has_input(size_t i) const { return i < num_inputs() && !call_.inputs[i].is_none(); }
  Value input(size_t i) const { return has_input(i) ? Value{call_.inputs[i]} : Value{}; }
  const std::string& op_name() const { return call_.op->name; }
  const Attributes& attributes() const { return call_.attributes; }
  int opset_version() const { return call_.opset_version; }
  size_t num_outputs() const { return outputs_.size(); }
  bool wants(size_t output) const { return output < outputs_.size(); }

  TensorType type(Value value) const { return builder_.type(value).tensor; }
  ElementType element(Value value) const { return type(value).element; }
  // Negative after fail(): the expansion can't be written without it.
  int rank_or_fail(Value value, std::string_view what);
  // Null unless the value is a constant.
  const Constant* constant_or_null(Value value) const { return builder_.constant_or_null(value); }

  Value op(std::string_view name, std::initializer_list<Value> inputs, Attributes attributes = {}) {
    return op(name, std::span(inputs.begin(), inputs.size()), std::move(attributes));
  }
  Value op(std::string_view name, std::span<const Value> inputs, Attributes attributes = {});
  std::vector<Value> ops(std::string_view name, std::span<const Value> inputs,
                         Attributes attributes, int num_outputs);
  // An operator of domain "eddy".
  Value eddy_op(std::string_view name, std::span<const Value> inputs, Attributes attributes = {}) {
    return eddy_ops(name, inputs, std::move(attributes), 1)[0];
  }
  std::vector<Value> eddy_ops(std::string_view name, std::span<const Value> inputs,
                              Attributes attributes, int num_outputs);
  Value cast(Value value, ElementType element);

  Value int64s(std::initializer_list<int64_t> values) { return builder_.int64s(values); }
  Value int64s(std::span<const int64_t> values) { return builder_.vector(values); }
  Value floats(std::span<const float> values) { return builder_.vector(values); }
  // A scalar of any numeric type, rounded to it.
  Value number(ElementType element, double value);
  Value integer(int64_t value) { return builder_.scalar(value); }
  // x's sizes as int64s, or those of axes [begin, end).
  Value shape(Value x) { return op("Shape", {x}); }
  Value sizes(Value x, int64_t begin, int64_t end);

  void set_output(size_t i, Value value);
  void fail(Status status);

 private:
  friend class GraphBuilder;
  std::vector<Value> take_outputs();

  GraphBuilder& builder_;
  const Node& call_;
  std::vector<Value> outputs_;
};

}  // namespace eddy
