// eddy simulate prints the documented timelines, the same by delta and in full, and refuses bad
// files in one line with exit code 3.
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

constexpr const char* kTasks = R"({"tasks": [
  {"id": 1, "exe_time": 5, "device": "gpu0", "deps": []},
  {"id": 2, "exe_time": 3, "device": "link:gpu0>gpu1", "deps": [1]},
  {"id": 3, "exe_time": 4, "device": "gpu1", "deps": [2], "note": "ignored"}],
 "edits": [
  {"op": "set_exe", "id": 1, "exe_time": 9007199254740993},
  {"op": "batch", "ops": [{"op": "remove_task", "id": 2}, {"op": "set_device", "id": 3, "device": 7}]}]})";

constexpr const char* kOperators = R"({"operators": [
  {"name": "a", "type": "matmul", "shape": [8, 8], "in_features": 4, "exe_by_tile": {"8x8": 6, "4x8": 4}},
  {"name": "b", "type": "elementwise", "shape": [8, 8], "inputs": ["a"], "exe_by_tile": {"8x8": 2}}],
 "topology": {"devices": ["g0", "g1"], "bandwidth": {"default": 64}},
 "strategy": {"a": {"degree": [1, 1], "devices": ["g0"]}, "b": {"degree": [1, 1], "devices": ["g1"]}},
 "edits": [{"op": "set_config", "operator": "a", "degree": [2, 1], "devices": ["g0", "g1"]}]})";

TEST(Simulate, ATaskFileGivesOneTimelineAndOneAfterEachEdit) {
  const std::string path = write_test_file("tasks.json", kTasks);
  const Finished delta = run_eddy({"simulate", path, "--json"});
  ASSERT_EQ(delta.exit_code, 0) << delta.err;
  const json timelines = delta.json()["timelines"];
  ASSERT_EQ(timelines.size(), 3u);
  EXPECT_EQ(timelines[0],
            json::parse(R"({"makespan": 12, "times": {"1": [0, 5], "2": [5, 8], "3": [8, 12]}})"));
  EXPECT_EQ(timelines[1]["makespan"].get<int64_t>(), 9007199254741000);
  EXPECT_EQ(timelines[2]["times"]["3"], json::parse("[0, 4]"));
  EXPECT_EQ(run_eddy({"simulate", path, "--json", "--full"}).out, delta.out);
  const Finished text = run_eddy({"simulate", path});
  EXPECT_NE(text.out.find("initial: makespan 12, 3 tasks on 3 devices"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("edit 1 (batch of 2): makespan 9007199254740993"), std::string::npos);
}

TEST(Simulate, AnOperatorGraphGivesNamedTasks) {
  const std::string path = write_test_file("operators.json", kOperators);
  const Finished delta = run_eddy({"simulate", path, "--json"});
  ASSERT_EQ(delta.exit_code, 0) << delta.err;
  const json timelines = delta.json()["timelines"];
  ASSERT_EQ(timelines.size(), 2u);
  // 256 bytes at 64 a unit.
  EXPECT_EQ(timelines[0]["times"]["a.0->b.0"], json::parse("[6, 10]"));
  EXPECT_EQ(timelines[0]["makespan"], 12);
  EXPECT_EQ(timelines[1]["times"]["b.0"], json::parse("[6, 8]"));
  EXPECT_EQ(run_eddy({"simulate", path, "--json", "--full"}).out, delta.out);

  const std::string emitted = fresh_folder("emitted") + "/tasks.json";
  ASSERT_EQ(run_eddy({"simulate", path, "--emit-tasks", emitted}).exit_code, 0);
  const Finished again = run_eddy({"simulate", emitted, "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.json()["timelines"][0]["makespan"], 12);
}

TEST(Simulate, APictureIsWritten) {
  const std::string path = write_test_file("tasks.json", kTasks);
  const std::string picture = fresh_folder("picture") + "/t.svg";
  ASSERT_EQ(run_eddy({"simulate", path, "--svg", picture}).exit_code, 0);
  std::ifstream file(picture);
  const std::string svg{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
}

TEST(Simulate, AnOptionOfModelsIsRefusedBesideAJsonFile) {
  for (const char* document : {kTasks, kOperators}) {
    const std::string path = write_test_file("document.json", document);
    for (const char* option : {"--topology", "--costs", "--dim", "--shape"}) {
      const Finished run = run_eddy({"simulate", path, option, "x=1"});
      EXPECT_EQ(run.exit_code, 2) << option;
      EXPECT_TRUE(is_one_line(run.err)) << run.err;
      EXPECT_NE(run.err.find("--shape take a model"), std::string::npos) << run.err;
    }
  }
}

TEST(Simulate, ABadFileIsRefusedInOneLine) {
  const auto refused = [](const std::string& text, const std::string& what) {
    const Finished run = run_eddy({"simulate", write_test_file("bad.json", text)});
    EXPECT_EQ(run.exit_code, 3) << text;
    EXPECT_TRUE(is_one_line(run.err)) << run.err;
    EXPECT_NE(run.err.find(what), std::string::npos) << run.err;
  };
  refused("", "parse error");
  refused("{}", "needs \"tasks\" (a task file) or \"operators\"");
  refused(R"({"tasks": [{"id": 1, "exe_time": -1, "device": 0}]})",
          "task 1: exe_time -1 is no time");
  refused(R"({"tasks": [{"id": 1, "exe_time": 1, "device": 0, "deps": [2]}]})",
          "there is no task 2");
  refused(R"({"tasks": [{"id": 1, "exe_time": 1, "device": 0, "deps": [2]},
                        {"id": 2, "exe_time": 1, "device": 0, "deps": [1]}]})",
          "in a circle: 1 -> 2 -> 1");
  refused(R"({"tasks": [], "edits": [{"op": "remove_task", "id": 1}]})",
          "edit 0: remove_task: there is no task 1");
  EXPECT_EQ(run_eddy({"simulate", "/nowhere/file.json"}).exit_code, 3);
  EXPECT_EQ(run_eddy({"simulate"}).exit_code, 2);
}

}  // namespace
}  // namespace eddy::test
