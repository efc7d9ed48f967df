// Claim: eddy bench nets measures each ONNX file of a folder, and the networks that Eddy builds,
// with each number of threads, also without a rival, says of a model that Eddy does not run why,
// and refuses a folder of no models. Of what it writes nothing stays, also when it is interrupted.
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/graph/io/model_writer.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

// y = x * 2, floats [1, 3, 4, 4].
std::string small_net() {
  return model(graph({.nodes = {node("Mul", {"x", "two"}, {"y"})},
                      .inputs = {info("x", floats({1, 3, 4, 4}))},
                      .outputs = {info("y", floats({1, 3, 4, 4}))},
                      .initializers = {tensor<float>("two", {}, {2})}}));
}

std::string unknown_net() {
  return model(graph({.nodes = {node("Frobnicate", {"x"}, {"y"})},
                      .inputs = {info("x", floats({2}))},
                      .outputs = {info("y", floats({2}))}}));
}

std::string net_of_words() {
  const ValueType words = tensor_type(ElementType::kString, {2});
  return model(graph({.nodes = {node("Identity", {"x"}, {"y"})},
                      .inputs = {info("x", words)},
                      .outputs = {info("y", words)}}));
}

Finished bench(std::vector<std::string> more, const std::vector<LateSignal>& signals = {}) {
  std::vector<std::string> arguments = {"bench", "nets", "--rounds", "3", "--budget", "0.1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_eddy(arguments, signals);
}

// The folder's models, called my_..., alone.
Finished bench_mine(const std::string& folder, std::vector<std::string> more) {
  more.insert(more.end(), {"--models", folder, "--filter", "my_"});
  return bench(more);
}

// Where the command makes temporary files while this lives.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& path) { setenv("TMPDIR", path.c_str(), 1); }
  ~TemporaryFolder() { unsetenv("TMPDIR"); }
};

// Whether a folder of ours is left there. (ONNX Runtime leaves logs of its own.)
bool has_scratch(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("eddy_bench_")) return true;
  }
  return false;
}

TEST(BenchNets, ARowForEachModelAndNumberOfThreads) {
  const std::string folder = fresh_folder("nets");
  write_test_file("nets/my_b.onnx", small_net());
  write_test_file("nets/my_a.onnx", adding_model());
  write_test_file("nets/my_a.onnx.txt", "no model");
  const Finished run = bench_mine(folder, {"--threads", "1,2", "--seed", "7", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.json()["differences"].empty());
  const json rows = run.json()["rows"];
  ASSERT_EQ(rows.size(), 4u) << rows;
  const std::vector<std::pair<std::string, int>> expected = {
      {"my_a", 1}, {"my_a", 2}, {"my_b", 1}, {"my_b", 2}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(rows[i]["model"], expected[i].first);
    EXPECT_EQ(rows[i]["threads"], expected[i].second);
    EXPECT_EQ(rows[i]["seed"], 7);
    EXPECT_EQ(rows[i]["eddy"]["samples"], 3);
    EXPECT_LE(rows[i]["eddy"]["best_ns"], rows[i]["eddy"]["median_ns"]);
    const json& rival = rows[i]["onnxruntime"];
    EXPECT_TRUE(rival.contains("missing") || rival.contains("best_ns")) << rival;
    EXPECT_EQ(rows[i].contains("ratio"), rival.contains("best_ns")) << rows[i];
    // Peak memory is of one thread.
    const bool has_one_thread = expected[i].second == 1;
    EXPECT_EQ(rows[i]["eddy"].contains("peak_bytes"), has_one_thread) << rows[i];
    EXPECT_EQ(rival.contains("peak_bytes"), has_one_thread && rival.contains("best_ns"));
  }
}

TEST(BenchNets, TheTableNamesTheSeedAndEachNumberOfThreadsOnce) {
  const std::string folder = fresh_folder("once");
  write_test_file("once/my_net.onnx", small_net());
  const Finished run = bench_mine(folder, {"--threads", "1,1"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("random, of seed 1"), std::string::npos) << run.out;
  const size_t first = run.out.find("\nmy_net ");
  ASSERT_NE(first, std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("\nmy_net ", first + 1), std::string::npos) << run.out;
}

TEST(BenchNets, AModelThatEddyDoesNotRunHasARowWithTheReason) {
  const std::string folder = fresh_folder("some");
  write_test_file("some/my_bad.onnx", unknown_net());
  write_test_file("some/my_net.onnx", small_net());
  write_test_file("some/my_words.onnx", net_of_words());
  const Finished run = bench_mine(folder, {"--threads", "1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json rows = run.json()["rows"];
  ASSERT_EQ(rows.size(), 3u) << rows;
  const auto reason = [&](size_t i) { return rows[i]["eddy"]["missing"].get<std::string>(); };
  EXPECT_NE(reason(0).find("Frobnicate"), std::string::npos) << reason(0);
  EXPECT_TRUE(rows[1]["eddy"].contains("best_ns"));
  EXPECT_NE(reason(2).find("input x of type string[2] gets no random values"), std::string::npos)
      << reason(2);
  const Finished text = bench_mine(folder, {"--threads", "1"});
  EXPECT_NE(text.out.find("Frobnicate"), std::string::npos) << text.out;
}

TEST(BenchNets, WhereEddyRunsNoneTheFirstReasonIsTheError) {
  const std::string folder = fresh_folder("none");
  write_test_file("none/my_bad.onnx", unknown_net());
  write_test_file("none/my_broken.onnx", "no model");
  const Finished run = bench_mine(folder, {});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("Frobnicate"), std::string::npos) << run.err;
}

TEST(BenchNets, AFolderOfNoModelsIsBadInput) {
  const std::string folder = fresh_folder("empty");
  EXPECT_NE(bench_mine(folder, {}).err.find("no *.onnx file in it"), std::string::npos);
  EXPECT_EQ(bench_mine(folder, {}).exit_code, 3);
  EXPECT_EQ(bench_mine("/nonexistent", {}).exit_code, 3);
  write_test_file("empty/my_net.onnx", small_net());
  EXPECT_EQ(bench({"--models", folder, "--filter", "no such net"}).exit_code, 3);
  EXPECT_EQ(bench_mine(folder, {"--ort", "/nonexistent.so"}).exit_code, 3);
}

TEST(BenchNets, BuiltNetworksStandBehindTheFolders) {
  const std::string folder = fresh_folder("both");
  const std::string scratch = fresh_folder("scratch");
  const TemporaryFolder temporary(scratch);
  write_test_file("both/z_lstm.onnx", small_net());
  const Finished run =
      bench({"--models", folder, "--filter", "lstm", "--threads", "1,2", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.json()["differences"].empty());
  const json rows = run.json()["rows"];
  ASSERT_EQ(rows.size(), 4u) << rows;
  EXPECT_EQ(rows[0]["model"], "z_lstm");
  for (const size_t i : {2, 3}) {
    EXPECT_EQ(rows[i]["model"], "lstm");
    EXPECT_EQ(rows[i]["threads"], i - 1);
    EXPECT_EQ(rows[i]["eddy"]["samples"], 3) << rows[i];
  }
  EXPECT_FALSE(has_scratch(scratch));
}

TEST(BenchNets, AnInterruptLeavesNothingBehind) {
  const std::string scratch = fresh_folder("scratch");
  const TemporaryFolder temporary(scratch);
  for (const int after_ms : {300, 1200}) {
    const Finished run = bench({"--filter", "nasnet"}, {{SIGINT, after_ms}});
    EXPECT_EQ(run.exit_code, 5) << run.err;
    EXPECT_FALSE(has_scratch(scratch)) << "after " << after_ms << " ms";
  }
}

TEST(BenchNets, WithoutATemporaryFolderNothingIsBuilt) {
  const TemporaryFolder temporary("/nonexistent");
  const Finished run = bench({"--filter", "mobilenet"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("set TMPDIR"), std::string::npos) << run.err;
}

TEST(BenchNets, AWrongNumberIsAUsageError) {
  for (const char* threads : {"-1", "two", "1,x", "5000"}) {
    EXPECT_EQ(bench({"--threads", threads}).exit_code, 2) << threads;
  }
}

}  // namespace
}  // namespace eddy::test
