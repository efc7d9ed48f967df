// Claim: `eddy run --ranks N` starts itself as N ranks, or runs as those that mpirun started: rank
// 0 writes the results, once; what goes wrong is said once, with the rank, and ends all of them
// with its exit code; and no process is left.
#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/io/tensor_file.h"
#include "tests/runtime/mpi/job.h"
#include "tests/tools/command/command_runner.h"
#include "tests/tools/command/rank_jobs.h"
#include "tests/tools/command/rank_models.h"

namespace eddy::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(RankRun, StartsItselfAsSoManyRanks) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  for (const int n : {1, 2, 3}) {
    const Job job = run({path, "--ranks", std::to_string(n), "--set", "x=1.5", "--json"});
    ASSERT_EQ(job.exit_code, 0) << job.err;
    EXPECT_EQ(job.err, "");
    const json outputs = json::parse(job.out)["outputs"];
    EXPECT_EQ(outputs["y"]["data"], json({1.5 * n, 1.5 * n})) << outputs;
    EXPECT_THAT(outputs["t"].dump(), HasSubstr(std::to_string(n * (n - 1) / 2)));
  }
}

TEST_F(RankRun, RunsAsTheRanksThatMpirunStarted) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  const Job job = run({path, "--set", "x=2"}, false, 3);
  ASSERT_EQ(job.exit_code, 0) << job.err;
  EXPECT_THAT(job.out, HasSubstr("6 6"));
  EXPECT_EQ(job.out.find("y:"), job.out.rfind("y:")) << "said once:\n" << job.out;
  expect_one_line(run({path, "--set", "x=2", "--ranks", "2"}, false, 3), 3,
                  {"--ranks 2", "mpirun has started 3"});
}

TEST_F(RankRun, UnderAnotherMpirunAWrongCommandLineIsNamedOnce) {
  expect_one_line(run({"x.onnx", "--bogus"}, false), 2, {"eddy run: ", "--bogus"});
}

TEST_F(RankRun, LoopsWithSharedAndAgreedTests) {
  const std::string shared = write_test_file("shared.onnx", halving_model(false));
  const Job job = run({shared, "--ranks", "2", "--set", "x=64", "--json"});
  ASSERT_EQ(job.exit_code, 0) << job.err;
  // 64, 16, 4, 1, then the sum 2 is above 1, then 0.5 is not.
  EXPECT_EQ(json::parse(job.out)["loops"][0]["iterations"], 5) << job.out;
  const std::string own = write_test_file("own.onnx", halving_model(true));
  expect_one_line(run({own, "--ranks", "2", "--set", "x=64"}), 3,
                  {"own.onnx", "loop halve", "may differ", "all, any or root"});
  const Job agreed =
      run({own, "--ranks", "2", "--set", "x=64", "--agree", "halve=any", "--check-ranks"});
  EXPECT_EQ(agreed.exit_code, 0) << agreed.err;
  const std::string says = write_test_file("says.onnx", halving_model(true, 8, "any"));
  const Job by_file = run({says, "--ranks", "2", "--set", "x=64", "--json"});
  ASSERT_EQ(by_file.exit_code, 0) << by_file.err;
  // 64, 16 and 4 are above 1, then 1 is not.
  EXPECT_EQ(json::parse(by_file.out)["loops"][0]["iterations"], 4) << by_file.out;
  const std::string wrong = write_test_file("wrong.onnx", halving_model(true, 8, "both"));
  expect_one_line(run({wrong, "--ranks", "2", "--set", "x=64"}), 3,
                  {"node 'halve' (Loop)", "'eddy.agree' is 'both'", "all, any, root or root:RANK"});
}

TEST_F(RankRun, AskedWhereTheyStandAllRanksSaySo) {
  const std::string path = write_test_file("count.onnx", counting_model());
  const Finished job = run_eddy({"run", path, "--ranks", "2", "--set", "trip=9223372036854775807",
                                 "--set", "x=0", "--set", "limit=inf"},
                                {{SIGQUIT, 4000}, {SIGINT, 1000}});
  EXPECT_EQ(job.exit_code, 5) << job.err;
  for (const char* rank : {"rank 0: 1 run(s) in flight", "rank 1: 1 run(s) in flight", "count["}) {
    EXPECT_THAT(job.err, HasSubstr(rank));
  }
}

// Each rank's share is at least one byte, as none at all is no limit.
TEST_F(RankRun, AMemoryLimitOfAByteIsOne) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  expect_one_line(run({path, "--ranks", "2", "--set", "x=1.5", "--memory", "1"}), 4,
                  {"of a limit of 1", "--memory, of which each rank has its share, raises it"});
}

TEST_F(RankRun, WhatSaysNothingOrTwoThingsIsRefused) {
  const std::string own = write_test_file("own.onnx", halving_model(true));
  expect_one_line(run({own, "--ranks", "2", "--set", "x=64", "--split", ""}), 2,
                  {"--split: give a dimension's name"});
  expect_one_line(
      run({own, "--ranks", "2", "--set", "x=64", "--agree", "halve=any", "--agree", "halve=all"}),
      3, {"--agree halve: it was given before"});
}

// Products of other sizes round otherwise.
void expect_near(const json& found, const json& expected) {
  for (const auto& [name, value] : expected.items()) {
    EXPECT_EQ(found[name]["shape"], value["shape"]) << name;
    const auto a = found[name]["data"].get<std::vector<double>>();
    const auto b = value["data"].get<std::vector<double>>();
    ASSERT_EQ(a.size(), b.size()) << name;
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << name << " " << i;
  }
}

// s2: what the models' writer calls the first symbolic dimension.
TEST_F(RankRun, ASplitBatchGivesWhatOneRankGives) {
  const std::string path = write_test_file("samples.onnx", sample_model(false));
  for (const int samples : {1, 2, 5, 8}) {
    const std::vector<std::string> words = {
        path, "--random-inputs", "7", "--dim", "s2=" + std::to_string(samples), "--json"};
    std::vector<std::string> alone = words;
    alone.insert(alone.begin(), "run");
    const json expected = run_eddy(alone).json()["outputs"];
    ASSERT_EQ(expected["y"]["shape"], json({samples, 2}));
    for (const int n : {2, 3}) {
      std::vector<std::string> split = words;
      split.insert(split.end(),
                   {"--ranks", std::to_string(n), "--split", "batch", "--repeat", "2"});
      const Job job = run(split);
      ASSERT_EQ(job.exit_code, 0) << job.err;
      expect_near(json::parse(job.out)["outputs"], expected);
    }
  }
}

TEST_F(RankRun, ABatchThatCantBeSplitIsRefusedWithTheNode) {
  const std::string path = write_test_file("crossed.onnx", sample_model(true));
  const std::vector<std::string> words = {path, "--ranks", "2", "--set", "x=1", "--split"};
  const auto split = [&](const std::string& dimension) {
    std::vector<std::string> all = words;
    all.push_back(dimension);
    return run(all);
  };
  expect_one_line(split("batch"), 3, {"--split batch", "crossed.onnx", "mean"});
  expect_one_line(split("time"), 3, {"no dimension of that name; it has s2"});
  const Finished alone = run_eddy({"run", path, "--set", "x=1", "--split", "batch"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("give --ranks N"));
}

// Whichever rank it is, and however much later the others come to the run.
TEST_F(RankRun, ARankThatRefusesItsInputsEndsTheRunOfAllWithThat) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  for (const uint32_t wrong : {0u, 2u}) {
    std::string base;
    for (uint32_t r = 0; r < 3; ++r) {
      const HostValue x =
          HostValue::tensor(r == wrong ? ElementType::kDouble : ElementType::kFloat, {2});
      const std::string name = "x" + std::to_string(wrong) + "_" + std::to_string(r) + ".npy";
      base = write_test_file(name, *format_npy(x));
      base.resize(base.size() - 5);
    }
    for (int round = 0; round < 4; ++round) {
      const Job job = run({path, "--ranks", "3", "--input", "x=" + base + "{rank}.npy"});
      expect_one_line(job, 3, {"input 'x' must be float[2], but double[2] was given"});
    }
  }
}

TEST_F(RankRun, ASplitBatchIsOneFile) {
  const std::string path = write_test_file("samples.onnx", sample_model(false));
  const Finished refused =
      run_eddy({"run", path, "--ranks", "2", "--split", "batch", "--input", "x=part{rank}.npy"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("x=part{rank}.npy names another file for each"));
}

// The same for a batch whose size the model fixes, which one that takes no other size refuses.
TEST_F(RankRun, ABatchOfFixedSizeIsSplitToo) {
  const auto model_of = [](std::string_view op, const Names& inputs, const Messages& initializers) {
    return model(graph({.nodes = {node(op, inputs, {"y"}, {}, "only")},
                        .inputs = {info("x", floats({5, 2}))},
                        .outputs = {untyped("y")},
                        .initializers = initializers}));
  };
  const std::string path = write_test_file("fixed.onnx", model_of("Tanh", {"x"}, {}));
  const std::vector<std::string> words = {path, "--random-inputs", "3", "--json"};
  std::vector<std::string> alone = words, split = words;
  alone.insert(alone.begin(), "run");
  split.insert(split.end(), {"--ranks", "2", "--split", "batch"});
  const Job job = run(split);
  ASSERT_EQ(job.exit_code, 0) << job.err;
  expect_near(json::parse(job.out)["outputs"], run_eddy(alone).json()["outputs"]);
  const std::string other = write_test_file(
      "other.onnx", model_of("Reshape", {"x", "shape"}, {tensor<int64_t>("shape", {1}, {10})}));
  expect_one_line(run({other, "--random-inputs", "3", "--ranks", "2", "--split", "batch"}), 3,
                  {"--split batch", "other.onnx can't be run in parts"});
}

TEST_F(RankRun, InputsOnTheRootComeToAllRanks) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  // Of ranks with values of their own, those of rank 0 count.
  const std::string x = write_test_file("x0.pb", tensor<float>("x", {2}, {1.5f, -2}).data());
  const std::string files = x.substr(0, x.size() - 4) + "{rank}.pb";
  const std::vector<std::string> words = {path, "--ranks", "3", "--input", "x=" + files, "--json"};
  const Job lacking = run(words);
  EXPECT_EQ(lacking.exit_code, 3) << lacking.err;
  std::vector<std::string> on_root = words;
  on_root.insert(on_root.end(), {"--inputs-on", "root"});
  const Job job = run(on_root);
  ASSERT_EQ(job.exit_code, 0) << job.err;
  EXPECT_EQ(json::parse(job.out)["outputs"]["y"]["data"], json({4.5, -6}));
  expect_one_line(run({path, "--ranks", "2", "--inputs-on", "root"}), 3, {"no value for input x"});
  const std::string samples = write_test_file("samples.onnx", sample_model(false));
  const std::string own =
      write_test_file("s0.pb", tensor<float>("x", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}).data());
  const Job split = run({samples, "--ranks", "2", "--split", "batch", "--inputs-on", "root",
                         "--input", "x=" + own.substr(0, own.size() - 4) + "{rank}.pb", "--json"});
  ASSERT_EQ(split.exit_code, 0) << split.err;
  EXPECT_EQ(json::parse(split.out)["outputs"]["t"]["shape"][0], 3) << split.out;
}

TEST_F(RankRun, LocalOutputsAreShownByRank) {
  const std::string path = write_test_file(
      "number.onnx",
      model(graph({
          .nodes = {talk("Rank", {}, {"r"}, "number"), talk("AllReduce", {"r"}, {"t"}, "sum")},
          .outputs = {info("r", int64s({})), info("t", int64s({}))},
      })));
  const std::vector<std::string> words = {path, "--ranks", "2", "--local-outputs"};
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const Job job = run(as_json);
  ASSERT_EQ(job.exit_code, 0) << job.err;
  const json ranks = json::parse(job.out)["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_NE(ranks[0]["outputs"]["r"], ranks[1]["outputs"]["r"]);
  EXPECT_EQ(ranks[0]["outputs"]["t"], ranks[1]["outputs"]["t"]);
  const std::string said = run(words).out;
  EXPECT_LT(said.find("rank 0:\n"), said.find("rank 1:\n")) << said;
  std::vector<std::string> in_one_folder = words;
  in_one_folder.insert(in_one_folder.end(), {"--output-dir", fresh_folder("out")});
  const Job refused = run(in_one_folder);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("{rank}"));
}

TEST_F(RankRun, LocalOutputsOfASplitBatchAreItsParts) {
  const std::string path = write_test_file("samples.onnx", sample_model(false));
  const Job job = run({path, "--random-inputs", "7", "--dim", "s2=2", "--ranks", "3", "--split",
                       "batch", "--local-outputs", "--json"});
  ASSERT_EQ(job.exit_code, 0) << job.err;
  const json ranks = json::parse(job.out)["ranks"];
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0]["outputs"]["y"]["shape"], json({1, 2}));
  EXPECT_EQ(ranks[1]["outputs"]["y"]["shape"], json({1, 2}));
  EXPECT_TRUE(ranks[2].is_null());
}

TEST_F(RankRun, AFileThatOneRankLacksIsNamedOnce) {
  const std::string path = write_test_file("rank0.onnx", summing_model());
  const std::string both = path.substr(0, path.size() - 6) + "{rank}.onnx";
  expect_one_line(run({both, "--ranks", "2", "--set", "x=1"}), 3, {"rank 1", "rank1.onnx"});
  const std::string model = write_test_file("sum.onnx", summing_model());
  const Job job = run({model, "--ranks", "2", "--input", "x=" + path + "{rank}.npy"});
  EXPECT_EQ(job.exit_code, 3) << job.err;
  EXPECT_THAT(job.err, HasSubstr("rank0.onnx0.npy"));
}

TEST_F(RankRun, ANodeThatFailsOnOneRankEndsAllOfThem) {
  const std::string path = write_test_file("divide.onnx", dividing_model());
  expect_one_line(run({path, "--ranks", "3", "--set", "x=6"}), 4, {"rank 1", "divide"});
}

TEST_F(RankRun, GraphsThatWouldMixUpAreRefusedBeforeAnythingIsSent) {
  write_test_file("rank0.onnx", ordered_model(true));
  const std::string path = write_test_file("rank1.onnx", ordered_model(false));
  const std::string both = path.substr(0, path.size() - 6) + "{rank}.onnx";
  expect_one_line(run({both, "--ranks", "2", "--set", "x=1"}), 3,
                  {"sum (AllReduce sum float[2])", "copy (Broadcast"});
}

TEST_F(RankRun, ALauncherThatStartsNoRanksIsNoSuccess) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  for (const char* const program : {"/bin/true", "/bin/false"}) {
    expect_one_line(run({path, "--ranks", "2", "--set", "x=1", "--mpirun", program}), 3,
                    {program, "0 of 2 ranks", "name Open MPI's mpirun"});
  }
}

TEST_F(RankRun, RanksThatAllFailSayItOnce) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  expect_one_line(run({path, "--ranks", "3"}), 3, {"no value for input x"});
  expect_one_line(run({path, "--ranks", "2", "--input", "x=none{rank}.npy"}), 3, {"none0.npy"});
}

TEST_F(RankRun, AValueMayBeForTheModelOfOneRankAlone) {
  write_test_file("rank0.onnx", renamed_summing_model("a"));
  const std::string path = write_test_file("rank1.onnx", renamed_summing_model("b"));
  const std::string both = path.substr(0, path.size() - 6) + "{rank}.onnx";
  const Job job = run({both, "--ranks", "2", "--set", "a=1", "--set", "b=2", "--json"});
  ASSERT_EQ(job.exit_code, 0) << job.err;
  EXPECT_EQ(json::parse(job.out)["outputs"]["y"]["data"], json({3, 3}));
  expect_one_line(run({both, "--ranks", "2", "--set", "a=1", "--set", "c=2"}), 3,
                  {"rank 1", "no value for input b"});
}

TEST(RankRunWithout, ALauncherItSaysWhatToInstall) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  const std::string kept = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const Finished run = run_eddy({"run", path, "--ranks", "2", "--set", "x=1"});
  setenv("PATH", kept.c_str(), 1);
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
  EXPECT_THAT(run.err, HasSubstr("openmpi-bin"));
}

}  // namespace
}  // namespace eddy::test
