// Claim: `eddy conformance --ranks N --split batch` passes what it passes on one rank where samples
// keep apart, says of other tests why they are not, and fails where outputs differ; each test is
// said once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/io/model_writer.h"
#include "tests/runtime/mpi/job.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class SplitConformance : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
    root_ = fresh_folder("tests");
  }

  // One data set for each of `outputs`.
  static void add_test(const std::string& name, const std::string& bytes, const WireWriter& input,
                       const std::vector<WireWriter>& outputs) {
    const std::string folder = "tests/" + name + "/";
    write_test_file(folder + "model.onnx", bytes);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string set = folder + "test_data_set_" + std::to_string(i) + "/";
      write_test_file(set + "input_0.pb", input.data());
      write_test_file(set + "output_0.pb", outputs[i].data());
    }
  }
  // y = -x, or the mean of its rows, in as many rows as x has.
  static std::string model_of(std::string_view op) {
    const Messages attributes =
        op == "Neg" ? Messages() : Messages{attribute("axes", std::vector<int64_t>{0})};
    return model(graph({.nodes = {node(op, {"x"}, {"y"}, attributes, "only")},
                        .inputs = {info("x", floats({3, 1}))},
                        .outputs = {untyped("y")}}));
  }

  Job run(const std::string& ranks, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"conformance", root_, "--ranks", ranks};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Job job = run_job({.program = "tools/command/eddy",
                             .arguments = std::move(arguments),
                             .starts_itself = true});
    EXPECT_FALSE(job.is_late) << job.err;
    EXPECT_EQ(job.num_left, 0) << job.err;
    return job;
  }

  std::string root_;
  const WireWriter x_ = tensor<float>("x", {3, 1}, {1, 2, 3});
  const WireWriter y_ = tensor<float>("y", {3, 1}, {-1, -2, -3});
  const WireWriter wrong_ = tensor<float>("y", {3, 1}, {-1, -2, -4});
};

TEST_F(SplitConformance, WhatKeepsSamplesApartPassesOnAnyNumberOfRanks) {
  add_test("test_neg", model_of("Neg"), x_, {y_, y_});
  add_test("test_mean", model_of("ReduceMean"), x_, {tensor<float>("y", {1, 1}, {2})});
  for (const char* const ranks : {"1", "2", "4"}) {
    const Job job = run(ranks, {"--split", "batch", "--json"});
    EXPECT_EQ(job.exit_code, 0) << job.err;
    const json document = json::parse(job.out);
    EXPECT_EQ(document["summary"], json({{"passed", 1}, {"failed", 0}, {"unsupported", 1}}));
    EXPECT_EQ(document["tests"][0]["status"], "unsupported");
    EXPECT_THAT(document["tests"][0]["reason"].get<std::string>(), HasSubstr("ReduceMean"));
    EXPECT_EQ(document["tests"][1]["status"], "passed");
  }
}

TEST_F(SplitConformance, ADifferenceFailsItsTestAndTheOthersGoOn) {
  add_test("test_a", model_of("Neg"), x_, {y_, wrong_, y_});
  add_test("test_b", model_of("Neg"), x_, {y_});
  add_test("test_c", "no model", x_, {y_});
  const Job job = run("2", {"--split", "batch"});
  EXPECT_EQ(job.exit_code, 1);
  EXPECT_THAT(job.out, HasSubstr("test_a: test_data_set_1: output y at [2,0]"));
  EXPECT_THAT(job.out, HasSubstr("1 passed, 2 failed, 0 unsupported"));
  EXPECT_TRUE(is_one_line(job.err)) << job.err;
}

TEST_F(SplitConformance, RanksWithoutASplitAreAMistake) {
  add_test("test_neg", model_of("Neg"), x_, {y_});
  const Job job = run("2");
  EXPECT_EQ(job.exit_code, 2);
  EXPECT_THAT(job.err, HasSubstr("add --split batch"));
  EXPECT_EQ(run_eddy({"conformance", root_, "--split", "batch"}).exit_code, 2);
}

TEST_F(SplitConformance, AFolderWithoutTestsIsSaidOnce) {
  const Job job = run("2", {"--split", "batch"});
  EXPECT_EQ(job.exit_code, 3);
  EXPECT_TRUE(is_one_line(job.err)) << job.err;
}

}  // namespace
}  // namespace eddy::test
