// Claim: `eddy plan --ranks` shows each rank's plan and communication with the joint verdict, ranks
// with equal plans once; what ranks may decide differently, or would mix up, is refused in one line
// that says where and what to do; and none of it needs MPI.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"
#include "tests/tools/command/rank_models.h"

namespace eddy::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Without a launcher in PATH.
Finished plan(std::vector<std::string> arguments) {
  setenv("PATH", "/nonexistent", 1);
  arguments.insert(arguments.begin(), "plan");
  return run_eddy(arguments);
}

void expect_refused(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& words, int exit_code = 3) {
  const Finished finished = plan(arguments);
  EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
  EXPECT_TRUE(is_one_line(finished.err)) << finished.err;
  for (const std::string& word : words) EXPECT_THAT(finished.err, HasSubstr(word));
}

TEST(RankPlan, RanksWithOnePlanAreShownOnceAndProved) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  const Finished text = plan({path, "--ranks", "3"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("ranks 0 to 2:\n"));
  EXPECT_THAT(text.out, HasSubstr("total (AllReduce sum float[2]), on channel 0 of ranks 0, 1, 2"));
  EXPECT_THAT(text.out, HasSubstr("numbers (AllReduce sum int64[]), on channel 1"));
  EXPECT_THAT(text.out, HasSubstr("6 operations on 3 ranks"));
  EXPECT_THAT(text.out, HasSubstr("joint proof: safe"));
  const json document = plan({path, "--ranks", "3", "--json"}).json();
  EXPECT_EQ(document["proof"], "safe");
  ASSERT_EQ(document["plans"].size(), 1u);
  EXPECT_EQ(document["plans"][0]["ranks"], json({0, 1, 2}));
  EXPECT_EQ(document["plans"][0]["operations"], 2);
}

TEST(RankPlan, ALoopSaysHowItsRanksDecide) {
  const std::string shared = write_test_file("shared.onnx", halving_model(false));
  EXPECT_THAT(plan({shared, "--ranks", "2"}).out, HasSubstr("loop halve: ranks decide alike\n"));
  const std::string own = write_test_file("own.onnx", halving_model(true));
  expect_refused({own, "--ranks", "2"}, {"own.onnx", "loop halve", "halve/sum", "may differ",
                                         "halve/more", "all, any or root"});
  const Finished agreed = plan({own, "--ranks", "2", "--agree", "halve=any"});
  EXPECT_EQ(agreed.exit_code, 0) << agreed.err;
  EXPECT_THAT(agreed.out, HasSubstr("loop halve"));
  EXPECT_THAT(agreed.out, HasSubstr("joint proof: safe"));
}

TEST(RankPlan, GraphsOfTheirOwnThatMixUpAreRefusedByName) {
  write_test_file("rank0.onnx", ordered_model(true));
  const std::string path = write_test_file("rank1.onnx", ordered_model(false));
  const std::string both = path.substr(0, path.size() - 6) + "{rank}.onnx";
  expect_refused({both, "--ranks", "2"},
                 {"rank 0 has sum (AllReduce sum float[2])", "rank 1 has copy (Broadcast float[2]",
                  "on channel 0 of ranks 0, 1"});
  const json document = plan({both, "--ranks", "2", "--json"}).json();
  EXPECT_EQ(document["proof"], "unsafe");
  EXPECT_EQ(document["plans"].size(), 2u);
  write_test_file("rank1.onnx", ordered_model(true));
  EXPECT_EQ(plan({both, "--ranks", "2"}).exit_code, 0);
}

TEST(RankPlan, APictureHoldsTheLanesOfAllRanks) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  const std::string svg = fresh_folder("pictures") + "/ranks.svg";
  const Finished drawn = plan({path, "--ranks", "2", "--svg", svg});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  std::ifstream file(svg);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_THAT(text, HasSubstr(">rank 0<"));
  EXPECT_THAT(text, HasSubstr(">rank 1<"));
  // An operation of both is joined, once.
  const std::string joint = "<title>total, on channel 0 of ranks 0, 1</title>";
  EXPECT_NE(text.find(joint), std::string::npos) << text;
  EXPECT_EQ(text.find(joint), text.rfind(joint));
}

TEST(RankPlan, InfoSaysWhatRanksCanBeMadeOf) {
  setenv("PATH", "/nonexistent", 1);
  const json mpi = run_eddy({"info", "--json"}).json()["mpi"];
  EXPECT_FALSE(mpi["is_available"].get<bool>());
  EXPECT_THAT(mpi["reason"].get<std::string>(), HasSubstr("openmpi-bin"));
  EXPECT_THAT(run_eddy({"info"}).out, HasSubstr("ranks: " + mpi["reason"].get<std::string>()));
}

TEST(RankPlan, WrongOptionsAreNamed) {
  const std::string path = write_test_file("own.onnx", halving_model(true));
  expect_refused({path, "--ranks", "0"}, {"--ranks"}, 2);
  expect_refused({path, "--ranks", "2", "--agree", "halve=some"},
                 {"--agree halve=some", "all, any, root"});
  expect_refused({path, "--ranks", "2", "--agree", "double=any"},
                 {"--agree double", "no loop or branch"});
  expect_refused({path, "--ranks", "2", "--agree", "halve=root:2"},
                 {"--agree halve=root:2", "ranks 0 to 1"});
  expect_refused({path, "--ranks", "2", "--replicated", "z"}, {"--replicated z", "no such input"});
  expect_refused({path, "--agree", "halve=any"}, {"--ranks"}, 2);
  expect_refused({path, "--ranks", "2", "--steps"}, {"--steps", "one rank"}, 2);
  expect_refused({path, "--ranks", "2", "--save", "p.plan"}, {"--save", "one rank"}, 2);
  const std::string part = write_test_file(
      "part.onnx", model(graph({.nodes = {talk("AllReduce", {"x"}, {"y"}, "far",
                                               {attribute("group", std::vector<int64_t>{0, 7})})},
                                .inputs = {info("x", floats({2}))},
                                .outputs = {info("y", floats({2}))}})));
  expect_refused({part, "--ranks", "2"}, {"part.onnx", "far", "7"});
}

// As a session plans them: each has a stream, so that neither waits for the other.
TEST(RankPlan, ASendBesideARecvIsSafe) {
  WireWriter type;
  type.bytes(1, "type");
  type.message(14, type_proto(floats({2}), [](int64_t) { return std::string(); }));
  type.integer(20, 13);
  std::string path;
  for (const int64_t rank : {0, 1}) {
    const WireWriter send =
        talk("Send", {"x"}, {"s"}, "send", {attribute("root", int64_t{1 - rank})});
    const WireWriter receive =
        talk("Recv", {}, {"r"}, "receive", {attribute("root", int64_t{1 - rank}), type});
    path = write_test_file("pair" + std::to_string(rank) + ".onnx",
                           model(graph({.nodes = {send, receive},
                                        .inputs = {info("x", floats({2}))},
                                        .outputs = {info("r", floats({2}))}})));
  }
  const Finished shown = plan({path.substr(0, path.size() - 6) + "{rank}.onnx", "--ranks", "2"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("joint proof: safe"));
}

}  // namespace
}  // namespace eddy::test
