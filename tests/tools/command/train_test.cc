// eddy train fits a line to rows of .npy files with each optimizer, and writes a model that eddy
// run runs with the weights found; equal seeds give equal losses; and what it cannot do ends in one
// line and the right exit code, with nothing written.
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "graph/io/tensor_file.h"
#include "tests/graph/io/training_models.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

template <typename T>
std::string data_file(const std::string& name, ElementType element, const std::vector<T>& values) {
  HostValue value = HostValue::tensor(element, {static_cast<int64_t>(values.size())});
  std::memcpy(value.bytes.data(), values.data(), value.bytes.size());
  const auto text = format_npy(value);
  EXPECT_TRUE(text.is_ok());
  return write_test_file(name, *text);
}

// 64 rows of target = 2 x - 1.
struct Files {
  std::string model = write_test_file("line.onnx", line_model());
  std::string made = fresh_folder("made") + "/trained.onnx";
  std::string log = made + ".log";
  std::string x, target;

  Files() {
    std::vector<float> xs, targets;
    for (int i = 0; i < 64; ++i) {
      xs.push_back(static_cast<float>(i) / 32 - 1);
      targets.push_back(2 * xs.back() - 1);
    }
    x = data_file("x.npy", ElementType::kFloat, xs);
    target = data_file("target.npy", ElementType::kFloat, targets);
  }

  std::vector<std::string> arguments(const std::string& optimizer, const std::string& rate,
                                     const std::string& steps) const {
    return {
        "train",   model, "--loss",  "loss", "--data",      "x=" + x,  "--data", "target=" + target,
        "--batch", "16",  "--steps", steps,  "--optimizer", optimizer, "--rate", rate,
        "-o",      made};
  }
};

TEST(Train, EachOptimizerFitsALine) {
  const Files files;
  for (const auto& [optimizer, rate] :
       std::vector<std::pair<std::string, std::string>>{{"sgd", "0.2"},
                                                        {"momentum", "0.05"},
                                                        {"nesterov", "0.05"},
                                                        {"adam", "0.05"},
                                                        {"adagrad", "0.5"}}) {
    SCOPED_TRACE(optimizer);
    auto arguments = files.arguments(optimizer, rate, "400");
    arguments.insert(arguments.end(), {"--log", files.log, "--clip", "10", "--json"});
    const Finished trained = run_eddy(arguments);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_EQ(trained.json()["steps"], 400);
    EXPECT_LT(trained.json()["last_loss"].get<double>(), 1e-3);

    std::ifstream log(files.log);
    std::string line;
    int64_t count = 0;
    for (; std::getline(log, line); ++count) {
      const json entry = json::parse(line);
      EXPECT_EQ(entry["step"], count + 1);
      EXPECT_TRUE(entry["loss"].is_number());
    }
    EXPECT_EQ(count, 400);

    const Finished run = run_eddy({"run", files.made, "--input", "x=" + files.x, "--input",
                                   "target=" + files.target, "--json"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const json y = run.json()["outputs"]["y"]["data"];
    EXPECT_NEAR(y[0].get<double>(), -3, 0.1);
  }
}

TEST(Train, EqualSeedsGiveEqualLosses) {
  const Files files;
  const auto loss = [&](const char* seed) {
    auto arguments = files.arguments("adam", "0.01", "30");
    arguments.insert(arguments.end(), {"--seed", seed, "--json"});
    const Finished trained = run_eddy(arguments);
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    return trained.json()["last_loss"].get<double>();
  };
  const double first = loss("7");
  EXPECT_EQ(loss("7"), first);
  EXPECT_NE(loss("8"), first);
}

TEST(Train, AResumedTrainingGoesOnAsIfItHadNotEnded) {
  const Files files;
  const Finished whole = run_eddy([&] {
    auto arguments = files.arguments("adam", "0.1", "11");
    arguments.push_back("--json");
    return arguments;
  }());
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const std::string state = files.made + ".state";
  auto first = files.arguments("adam", "0.1", "5"), second = files.arguments("adam", "0.1", "6");
  first.insert(first.end(), {"--state", state});
  second.insert(second.end(), {"--resume", state, "--state", state, "--json"});
  const Finished begun = run_eddy(first);
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  const Finished resumed = run_eddy(second);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resumed.json()["last_loss"], whole.json()["last_loss"]);
  auto other = files.arguments("momentum", "0.1", "1");
  other.insert(other.end(), {"--resume", state});
  const Finished refused = run_eddy(other);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("its state is of another optimizer than momentum"), std::string::npos)
      << refused.err;
}

TEST(Train, CtrlCSavesWhatWasTrained) {
  const Files files;
  auto arguments = files.arguments("sgd", "0.01", "1000000000");
  arguments.insert(arguments.end(), {"--log", files.log});
  const Finished stopped = run_eddy(arguments, {{.number = SIGINT, .once_written = files.log}});
  EXPECT_EQ(stopped.exit_code, 5) << stopped.err;
  EXPECT_NE(stopped.err.find("what was trained is in"), std::string::npos) << stopped.err;
  EXPECT_EQ(run_eddy({"info", files.made}).exit_code, 0);
}

void expect_refused(const Files& files, const std::vector<std::string>& arguments, int exit_code,
                    const std::string& words) {
  std::filesystem::remove(files.made);
  const Finished refused = run_eddy(arguments);
  EXPECT_EQ(refused.exit_code, exit_code) << refused.err;
  EXPECT_TRUE(is_one_line(refused.err)) << refused.err;
  EXPECT_NE(refused.err.find(words), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(files.made));
}

TEST(Train, BadInputEndsInOneLine) {
  const Files files;
  const auto good = files.arguments("sgd", "0.1", "3");
  const auto with = [&](const std::string& from, const std::string& to) {
    auto changed = good;
    for (std::string& argument : changed) {
      if (argument == from) argument = to;
    }
    return changed;
  };
  const std::string few = data_file<float>("few.npy", ElementType::kFloat, {1, 2, 3});
  const std::string wide =
      data_file<double>("wide.npy", ElementType::kDouble, std::vector<double>(64));
  const std::string x = "x=" + files.x;
  expect_refused(files, with(x, "x=" + few), 3, "target.npy has 64");
  expect_refused(files, with(x, "x=" + wide), 3, "input 'x' is float, but the file holds double");
  expect_refused(files, with(x, "z=" + files.x), 3, "'z', which is no input of the model");
  expect_refused(files, with(x, files.x), 2, "--data takes NAME=FILE.npy");
  expect_refused(files, with(x, "target=" + files.target), 3, "a step needs input 'x' once");
  expect_refused(files, with("loss", "gain"), 3, "there is no value 'gain'");
  expect_refused(files, with("loss", "y"), 3, "not one element: reduce it");
  expect_refused(files, with("16", "65"), 3, "--batch 65 is more than the 64 rows of the data");
  expect_refused(files, with("sgd", "lbfgs"), 2, "sgd, momentum, nesterov, adam or adagrad");
  expect_refused(files, with("0.1", "1e20"), 4, "in step 2");
  auto clipped = good;
  clipped.insert(clipped.end(), {"--clip", "0"});
  expect_refused(files, clipped, 2, "give a bound above 0; leave it out to clip nothing, not '0'");
}

TEST(Train, AStateOfOtherDataSeedOrBatchIsRefusedUnlessItIsMeant) {
  const Files files;
  const std::string state = files.made + ".state";
  auto first = files.arguments("sgd", "0.1", "2");
  first.insert(first.end(), {"--state", state});
  ASSERT_EQ(run_eddy(first).exit_code, 0);
  const auto resumed = [&](const std::string& from, const std::string& to) {
    auto arguments = files.arguments("sgd", "0.1", "2");
    arguments.insert(arguments.end(), {"--seed", "1", "--resume", state});
    for (std::string& argument : arguments) {
      if (argument == from) argument = to;
    }
    return arguments;
  };
  const std::string other =
      data_file<float>("other.npy", ElementType::kFloat, std::vector<float>(64, 0.5f));
  const std::string had = "its training had another ";
  expect_refused(files, resumed("16", "8"), 3, had + "--batch: 16, and now 8");
  expect_refused(files, resumed("1", "5"), 3, had + "--seed: 1, and now 5");
  expect_refused(files, resumed("x=" + files.x, "x=" + other), 3, had + "--data x: 64 rows");
  auto meant = resumed("16", "8");
  expect_refused(files, meant, 3, "--resume-changed goes on with it");
  meant.push_back("--resume-changed");
  const Finished finished = run_eddy(meant);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

TEST(Train, AModelsOwnTrainingIsFollowed) {
  const Files files;
  const std::string own = write_test_file("own.onnx", model_with_training());
  const std::vector<std::string> good = {
      "train", own,       "--data", "x=" + files.x, "--data",  "target=" + files.target, "--batch",
      "64",    "--steps", "3",      "-o",           files.made};
  auto arguments = good;
  arguments.push_back("--json");
  const Finished trained = run_eddy(arguments);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  // By hand: w begins as 2, c as 0, all 64 rows are the batch, whatever their order.
  double w = 2, c = 0, rate = 0.25, last = 0;
  for (int step = 0; step < 3; ++step, rate /= 2) {
    double loss = 0, w_slope = 0, c_slope = 0;
    for (int i = 0; i < 64; ++i) {
      const double x = i / 32.0 - 1, error = w * x + c - (2 * x - 1);
      loss += error * error / 64;
      w_slope += 2 * error * x / 64;
      c_slope += 2 * error / 64;
    }
    last = loss;
    w -= rate * w_slope;
    c -= rate * c_slope;
  }
  EXPECT_NEAR(trained.json()["last_loss"].get<double>(), last, 1e-5);
  const Finished run = run_eddy({"run", files.made, "--input", "x=" + files.x, "--input",
                                 "target=" + files.target, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NEAR(run.json()["outputs"]["y"]["data"][0].get<double>(), c - w, 1e-5);

  const Finished info = run_eddy({"info", own, "--json"});
  ASSERT_EQ(info.exit_code, 0) << info.err;
  EXPECT_EQ(info.json()["training"][0]["nodes"], 6);
  EXPECT_EQ(info.json()["training"][0]["updates"].size(), 3u);
  EXPECT_NE(run_eddy({"info", own})
                .out.find("training_info: 6 nodes, 1 to initialize, updates 3 initializers\n"),
            std::string::npos);

  auto clipped = good, without = good;
  clipped.insert(clipped.end(), {"--clip", "1"});
  expect_refused(files, clipped, 2, "--clip and --save are for trainings with --rate");
  without[1] = files.model;
  expect_refused(files, without, 2, "the model has no training_info; name a loss");
}

TEST(Train, WhatIsNotFiniteIsNotWritten) {
  const Files files;
  const Finished far = run_eddy(files.arguments("sgd", "1e30", "1"));
  EXPECT_EQ(far.exit_code, 0) << far.err;
  std::filesystem::remove(files.made);
  const Finished endless = run_eddy(files.arguments("sgd", "1e30", "2"));
  EXPECT_EQ(endless.exit_code, 4);
  EXPECT_NE(endless.err.find("the loss is inf in step 2"), std::string::npos) << endless.err;
  EXPECT_FALSE(std::filesystem::exists(files.made));
}

// The loss of the last step is finite, its gradient is not.
TEST(Train, ParametersThatAreNotFiniteAreNoResult) {
  const Files files;
  data_file("x.npy", ElementType::kFloat, std::vector<float>(64, 1e10f));
  auto arguments = files.arguments("sgd", "1e30", "1");
  const std::string state = files.made + ".state";
  arguments.insert(arguments.end(), {"--state", state});
  const Finished finished = run_eddy(arguments);
  EXPECT_EQ(finished.exit_code, 4) << finished.err;
  EXPECT_NE(finished.err.find("parameter 'w' is not finite after step 1"), std::string::npos)
      << finished.err;
  EXPECT_FALSE(std::filesystem::exists(files.made));
  EXPECT_FALSE(std::filesystem::exists(state));
}

TEST(Train, AFailureSavesTheStateOfWhatWasTrainedBefore) {
  const Files files;
  std::vector<float> xs(64, 0.5f);
  xs[40] = std::numeric_limits<float>::quiet_NaN();
  data_file("x.npy", ElementType::kFloat, xs);
  auto arguments = files.arguments("sgd", "0.01", "64");
  const std::string state = files.made + ".state";
  arguments.insert(arguments.end(), {"--state", state, "--seed", "3"});
  const Finished failed = run_eddy(arguments);
  EXPECT_EQ(failed.exit_code, 4);
  EXPECT_NE(failed.err.find("not finite"), std::string::npos) << failed.err;
  const bool is_first = failed.err.find("in step 1") != std::string::npos;
  EXPECT_FALSE(std::filesystem::exists(files.made)) << "a training that has failed has no result";
  EXPECT_EQ(std::filesystem::exists(state), !is_first);
  EXPECT_EQ(failed.err.find("trained before that") != std::string::npos, !is_first) << failed.err;
  EXPECT_FALSE(is_first) << "another seed tests more";
}

}  // namespace
}  // namespace eddy::test
