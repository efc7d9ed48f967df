// eddy run: values come from the named sources, results go to the named places, and the exit code
// gives whether they are the expected ones.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "graph/io/tensor_file.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

const std::vector<std::string> kCountTo = {"--set", "trip=1000000", "--set", "x=0", "--set"};

std::vector<std::string> count_to(const std::string& model, const std::string& limit,
                                  const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", model};
  arguments.insert(arguments.end(), kCountTo.begin(), kCountTo.end());
  arguments.push_back("limit=" + limit);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

HostValue floats_of(const Dims& dims, const std::vector<float>& values) {
  return HostValue::copy_of(
      {const_cast<float*>(values.data()), dims.data(), dims.rank(), ElementType::kFloat});
}

TEST(Run, WithJsonPrintsOneDocumentWithOutputsTimesAndLoops) {
  const std::string model = write_test_file("count.onnx", counting_model());
  const Finished run = run_eddy(count_to(model, "17", {"--json", "--repeat", "3"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json document = run.json();
  EXPECT_EQ(document["outputs"]["y"]["dtype"], "float");
  EXPECT_EQ(document["outputs"]["y"]["shape"], json::array());
  EXPECT_EQ(document["outputs"]["y"]["data"], json::array({17.0}));
  EXPECT_EQ(document["times_ns"]["runs"].size(), 3u);
  EXPECT_GT(document["times_ns"]["load"].get<int64_t>(), 0);
  EXPECT_GT(document["times_ns"]["plan"].get<int64_t>(), 0);
  ASSERT_EQ(document["loops"].size(), 1u);
  EXPECT_EQ(document["loops"][0]["iterations"], 17);
  EXPECT_EQ(document["loops"][0]["driven"], "device");
  EXPECT_FALSE(document.contains("matched"));
  EXPECT_TRUE(run.err.empty()) << run.err;
}

TEST(Run, TheFingerprintIsTheSameInEveryProcessAndAnotherForAnotherProgram) {
  const std::string model = write_test_file("count.onnx", counting_model());
  const auto fingerprint = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = run_eddy(count_to(model, "3", arguments));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.json()["fingerprint"].get<std::string>();
  };
  const std::string first = fingerprint({});
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(fingerprint({"--repeat", "2"}), first);
  EXPECT_EQ(run_eddy({"plan", model, "--json"}).json()["fingerprint"], first);
  EXPECT_NE(fingerprint({"--loops", "host"}), first);
}

// A deadline counts by the clock when a run ends, not by when it was noticed.
TEST(Run, ARunThatEndsAfterItsTimeoutExits5AndOneBeforeExits0) {
  const std::string model = write_test_file("count.onnx", counting_model());
  for (const char* loops : {"device", "host"}) {
    // Floats stop counting at 2^24, so this one never gets there.
    std::vector<std::string> endless =
        count_to(model, "3e7", {"--timeout", "0.1", "--loops", loops});
    std::ranges::replace(endless, std::string("trip=1000000"), std::string("trip=1000000000000"));
    const Finished late = run_eddy(endless);
    EXPECT_EQ(late.exit_code, 5) << late.out;
    EXPECT_NE(late.err.find("deadline"), std::string::npos) << late.err;
    for (const char* tiny : {"1e-9", "1e-6"}) {
      const Finished run = run_eddy(count_to(model, "3", {"--timeout", tiny, "--loops", loops}));
      EXPECT_EQ(run.exit_code, 5) << run.out;
      EXPECT_NE(run.err.find("count.onnx: loading passed its deadline"), std::string::npos)
          << run.err;
    }
    for (const char* large : {"100", "1e9"}) {
      EXPECT_EQ(run_eddy(count_to(model, "3", {"--timeout", large, "--loops", loops})).exit_code,
                0);
    }
  }
  // Each run of --repeat has the whole time to itself, so together they may take longer.
  const Finished many =
      run_eddy(count_to(model, "30000", {"--json", "--timeout", "0.5", "--repeat", "3000"}));
  ASSERT_EQ(many.exit_code, 0) << many.err;
  int64_t total_ns = 0;
  const json document = many.json();
  for (const int64_t run_ns : document["times_ns"]["runs"]) total_ns += run_ns;
  EXPECT_GT(total_ns, 500'000'000);
}

TEST(Run, HostDrivenLoopsGiveTheSameAndSaySo) {
  const std::string model = write_test_file("count.onnx", counting_model());
  const Finished run = run_eddy(count_to(model, "5", {"--json", "--loops", "host"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["outputs"]["y"]["data"], json::array({5.0}));
  EXPECT_EQ(run.json()["loops"][0]["driven"], "host");
}

TEST(Run, AsTextShowsTheSame) {
  const std::string model = write_test_file("count.onnx", counting_model());
  const Finished run = run_eddy(count_to(model, "17", {}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("y: float[]\n  17\n"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("17 iterations"), std::string::npos) << run.out;
}

TEST(Run, InfinitiesAndNanAreStrings) {
  const std::string model = write_test_file("add.onnx", adding_model());
  const Finished inf = run_eddy({"run", model, "--set", "a=-inf", "--set", "b=1", "--json"});
  ASSERT_EQ(inf.exit_code, 0) << inf.err;
  EXPECT_EQ(inf.json()["outputs"]["y"]["data"], json::array({"-inf", "-inf"}));
  const Finished nan = run_eddy({"run", model, "--set", "a=nan", "--set", "b=1", "--json"});
  EXPECT_EQ(nan.json()["outputs"]["y"]["data"], json::array({"nan", "nan"}));
}

TEST(Run, RandomInputsDependOnTheSeedAloneAndDimsOnTheOption) {
  const std::string model = write_test_file("add.onnx", adding_model());
  const std::vector<std::string> arguments = {"run",   model,  "--random-inputs", "7",
                                              "--dim", "s7=3", "--json"};
  const Finished a = run_eddy(arguments);
  const Finished b = run_eddy(arguments);
  ASSERT_EQ(a.exit_code, 0) << a.err;
  EXPECT_EQ(a.json()["outputs"], b.json()["outputs"]);
  EXPECT_EQ(a.json()["outputs"]["y"]["shape"], json::array({3, 2}));
  const json data = a.json()["outputs"]["y"]["data"];
  for (const json& x : data) EXPECT_LT(std::abs(x.get<double>()), 2.0);
  const Finished whole =
      run_eddy({"run", model, "--random-inputs", "7", "--shape", "a=3x2", "--json"});
  EXPECT_EQ(whole.json()["outputs"], a.json()["outputs"]) << whole.err;
  const Finished one = run_eddy({"run", model, "--random-inputs", "7", "--json"});
  EXPECT_EQ(one.json()["outputs"]["y"]["shape"], json::array({1, 2}));
}

TEST(Run, FilesInAndOut) {
  const std::string model = write_test_file("add.onnx", adding_model());
  const std::string folder = fresh_folder("files");
  ASSERT_TRUE(write_value(folder + "/a.npy", floats_of({2, 2}, {1, 2, 3, 4})).is_ok());
  ASSERT_TRUE(write_value(folder + "/b.pb", floats_of({2, 2}, {10, 20, 30, 40})).is_ok());
  const Finished run =
      run_eddy({"run", model, "--input", "a=" + folder + "/a.npy", "--input",
                "b=" + folder + "/b.pb", "--output-dir", folder + "/out", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json y = run.json()["outputs"]["y"];
  EXPECT_FALSE(y.contains("data"));
  auto written = read_value(y["file"], tensor_type(ElementType::kFloat, {2, 2}));
  ASSERT_TRUE(written.is_ok()) << written.status().to_string();
  EXPECT_EQ(written->view().as<float>()[3], 44.0f);
}

// Writes a data set for the adding model, with `sum` as its output.
std::string write_data_set(const std::vector<float>& sum) {
  const std::string folder = fresh_folder("data");
  EXPECT_TRUE(write_value(folder + "/input_0.pb", floats_of({1, 2}, {1, 2})).is_ok());
  EXPECT_TRUE(write_value(folder + "/input_1.pb", floats_of({1, 2}, {3, 4})).is_ok());
  EXPECT_TRUE(write_value(folder + "/output_0.pb", floats_of({1, 2}, sum)).is_ok());
  return folder;
}

TEST(Run, ADataSetThatMatchesExits0AndSaysMatched) {
  const std::string model = write_test_file("add.onnx", adding_model());
  const Finished run = run_eddy({"run", model, "--inputs", write_data_set({4, 6}), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["matched"], true);
}

TEST(Run, ADataSetThatDiffersExits1AndNamesThePlace) {
  const std::string model = write_test_file("add.onnx", adding_model());
  const std::string folder = write_data_set({4, 7});
  const Finished run = run_eddy({"run", model, "--inputs", folder, "--json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.json()["matched"], false);
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
  EXPECT_NE(run.err.find("output y at [0,1] of [1,2]: expected 7.0, found 6.0"), std::string::npos)
      << run.err;
  EXPECT_EQ(run_eddy({"run", model, "--inputs", folder, "--atol", "1.5"}).exit_code, 0);
  EXPECT_EQ(run_eddy({"run", model, "--inputs", folder, "--rtol", "0.2"}).exit_code, 0);
}

TEST(Run, ASavedPlanStandsForItsModel) {
  const std::string path = write_test_file("count.onnx", counting_model());
  const std::string saved = path + ".plan";
  const Finished plan = run_eddy({"plan", path, "--save", saved});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const auto run_file = [](const std::string& file) {
    return run_eddy(count_to(file, "9", {"--json"}));
  };
  const Finished model_run = run_file(path), plan_run = run_file(saved);
  ASSERT_EQ(model_run.exit_code, 0) << model_run.err;
  ASSERT_EQ(plan_run.exit_code, 0) << plan_run.err;
  EXPECT_EQ(plan_run.json()["outputs"], model_run.json()["outputs"]);
  EXPECT_FALSE(plan_run.json()["outputs"].empty());
  EXPECT_EQ(plan_run.json()["fingerprint"], model_run.json()["fingerprint"]);

  std::filesystem::resize_file(saved, std::filesystem::file_size(saved) / 2);
  const Finished cut = run_file(saved);
  EXPECT_EQ(cut.exit_code, 3);
  EXPECT_TRUE(is_one_line(cut.err)) << cut.err;
  EXPECT_NE(cut.err.find("cut off"), std::string::npos) << cut.err;
  const Finished nowhere = run_eddy({"plan", path, "--save", path + "/there/x.plan"});
  EXPECT_EQ(nowhere.exit_code, 3);
  EXPECT_NE(nowhere.err.find("cannot write"), std::string::npos) << nowhere.err;
}

TEST(Run, ATraceThatHasNotRoomForAllEventsSaysSo) {
  const std::string model = write_test_file("count.onnx", counting_model());
  const std::string trace = fresh_folder("trace") + "/t.json";
  const Finished run = run_eddy(count_to(model, "400000", {"--trace", trace}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("earlier ones had no room"), std::string::npos) << run.err;
  const Finished small = run_eddy(count_to(model, "4", {"--trace", trace}));
  EXPECT_EQ(small.err, "");
}

TEST(Run, ATraceShowsEachStreamAsALaneAndEachIterationAsASpan) {
  const std::string model = write_test_file("count.onnx", counting_model());
  const std::string trace = fresh_folder("trace") + "/trace.json";
  const Finished run = run_eddy(count_to(model, "5", {"--trace", trace}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::ifstream file(trace);
  const json events = json::parse(file)["traceEvents"];
  const auto count = [&](const std::string& text) {
    return std::count_if(events.begin(), events.end(), [&](const json& event) {
      return event.dump().find(text) != std::string::npos;
    });
  };
  EXPECT_EQ(count("stream 0"), 1) << events.dump();
  for (int i = 0; i < 5; ++i) EXPECT_GE(count("[" + std::to_string(i) + "]"), 1) << i;
}

TEST(Info, ListsDevicesLibrariesLimitsAndOperators) {
  const Finished info = run_eddy({"info", "--json"});
  ASSERT_EQ(info.exit_code, 0) << info.err;
  const json document = info.json();
  EXPECT_EQ(document["devices"][0]["name"], "cpu");
  EXPECT_TRUE(document["libraries"].contains("libdnnl"));
  EXPECT_GT(document["limits"]["max_map_count"].get<int64_t>(), 0);
  EXPECT_EQ(document["operators"][0]["domain"], "ai.onnx");
  EXPECT_GT(document["operators"][0]["operators"].get<int>(), 50);
  EXPECT_EQ(document["operators"][0]["import_operators"][1], "Loop");
  const auto preview = std::ranges::find_if(document["operators"], [](const json& domain) {
    return domain["domain"] == "ai.onnx.preview";
  });
  ASSERT_NE(preview, document["operators"].end());
  EXPECT_EQ((*preview)["import_operators"], json({"FlexAttention"}));
  const Finished text = run_eddy({"info"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("device virtual: here everywhere"), std::string::npos) << text.out;
}

}  // namespace
}  // namespace eddy::test
