// eddy gradient writes a model that eddy run runs: the gradient through a loop whose trips the data
// decide, worked out by hand; and what it cannot do ends in one line and the right exit code.
#include <gtest/gtest.h>

#include "tests/graph/io/model_writer.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

// y = x * w^n, n the trips until it is no longer below `limit`; w = 2.
std::string power_model() {
  const WireWriter body = graph({
      .nodes = {node("Mul", {"z_in", "w"}, {"z_out"}, {}, "times"),
                node("Less", {"z_out", "limit"}, {"go_on"}, {}, "less")},
      .inputs = {info("i", int64s({})), info("cond_in", bools({})), info("z_in", floats({}))},
      .outputs = {info("go_on", bools({})), info("z_out", floats({}))},
      .name = "body",
  });
  return model(graph({
      .nodes = {node("Less", {"x", "limit"}, {"first"}, {}, "first_less"),
                node("Loop", {"", "first", "x"}, {"y"}, {graph_attribute("body", body)}, "power")},
      .inputs = {info("x", floats({})), info("limit", floats({}))},
      .outputs = {info("y", floats({}))},
      .initializers = {tensor<float>("w", {}, {2.0f})},
  }));
}

json run_at(const std::string& path, const char* x) {
  const Finished run = run_eddy({"run", path, "--set", x, "--set", "limit=20", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? run.json()["outputs"] : json();
}

TEST(Gradient, ALoopIsDifferentiatedAndRuns) {
  const std::string path = write_test_file("power.onnx", power_model());
  const std::string made = fresh_folder("made") + "/gradient.onnx";
  const Finished gradient = run_eddy({"gradient", path, "--loss", "y", "-o", made, "--json"});
  ASSERT_EQ(gradient.exit_code, 0) << gradient.err;
  const json report = gradient.json();
  ASSERT_EQ(report["gradients"].size(), 2u);
  EXPECT_EQ(report["gradients"][0]["output"], "x.grad");
  EXPECT_EQ(report["gradients"][1]["output"], "w.grad");
  EXPECT_EQ(report["gradients"][1]["initializer"], true);
  ASSERT_EQ(report["kept"].size(), 2u) << report;
  EXPECT_EQ(report["kept"][0]["class"], "captured");  // w stands outside of the loop
  EXPECT_EQ(report["kept"][1]["class"], "row");
  EXPECT_EQ(report["loops"][0]["bytes_per_iteration"], 4);

  const json three = run_at(made, "x=3");  // 3, 6, 12, 24
  EXPECT_EQ(three["y"]["data"], json::array({24.0}));
  EXPECT_EQ(three["x.grad"]["data"], json::array({8.0}));
  EXPECT_EQ(three["w.grad"]["data"], json::array({36.0}));
  const json none = run_at(made, "x=30");  // no trip
  EXPECT_EQ(none["x.grad"]["data"], json::array({1.0}));
  EXPECT_EQ(none["w.grad"]["data"], json::array({0.0}));
}

TEST(Gradient, AGradientIsDifferentiatedAgain) {
  const std::string path = write_test_file("power.onnx", power_model());
  const std::string folder = fresh_folder("made");
  const std::string first = folder + "/first.onnx", second = folder + "/second.onnx";
  ASSERT_EQ(run_eddy({"gradient", path, "--loss", "y", "-o", first}).exit_code, 0);
  const Finished again = run_eddy(
      {"gradient", first, "--loss", "x.grad", "--wrt", "w", "--suffix", ".2", "-o", second});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  // x.grad = w^3: of w, 3 w^2.
  EXPECT_EQ(run_at(second, "x=3")["w.2"]["data"], json::array({12.0}));
}

TEST(Gradient, PlainControlFlowGivesTheSame) {
  const std::string path = write_test_file("power.onnx", power_model());
  const std::string made = fresh_folder("made") + "/plain.onnx";
  const Finished plain = run_eddy({"gradient", path, "--loss", "y", "--plain", "-o", made});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(run_at(made, "x=3")["w.grad"]["data"], json::array({36.0}));
  const Finished nodes = run_eddy({"info", made, "--json"});
  ASSERT_EQ(nodes.exit_code, 0) << nodes.err;
  EXPECT_EQ(nodes.out.find("eddy.While"), std::string::npos) << nodes.out;
  EXPECT_EQ(nodes.out.find("eddy.onnx"), std::string::npos) << nodes.out;
}

TEST(Gradient, NamesChooseWhatIsDifferentiated) {
  const std::string path = write_test_file("power.onnx", power_model());
  const std::string made = fresh_folder("made") + "/gradient.onnx";
  const Finished one = run_eddy({"gradient", path, "--loss", "y", "--wrt", "w", "-o", made});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_NE(one.out.find("w.grad: of initializer w"), std::string::npos) << one.out;
  EXPECT_FALSE(run_at(made, "x=3").contains("x.grad"));
  const Finished seeded =
      run_eddy({"gradient", path, "--loss", "y", "--wrt", "all", "--seed", "s", "-o", made});
  ASSERT_EQ(seeded.exit_code, 0) << seeded.err;
  const Finished run =
      run_eddy({"run", made, "--set", "x=3", "--set", "limit=20", "--set", "s=10", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["outputs"]["w.grad"]["data"], json::array({360.0}));
}

TEST(Gradient, LoopsKeepWhatTheyAreTold) {
  const std::string path = write_test_file("power.onnx", power_model());
  const std::string made = fresh_folder("made") + "/gradient.onnx";
  const Finished all = run_eddy({"gradient", path, "--loss", "y", "--explain", "-o", made});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.out.find("power saves all: 4 bytes an iteration\n"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("its shape is fixed"), std::string::npos) << all.out;
  for (const char* save : {"carried", "every:2", "grow", "power=every:1"}) {
    const Finished less =
        run_eddy({"gradient", path, "--loss", "y", "--save", save, "-o", made, "--json"});
    ASSERT_EQ(less.exit_code, 0) << less.err;
    EXPECT_EQ(less.json()["loops"][0]["state_bytes"], 4) << save;
    const json three = run_at(made, "x=3");
    EXPECT_EQ(three["x.grad"]["data"], json::array({8.0})) << save;
    EXPECT_EQ(three["w.grad"]["data"], json::array({36.0})) << save;
    EXPECT_EQ(run_at(made, "x=30")["w.grad"]["data"], json::array({0.0})) << save;
  }
}

void expect_refused(const std::vector<std::string>& arguments, int exit_code,
                    const std::string& words) {
  const Finished refused = run_eddy(arguments);
  EXPECT_EQ(refused.exit_code, exit_code) << refused.err;
  EXPECT_TRUE(is_one_line(refused.err)) << refused.err;
  EXPECT_NE(refused.err.find(words), std::string::npos) << refused.err;
}

TEST(Gradient, BadInputEndsInOneLine) {
  const std::string path = write_test_file("power.onnx", power_model());
  const std::string made = fresh_folder("made") + "/gradient.onnx";
  expect_refused({"gradient", path, "--loss", "z", "-o", made}, 3,
                 "there is no value 'z' to take as the loss");
  expect_refused({"gradient", path, "--loss", "y", "--wrt", "limit", "-o", made}, 3,
                 "the loss 'y' does not depend on 'limit'; leave it out of wrt");
  expect_refused({"gradient", path, "--loss", "y", "--stop", "v", "-o", made}, 3,
                 "there is no value 'v' to stop at");
  expect_refused({"gradient", path, "-o", made}, 2, "--loss");
  expect_refused({"gradient", path, "--loss", "y"}, 2, "-o");
  expect_refused({"gradient", path, "--loss", "y", "-o", path}, 2, "power.onnx");
  expect_refused({"gradient", path, "--loss", "y", "--save", "some", "-o", made}, 2,
                 "--save: a loop saves all, carried, every:K or grow, not 'some'");
  expect_refused({"gradient", path, "--loss", "y", "--save", "every:0", "-o", made}, 2,
                 "every:K takes a whole K of at least 1, or an input's name, not '0'");
  expect_refused({"gradient", path, "--loss", "y", "--save", "pow=grow", "-o", made}, 3,
                 "there is no loop 'pow' to save grow of; there are 'power'");
  expect_refused({"gradient", "missing.onnx", "--loss", "y", "-o", made}, 3, "missing.onnx");
}

}  // namespace
}  // namespace eddy::test
