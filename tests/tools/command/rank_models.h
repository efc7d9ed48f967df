// Models whose ranks communicate.
#pragma once

#include <string>

#include "tests/graph/io/model_writer.h"

namespace eddy::test {

inline WireWriter talk(std::string_view op, const Names& inputs, const Names& outputs,
                       std::string_view name, const Messages& attributes = {}) {
  return node(op, inputs, outputs, attributes, name, "eddy");
}

// y = x of all ranks, added; t = the sum of all ranks' numbers.
inline std::string summing_model() {
  return model(graph({
      .nodes = {talk("AllReduce", {"x"}, {"y"}, "total"), talk("Rank", {}, {"r"}, "number"),
                talk("AllReduce", {"r"}, {"t"}, "numbers", {attribute("channel", 1)})},
      .inputs = {info("x", floats({2}))},
      .outputs = {info("y", floats({2})), info("t", int64s({}))},
  }));
}

// The first of these, of an input of this name.
inline std::string renamed_summing_model(std::string_view input) {
  return model(graph({
      .nodes = {talk("AllReduce", {std::string(input)}, {"y"}, "total")},
      .inputs = {info(input, floats({2}))},
      .outputs = {info("y", floats({2}))},
  }));
}

// While x is above 1: x of all ranks added, then divided. The test is of the rank's own x, or of
// the sum. `agree`: how the ranks agree on it, as the file says; empty: it does not.
inline std::string halving_model(bool has_own_test, float divisor = 8,
                                 std::string_view agree = {}) {
  const WireWriter body = graph({
      .nodes = {talk("AllReduce", {"x_in"}, {"sum"}, "sum"),
                node("Div", {"sum", "divisor"}, {"x_out"}, {}, "part"),
                node("Greater", {has_own_test ? "x_in" : "sum", "one"}, {"go_on"}, {}, "more")},
      .inputs = {info("i", int64s({})), info("c", bools({})), info("x_in", floats({}))},
      .outputs = {info("go_on", bools({})), info("x_out", floats({}))},
      .name = "body",
  });
  WireWriter loop = node("Loop", {"", "yes", "x"}, {"y"}, {graph_attribute("body", body)}, "halve");
  if (!agree.empty()) {
    WireWriter entry;
    entry.bytes(1, "eddy.agree");
    entry.bytes(2, agree);
    loop.message(9, entry);
  }
  return model(graph({
      .nodes = {node("Equal", {"one", "one"}, {"yes"}), loop},
      .inputs = {info("x", floats({}))},
      .outputs = {info("y", floats({}))},
      .initializers = {tensor<float>("divisor", {}, {divisor}), tensor<float>("one", {}, {1.0f})},
  }));
}

// y = tanh(x w), t = x of each sample added up; x floats [batch, 3]. Of the mean over samples,
// where one is wanted, each sample gets its part.
inline std::string sample_model(bool crosses) {
  const Messages own = {node("MatMul", {"x", "w"}, {"p"}, {}, "product"),
                        node("Tanh", {"p"}, {"y"}, {}, "tanh"),
                        node("ReduceSum", {"x", "last"}, {"t"}, {}, "sum")};
  const Messages crossed = {
      node("ReduceMean", {"x"}, {"m"}, {attribute("axes", std::vector<int64_t>{0})}, "mean"),
      node("Sub", {"x", "m"}, {"y"}, {}, "less"),
      node("ReduceSum", {"x", "last"}, {"t"}, {}, "sum")};
  const ValueType samples = tensor_type(ElementType::kFloat, {-2, 3});
  return model(graph({
      .nodes = crosses ? crossed : own,
      .inputs = {info("x", samples)},
      .outputs = {untyped("y"), untyped("t")},
      .initializers = {tensor<float>("w", {3, 2}, {0.5f, -1, 2, 0.25f, -0.75f, 1}),
                       tensor<int64_t>("last", {1}, {1})},
  }));
}

// A sum and a copy on one channel, in this order or the other.
inline std::string ordered_model(bool is_sum_first) {
  const WireWriter sum = talk("AllReduce", {is_sum_first ? "x" : "c"}, {"s"}, "sum");
  const WireWriter copy = talk("Broadcast", {is_sum_first ? "s" : "x"}, {"c"}, "copy");
  return model(graph({
      .nodes = is_sum_first ? Messages{sum, copy} : Messages{copy, sum},
      .inputs = {info("x", floats({2}))},
      .outputs = {info(is_sum_first ? "c" : "s", floats({2}))},
  }));
}

// Divides by the rank's number less one, which rank 1 cannot; then adds all up.
inline std::string dividing_model() {
  return model(graph({
      .nodes = {talk("Rank", {}, {"r"}, "number"), node("Sub", {"r", "one"}, {"d"}, {}, "less"),
                node("Div", {"x", "d"}, {"q"}, {}, "divide"),
                talk("AllReduce", {"q"}, {"y"}, "total")},
      .inputs = {info("x", int64s({}))},
      .outputs = {info("y", int64s({}))},
      .initializers = {tensor<int64_t>("one", {}, {1})},
  }));
}

}  // namespace eddy::test
