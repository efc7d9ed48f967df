// Claim: a session runs a file with Gradient nodes; the training that a file describes begins with
// what its initialization makes, takes the steps that plain loops over doubles take, its own states
// included, and goes on from a saved state; and bindings of names that are not there are refused.
#include "runtime/training/model_training.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/training/trainer.h"
#include "tests/graph/io/training_models.h"

namespace eddy::testing {
namespace {

std::string write(const std::string& name, const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// As ONNX's test_gradient_of_add_and_mul: d = a (a + b), slopes for a and b.
std::string gradient_model() {
  using namespace test;
  WireWriter gradient = node("Gradient", {"a", "b"}, {"of_a", "of_b"}, {}, "slopes");
  WireWriter xs, y, opset;
  xs.bytes(1, "xs");
  xs.bytes(9, "a");
  xs.bytes(9, "b");
  xs.integer(20, 8);
  y.bytes(1, "y");
  y.bytes(4, "d");
  y.integer(20, 3);
  gradient.message(5, xs);
  gradient.message(5, y);
  gradient.bytes(7, "ai.onnx.preview.training");
  opset.message(8, opset_import("ai.onnx.preview.training", 1));
  return model(graph({.nodes = {node("Add", {"a", "b"}, {"c"}, {}, "add"),
                                node("Mul", {"c", "a"}, {"d"}, {}, "mul"), gradient},
                      .inputs = {info("a", floats({})), info("b", floats({}))},
                      .outputs = {info("d", floats({})), info("of_a", floats({})),
                                  info("of_b", floats({}))}})) +
         opset.data();
}

TEST(ModelTrainingTest, ASessionRunsGradientNodes) {
  const Library library;
  auto session = Session::load(library, write("gradient.onnx", gradient_model()), {});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const auto outputs = (*session)->run({{"a", Tensor::scalar(3.0f)}, {"b", Tensor::scalar(5.0f)}});
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  ASSERT_EQ(outputs->size(), 3u);
  EXPECT_EQ((*outputs)[0].second.values<float>()[0], 24);
  EXPECT_EQ((*outputs)[1].second.values<float>()[0], 11);  // 2 a + b
  EXPECT_EQ((*outputs)[2].second.values<float>()[0], 3);   // a
}

struct Line {
  double w = 2, c = 0, rate = 0.25;  // w: from the initialization

  // The loss before the update.
  double step(const std::vector<float>& xs, const std::vector<float>& targets) {
    double loss = 0, of_w = 0, of_c = 0;
    const auto n = static_cast<double>(xs.size());
    for (size_t i = 0; i < xs.size(); ++i) {
      const double x = static_cast<double>(xs[i]);
      const double error = w * x + c - static_cast<double>(targets[i]);
      loss += error * error / n;
      of_w += 2 * error * x / n;
      of_c += 2 * error / n;
    }
    w -= rate * of_w;
    c -= rate * of_c;
    rate /= 2;
    return loss;
  }
};

TEST(ModelTrainingTest, AFilesTrainingIsTaken) {
  const Library library;
  const std::string path = write("own.onnx", test::model_with_training());
  const auto make = [&]() -> std::unique_ptr<Trainer> {
    auto own = read_model_training(library, path, {});
    EXPECT_TRUE(own.is_ok()) << own.status().to_string();
    if (!own.is_ok()) return nullptr;
    EXPECT_EQ(own->step.loss, "loss");
    auto trainer = Trainer::create(library, std::move(own->model), std::move(own->step), {});
    EXPECT_TRUE(trainer.is_ok()) << trainer.status().to_string();
    return trainer.is_ok() ? std::move(*trainer) : nullptr;
  };
  auto trainer = make();
  ASSERT_NE(trainer, nullptr);
  EXPECT_EQ(trainer->parameter_names(), (std::vector<std::string>{"w", "c"}));
  const std::vector<float> xs = {-1, -0.5f, 0.25f, 1}, targets = {-3, -2, -0.5f, 1};
  const NamedTensors batch = {{"x", Tensor::of<float>({4}, xs)},
                              {"target", Tensor::of<float>({4}, targets)}};
  const std::string state = ::testing::TempDir() + "/own.state.onnx";
  Line line;
  for (int step = 0; step < 6; ++step) {
    if (step == 3) {
      ASSERT_TRUE(trainer->save_state(state).is_ok());
      trainer = make();
      ASSERT_NE(trainer, nullptr);
      const Status loaded = trainer->load_state(state);
      ASSERT_TRUE(loaded.is_ok()) << loaded.to_string();
    }
    const auto loss = trainer->step(batch, 0);
    ASSERT_TRUE(loss.is_ok()) << loss.status().to_string();
    EXPECT_NEAR(*loss, line.step(xs, targets), 1e-5);
    EXPECT_NEAR(*trainer->parameter("w").as<float>(), line.w, 1e-5);
    EXPECT_NEAR(*trainer->parameter("c").as<float>(), line.c, 1e-5);
  }
}

std::string refusal(const test::TrainingParts& parts, const std::string& loss = "") {
  const Library library;
  const auto own = read_model_training(
      library, write("spoilt.onnx", test::model_with_training(parts)), {.loss = loss});
  return own.is_ok() ? "accepted" : own.status().message();
}

TEST(ModelTrainingTest, BindingsOfOtherNamesAreRefused) {
  const auto holds = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  holds(refusal({.updated = "v"}), "update_binding names 'v'");
  holds(refusal({.updated = "c"}), "update_binding names 'c' twice");
  holds(refusal({.update = "w.last"}),
        "update_binding names 'w.last', which is no output of the algorithm");
  holds(refusal({.update = "y"}), "'y' is float[?], but 'w', which it is bound to, is float[]");
  holds(refusal({.initial = "three"}),
        "initialization_binding names 'three', which is no output of the initialization");
  holds(refusal({.differentiated = "gain"}),
        "node 'slopes' (Gradient): attribute y names 'gain', which is no tensor that the node can "
        "see");
  const Library library;
  const auto none = read_model_training(library, write("line.onnx", test::line_model()), {});
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  holds(none.status().message(), "the model has no training_info; name a loss and an optimizer");
}

}  // namespace
}  // namespace eddy::testing
