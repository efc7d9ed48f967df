// Models to train: a line, and a line with its own training in the file.
#pragma once

#include <string>
#include <string_view>

#include "tests/graph/io/model_writer.h"

namespace eddy::test {

// y = w x + c, loss = mean((y - target)^2).
inline std::string line_model() {
  return model(graph({
      .nodes = {node("Mul", {"x", "w"}, {"scaled"}, {}, "scale"),
                node("Add", {"scaled", "c"}, {"y"}, {}, "shift"),
                node("Sub", {"y", "target"}, {"error"}, {}, "compare"),
                node("Mul", {"error", "error"}, {"squares"}, {}, "square"),
                node("ReduceMean", {"squares"}, {"loss"}, {attribute("keepdims", int64_t{0})},
                     "mean")},
      .inputs = {info("x", floats({-1})), info("target", floats({-1}))},
      .outputs = {info("y", floats({-1})), info("loss", floats({}))},
      .initializers = {tensor<float>("w", {}, {0.0f}), tensor<float>("c", {}, {0.0f})},
  }));
}

// The model, its gradient and the update of w and c by a rate that halves with each step, all in
// the file; w begins with what the initialization makes.
struct TrainingParts {
  std::string updated = "w";      // by the first binding
  std::string update = "w.next";  // its output
  std::string initial = "two";    // what w begins with: an output of the initialization
  std::string differentiated = "loss";
};
inline std::string model_with_training(const TrainingParts& parts = {}) {
  WireWriter gradient = node("Gradient", {"w", "c"}, {"w.slope", "c.slope"}, {}, "slopes");
  WireWriter xs, y;
  xs.bytes(1, "xs");
  xs.bytes(9, "w");
  xs.bytes(9, "c");
  xs.integer(20, 8);
  y.bytes(1, "y");
  y.bytes(4, parts.differentiated);
  y.integer(20, 3);
  gradient.message(5, xs);
  gradient.message(5, y);
  gradient.bytes(7, "ai.onnx.preview.training");
  const WireWriter algorithm = graph({
      .nodes = {gradient, node("Mul", {"w.slope", "rate"}, {"w.change"}, {}, "w.scale"),
                node("Sub", {"w", "w.change"}, {"w.next"}, {}, "w.move"),
                node("Mul", {"c.slope", "rate"}, {"c.change"}, {}, "c.scale"),
                node("Sub", {"c", "c.change"}, {"c.next"}, {}, "c.move"),
                node("Mul", {"rate", "half"}, {"rate.next"}, {}, "slower")},
      .outputs = {info("w.next", floats({})), info("c.next", floats({})),
                  info("rate.next", floats({}))},
      .initializers = {tensor<float>("rate", {}, {0.25f}), tensor<float>("half", {}, {0.5f})},
  });
  const WireWriter initialization = graph({
      .nodes = {node("Add", {"one", "one"}, {"two"}, {}, "add")},
      .outputs = {info("two", floats({}))},
      .initializers = {tensor<float>("one", {}, {1.0f})},
  });
  const auto binding = [](std::string_view initializer, std::string_view output) {
    WireWriter entry;
    entry.bytes(1, initializer);
    entry.bytes(2, output);
    return entry;
  };
  WireWriter training, more;
  training.message(1, initialization);
  training.message(2, algorithm);
  training.message(3, binding("w", parts.initial));
  training.message(4, binding(parts.updated, parts.update));
  for (const char* name : {"c", "rate"}) {
    training.message(4, binding(name, std::string(name) + ".next"));
  }
  more.message(20, training);
  more.message(8, opset_import("ai.onnx.preview.training", 1));
  return line_model() + more.data();
}

}  // namespace eddy::test
