// Claim: a Trainer's steps give the parameters that plain loops over doubles give, waited for or
// begun by callbacks, without a copy between steps; a step that fails or whose loss is not finite
// changes nothing and names the node; what is saved is the model with the parameters of now, and is
// loaded again.
#include "runtime/training/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"

namespace eddy::testing {
namespace {

constexpr double kTarget = 3.0;

// loss = sum((exp(w) x - target)^2), of two elements.
Graph make_model(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {2}));
  const Value w = b.tensor<double>({2}, {0.5, -1.0});
  b.set_name(w, "w");
  const Value grown = b.op("Exp", {w}, {}, {.name = "grow"});
  const Value error = b.op("Sub", {b.op("Mul", {grown, x}), b.scalar(kTarget)});
  b.output("loss", b.op("ReduceSumSquare", {error}, {{"keepdims", int64_t{0}}}));
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() { EXPECT_TRUE(add_standard_gradients(rules_).is_ok()); }

  std::unique_ptr<Trainer> make(Optimizer optimizer) {
    auto made = Trainer::create(library_, make_model(library_), rules_,
                                {.loss = "loss", .optimizer = optimizer, .momentum = 0.5},
                                {.num_threads = 1});
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return made.is_ok() ? std::move(*made) : nullptr;
  }
  static NamedTensors x(double a, double b) { return {{"x", Tensor::of<double>({2}, {a, b})}}; }
  static std::vector<double> w(const Trainer& trainer) {
    const TensorView view = trainer.parameter("w");
    return {view.as<double>()[0], view.as<double>()[1]};
  }

  const Library library_;
  GradientTable rules_;
};

struct Plain {
  double w[2] = {0.5, -1.0}, v[2] = {0, 0};

  double step(const double (&x)[2], double rate, double momentum) {
    double loss = 0;
    for (const int i : {0, 1}) {
      const double error = std::exp(w[i]) * x[i] - kTarget;
      loss += error * error;
      v[i] = momentum * v[i] + 2 * error * x[i] * std::exp(w[i]);
      w[i] -= rate * v[i];
    }
    return loss;
  }
};

// Ten steps in one go, and in two trainers with a file between them: the same bits.
TEST_F(TrainerTest, ASavedStateGoesOnAsIfNothingHadHappened) {
  for (const Optimizer optimizer : {Optimizer::kMomentum, Optimizer::kAdam, Optimizer::kAdagrad}) {
    const auto whole = make(optimizer), first = make(optimizer), second = make(optimizer);
    ASSERT_TRUE(whole != nullptr && first != nullptr && second != nullptr);
    const std::string path = ::testing::TempDir() + "/state.onnx";
    const auto step = [&](Trainer& trainer) {
      const auto at = static_cast<double>(trainer.num_steps());
      const auto loss = trainer.step(x(1.0 + 0.125 * at, 0.5), 0.015625f);
      EXPECT_TRUE(loss.is_ok()) << loss.status().to_string();
    };
    for (int i = 0; i < 10; ++i) step(*whole);
    for (int i = 0; i < 4; ++i) step(*first);
    ASSERT_TRUE(first->save_state(path).is_ok());
    const Status loaded = second->load_state(path);
    ASSERT_TRUE(loaded.is_ok()) << loaded.to_string();
    EXPECT_EQ(second->num_steps(), 4);
    EXPECT_EQ(w(*second), w(*first));
    while (second->num_steps() < 10) step(*second);
    EXPECT_EQ(w(*second), w(*whole));
  }
}

TEST_F(TrainerTest, AStateOfOtherConditionsIsRefusedByName) {
  const auto first = make(Optimizer::kSgd), second = make(Optimizer::kSgd);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  ASSERT_TRUE(first->step(x(1, 2), 0.015625f).is_ok());
  const std::string path = ::testing::TempDir() + "/conditions.onnx";
  ASSERT_TRUE(first->save_state(path, {{"batch", "16"}, {"data", "64 rows"}}).is_ok());
  const auto refusal = [&](const Trainer::Conditions& conditions) {
    const Status status = second->load_state(path, conditions);
    EXPECT_EQ(second->num_steps(), 0);
    return status.message();
  };
  const std::string had = path + ": its training had another ";
  EXPECT_EQ(refusal({{"batch", "32"}, {"data", "64 rows"}}), had + "batch: 16, and now 32");
  EXPECT_EQ(refusal({{"data", "64 rows"}}), had + "batch: 16, and now none");
  EXPECT_EQ(refusal({{"batch", "16"}, {"data", "64 rows"}, {"order", "9"}}),
            had + "order: none, and now 9");
  EXPECT_TRUE(second->load_state(path, {{"data", "64 rows"}, {"batch", "16"}}).is_ok());
  EXPECT_EQ(w(*second), w(*first));
  const auto third = make(Optimizer::kSgd);
  EXPECT_TRUE(third->load_state(path, {{"batch", "32"}}, /*any=*/true).is_ok());
  EXPECT_EQ(w(*third), w(*first));
}

TEST_F(TrainerTest, AStateOfAnotherOptimizerIsRefusedWhole) {
  const auto plain = make(Optimizer::kSgd), with_states = make(Optimizer::kMomentum);
  ASSERT_TRUE(plain != nullptr && with_states != nullptr);
  ASSERT_TRUE(plain->step(x(1, 2), 0.015625f).is_ok());
  const std::string path = ::testing::TempDir() + "/sgd.onnx";
  ASSERT_TRUE(plain->save_state(path).is_ok());
  const Status status = with_states->load_state(path);
  EXPECT_EQ(status.to_string(),
            "invalid argument: " + path + ": its state is of another optimizer than momentum");
  EXPECT_EQ(w(*with_states), (std::vector<double>{0.5, -1.0}));
  EXPECT_EQ(with_states->num_steps(), 0);
  const std::string model = ::testing::TempDir() + "/model.onnx";
  ASSERT_TRUE(plain->save(model).is_ok());
  EXPECT_EQ(plain->load_state(model).to_string(),
            "invalid argument: " + model +
                ": it holds no state of a training (of --state, save_state())");
  const auto other = make(Optimizer::kNesterov);
  ASSERT_NE(other, nullptr);
  ASSERT_TRUE(with_states->save_state(path).is_ok());
  EXPECT_EQ(other->load_state(path).message(),
            path + ": its state is of another optimizer than nesterov")
      << "whose states have the same names";
}

TEST_F(TrainerTest, StepsFollowTheFormula) {
  const auto trainer = make(Optimizer::kMomentum);
  ASSERT_NE(trainer, nullptr);
  EXPECT_EQ(trainer->parameter_names(), std::vector<std::string>{"w"});
  Plain plain;
  for (int64_t step = 1; step <= 7; ++step) {
    const double at[2] = {1.0 + 0.125 * static_cast<double>(step), 0.5};
    const auto loss = trainer->step(x(at[0], at[1]), 0.015625f);
    ASSERT_TRUE(loss.is_ok()) << loss.status().to_string();
    EXPECT_NEAR(*loss, plain.step(at, 0.015625, 0.5), 1e-12);
    EXPECT_EQ(trainer->num_steps(), step);
    EXPECT_NEAR(w(*trainer)[0], plain.w[0], 1e-12);
    EXPECT_NEAR(w(*trainer)[1], plain.w[1], 1e-12);
  }
}

TEST_F(TrainerTest, StepsBegunByCallbacksGiveTheSameBits) {
  const auto waited = make(Optimizer::kAdam), begun = make(Optimizer::kAdam);
  ASSERT_TRUE(waited != nullptr && begun != nullptr);
  std::vector<double> expected, found;
  for (int i = 0; i < 5; ++i) expected.push_back(*waited->step(x(1, 2), 0.125f));
  for (int i = 0; i < 5; ++i) {
    const Status status = begun->step_async(x(1, 2), 0.125f, [&](const Result<double>& loss) {
      found.push_back(loss.is_ok() ? *loss : -1);
    });
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    begun->wait();
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(w(*begun), w(*waited));
}

TEST_F(TrainerTest, ACallbackBeginsTheNextStep) {
  const auto waited = make(Optimizer::kAdam), begun = make(Optimizer::kAdam);
  ASSERT_TRUE(waited != nullptr && begun != nullptr);
  std::vector<double> expected, found;
  for (int i = 0; i < 20; ++i) expected.push_back(*waited->step(x(1, 2), 0.125f));
  Trainer::Callback callback = [&](const Result<double>& loss) {
    found.push_back(loss.is_ok() ? *loss : -1);
    if (found.size() == 20) return;
    EXPECT_TRUE(begun->step_async(x(1, 2), 0.125f, callback).is_ok());
  };
  ASSERT_TRUE(begun->step_async(x(1, 2), 0.125f, callback).is_ok());
  begun->wait();
  EXPECT_EQ(found, expected);
  EXPECT_EQ(w(*begun), w(*waited));
}

TEST_F(TrainerTest, GoesWhileAStepIsUnderWay) {
  for (int i = 0; i < 50; ++i) {
    auto trainer = make(Optimizer::kSgd);
    ASSERT_NE(trainer, nullptr);
    int calls = 0;
    ASSERT_TRUE(
        trainer->step_async(x(1, 2), 0.125f, [&](const Result<double>&) { ++calls; }).is_ok());
    trainer.reset();
    EXPECT_EQ(calls, 1);
  }
}

TEST_F(TrainerTest, ALossThatIsNotFiniteNamesItsNodeAndChangesNothing) {
  const auto trainer = make(Optimizer::kSgd);
  ASSERT_NE(trainer, nullptr);
  ASSERT_TRUE(trainer->step(x(1, 2), 1000.0f).is_ok());  // far too fast: exp(w) is infinite now
  const auto before = w(*trainer);
  const auto loss = trainer->step(x(1, 2), 0.125f);
  ASSERT_FALSE(loss.is_ok());
  EXPECT_EQ(loss.status().code(), StatusCode::kRunFailed);
  EXPECT_EQ(loss.status().message(),
            "the loss is inf in step 2; node 'grow' was the first to make such a number; a smaller "
            "rate or clipped gradients may help");
  EXPECT_EQ(w(*trainer), before);
  EXPECT_EQ(trainer->num_steps(), 1);
  const auto bad = trainer->step(x(1, std::numeric_limits<double>::quiet_NaN()), 0.125f);
  EXPECT_NE(bad.status().message().find("input 'x' holds numbers that are not finite"),
            std::string::npos)
      << bad.status().message();
}

// What a step drops is zero, and divided by: the reason is found by the step's own numbers.
TEST_F(TrainerTest, ALossThatWhatIsDrawnMakesInfiniteNamesItsNode) {
  int num_infinite = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", tensor_type(ElementType::kDouble, {2}));
    const Value w = b.tensor<double>({2}, {1.0, 2.0});
    b.set_name(w, "w");
    const OpOptions drop{.name = "drop" + std::to_string(seed)};
    const Value kept =
        b.op("Dropout", {b.op("Mul", {x, w}), b.scalar(0.3), b.scalar(true)}, {}, drop);
    const Value over = b.op("Div", {x, kept}, {}, {.name = "divide"});
    b.output("loss", b.op("ReduceSum", {over}, {{"keepdims", int64_t{0}}}));
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto made = Trainer::create(library_, std::move(*graph), rules_, {.loss = "loss", .seed = seed},
                                {.num_threads = 1});
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    const auto loss = (*made)->step({{"x", Tensor::of<double>({2}, {1, 2})}}, 0.0f);
    if (loss.is_ok()) continue;
    ++num_infinite;
    EXPECT_NE(loss.status().message().find("node 'divide' was the first"), std::string::npos)
        << loss.status().message();
  }
  EXPECT_GT(num_infinite, 0);
  EXPECT_LT(num_infinite, 12);
}

TEST_F(TrainerTest, BadStepsAndModelsAreRefused) {
  const auto trainer = make(Optimizer::kSgd);
  ASSERT_NE(trainer, nullptr);
  EXPECT_EQ(trainer->step({}, 0.5f).status().message(), "a step needs input 'x' once");
  NamedTensors more = x(1, 2);
  more.emplace_back("w", Tensor::of<double>({2}, {1, 2}));
  EXPECT_EQ(trainer->step(more, 0.5f).status().message(), "a step has no input 'w' to give");
  EXPECT_EQ(trainer->step(x(1, 2), INFINITY).status().message(),
            "the rate must be a finite number");
  EXPECT_FALSE(trainer->step({{"x", Tensor::of<float>({2}, {1, 2})}}, 0.5f).is_ok());
  EXPECT_EQ(trainer->num_steps(), 0);
  EXPECT_TRUE(trainer->step(x(1, 2), 0.0f).is_ok());
}

TEST_F(TrainerTest, WhatIsSavedIsLoadedAgain) {
  const std::string path = ::testing::TempDir() + "/trained.onnx";
  const auto trained = make(Optimizer::kMomentum), other = make(Optimizer::kMomentum);
  ASSERT_TRUE(trained != nullptr && other != nullptr);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(trained->step(x(1, 2), 0.015625f).is_ok());
  ASSERT_TRUE(trained->save(path).is_ok());
  ASSERT_TRUE(other->step(x(2, 1), 0.015625f).is_ok());  // its states start anew, too
  const Status loaded = other->load(path);
  ASSERT_TRUE(loaded.is_ok()) << loaded.to_string();
  EXPECT_EQ(w(*other), w(*trained));
  EXPECT_EQ(other->num_steps(), 0);

  const auto session = Session::load(library_, path, {.num_threads = 1});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const auto outputs = (*session)->run(x(1, 2));
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  const double expected = *other->step(x(1, 2), 0.0f);
  EXPECT_DOUBLE_EQ(outputs->at(0).second.values<double>()[0], expected);
  EXPECT_FALSE(other->load(path + ".none").is_ok());
}

// x w while it is below 10, and w once more behind the loop: the parameter is read in both regions
// and outside.
TEST_F(TrainerTest, ParametersThatLoopsReadAreSavedAsTheyAre) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {}));
  const Value w = b.scalar(1.5);
  b.set_name(w, "w");
  const auto grown = b.while_loop(
      {.initial = {x}},
      [&](Value, ValueSpan carried) {
        return WhileTest{b.op("Less", {b.op("Mul", {carried[0], w}), b.scalar(10.0)}),
                         {carried[0]}};
      },
      [&](Value, ValueSpan carried) -> std::vector<Value> {
        return {b.op("Mul", {carried[0], w})};
      });
  const Value error = b.op("Sub", {b.op("Mul", {grown[0], w}), b.scalar(11.0)});
  b.output("loss", b.op("Mul", {error, error}));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto made = Trainer::create(library_, std::move(*graph), rules_, {.loss = "loss"}, {});
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  Trainer& trainer = **made;
  const NamedTensors input = {{"x", Tensor::scalar(1.25)}};
  for (int i = 0; i < 3; ++i) {
    const auto loss = trainer.step(input, 0.0001f);
    ASSERT_TRUE(loss.is_ok()) << loss.status().to_string();
  }
  EXPECT_NE(trainer.parameter("w").as<double>()[0], 1.5);
  EXPECT_EQ(trainer.output("none").data, nullptr);
  auto model = trainer.model();
  ASSERT_TRUE(model.is_ok()) << model.status().to_string();
  const auto session = Session::create(library_, std::move(*model), {.num_threads = 1});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const auto outputs = (*session)->run(input);
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_EQ(outputs->at(0).second.values<double>()[0], *trainer.step(input, 0.0f));
}

}  // namespace
}  // namespace eddy::testing
