// eddy conformance finds tests in folders, counts passed, failed and unsupported ones, and exits
// with 1 only when one failed.
#include <gtest/gtest.h>

#include "graph/io/tensor_file.h"
#include "tests/graph/io/model_writer.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

HostValue floats_of(const std::vector<float>& values) {
  const int64_t dims[] = {1, static_cast<int64_t>(values.size())};
  return HostValue::copy_of({const_cast<float*>(values.data()), dims, 2, ElementType::kFloat});
}

// a + b = sum, as ONNX lays its tests out.
void add_test(const std::string& name, const std::string& model_bytes,
              const std::vector<std::vector<float>>& sums) {
  write_test_file(name + "/model.onnx", model_bytes);
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::string set = name + "/test_data_set_" + std::to_string(i) + "/";
    write_test_file(set + "input_0.pb", format_pb(floats_of({1, 2}), "a"));
    write_test_file(set + "input_1.pb", format_pb(floats_of({3, 4}), "b"));
    write_test_file(set + "output_0.pb", format_pb(floats_of(sums[i]), "y"));
  }
}

std::string unsupported_model() {
  return model(graph({
      .nodes = {node("Frobnicate", {"a", "b"}, {"y"})},
      .inputs = {info("a", floats({1, 2})), info("b", floats({1, 2}))},
      .outputs = {info("y", floats({1, 2}))},
  }));
}

TEST(Conformance, PassedAndUnsupportedExit0) {
  const std::string root = fresh_folder("tests");
  add_test("tests/deep/er/test_add", adding_model(), {{4, 6}, {4, 6}});
  add_test("tests/test_unknown", unsupported_model(), {{4, 6}});
  const Finished run = run_eddy({"conformance", root, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const json document = run.json();
  EXPECT_EQ(document["summary"], json({{"passed", 1}, {"failed", 0}, {"unsupported", 1}}));
  ASSERT_EQ(document["tests"].size(), 2u);
  EXPECT_EQ(document["tests"][0]["path"], root + "/deep/er/test_add");
  EXPECT_EQ(document["tests"][0]["status"], "passed");
  EXPECT_FALSE(document["tests"][0].contains("reason"));
  EXPECT_EQ(document["tests"][1]["status"], "unsupported");
  EXPECT_NE(document["tests"][1]["reason"].get<std::string>().find("Frobnicate"),
            std::string::npos);
}

TEST(Conformance, OneDataSetThatDiffersFailsItsFolderAndExits1) {
  const std::string root = fresh_folder("tests");
  add_test("tests/test_add", adding_model(), {{4, 6}, {4, 9}});
  const Finished run = run_eddy({"conformance", root});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.out.find("failed " + root + "/test_add: test_data_set_1: output y at [0,1]"),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("0 passed, 1 failed, 0 unsupported"), std::string::npos) << run.out;
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
}

TEST(Conformance, ABrokenModelOrDataSetFailsAndTheOthersGoOn) {
  const std::string root = fresh_folder("tests");
  add_test("tests/test_a", "no model", {{4, 6}});
  add_test("tests/test_b", adding_model(), {{4, 6}});
  write_test_file("tests/test_b/test_data_set_0/input_1.pb", "no tensor");
  add_test("tests/test_c", adding_model(), {{4, 6}});
  const Finished run = run_eddy({"conformance", root, "--json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.json()["summary"], json({{"passed", 1}, {"failed", 2}, {"unsupported", 0}}));
}

TEST(Conformance, AnEndlessLoopFailsAtItsDeadline) {
  const std::string root = fresh_folder("tests");
  write_test_file("tests/test_endless/model.onnx", counting_model());
  const std::string set = "tests/test_endless/test_data_set_0/";
  write_test_file(set + "input_0.pb", tensor<int64_t>("trip", {}, {INT64_MAX}).data());
  write_test_file(set + "input_1.pb", tensor<float>("x", {}, {0}).data());
  write_test_file(set + "input_2.pb", tensor<float>("limit", {}, {1e30f}).data());
  write_test_file(set + "output_0.pb", tensor<float>("y", {}, {0}).data());
  const Finished run = run_eddy({"conformance", root, "--timeout", "0.2"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.out.find("deadline"), std::string::npos) << run.out;
}

TEST(Conformance, OtherRandomNumbersAreNoFailure) {
  const std::string root = fresh_folder("tests");
  const std::string drawing = model(graph({
      .nodes = {node("RandomUniformLike", {"a"}, {"r"}), node("Add", {"r", "b"}, {"y"})},
      .inputs = {info("a", floats({1, 2})), info("b", floats({1, 2}))},
      .outputs = {info("y", floats({1, 2}))},
  }));
  add_test("tests/test_random", drawing, {{4, 6}});
  const Finished run = run_eddy({"conformance", root});
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_NE(run.out.find("draws random numbers by RandomUniformLike"), std::string::npos)
      << run.out;
}

TEST(Conformance, ATestOfOnnxThatIsWrongItselfIsSetAsideWhereItDiffers) {
  const std::string root = fresh_folder("tests");
  add_test("tests/a/test_adam_multiple", adding_model(), {{4, 9}});
  add_test("tests/b/test_adam_multiple", adding_model(), {{4, 6}});
  const Finished run = run_eddy({"conformance", root, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const json document = run.json();
  EXPECT_EQ(document["summary"], json({{"passed", 1}, {"failed", 0}, {"unsupported", 1}}));
  EXPECT_NE(document["tests"][0]["reason"].get<std::string>().find("epsilon"), std::string::npos);
}

TEST(Conformance, EachKnownMistakeOfOnnxHasItsReason) {
  const std::string root = fresh_folder("tests");
  const std::pair<const char*, const char*> mistakes[] = {
      {"test_nonmaxsuppression_iou_threshold_boundary", "above the threshold of 0.142857"},
      {"test_qlinearmatmul_2D_int8_float16", "QLinearMatMul saturates to -128"},
      {"test_qlinearmatmul_3D_int8_float32", "QLinearMatMul saturates to -128"},
  };
  for (const auto& [name, reason] : mistakes) {
    add_test(std::string("tests/") + name, adding_model(), {{4, 9}});
  }
  add_test("tests/test_qlinearmatmul_2D_uint8_float32", adding_model(), {{4, 9}});
  const Finished run = run_eddy({"conformance", root, "--json"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  const json document = run.json();
  EXPECT_EQ(document["summary"], json({{"passed", 0}, {"failed", 1}, {"unsupported", 3}}));
  const json& tests = document["tests"];
  const size_t places[] = {0, 1, 3};  // sorted by name
  for (size_t i = 0; i < 3; ++i) {
    const std::string reason = tests[places[i]]["reason"];
    EXPECT_NE(reason.find(mistakes[i].second), std::string::npos) << reason;
  }
  EXPECT_EQ(tests[2]["status"], "failed");
}

TEST(Conformance, APictureOfAnotherFormatIsUnsupportedThoughItsRunHasBegun) {
  const std::string root = fresh_folder("tests"), name = "tests/test_bmp_of_runs";
  const ValueType bytes = tensor_type(ElementType::kUint8, {54});
  const ValueType picture = tensor_type(ElementType::kUint8, {-2, -3, 3});
  write_test_file(name + "/model.onnx", model(graph({.nodes = {node("ImageDecoder", {"d"}, {"y"})},
                                                     .inputs = {info("d", bytes)},
                                                     .outputs = {info("y", picture)}}),
                                              20));
  const int64_t count = 54, dims[] = {1, 1, 3};
  uint8_t bmp[54] = {'B', 'M'}, pixel[] = {1, 2, 3};
  bmp[14] = 40;  // bytes of header
  bmp[30] = 1;   // runs
  write_test_file(name + "/test_data_set_0/input_0.pb",
                  format_pb(HostValue::copy_of({bmp, &count, 1, ElementType::kUint8}), "d"));
  write_test_file(name + "/test_data_set_0/output_0.pb",
                  format_pb(HostValue::copy_of({pixel, dims, 3, ElementType::kUint8}), "y"));
  const Finished run = run_eddy({"conformance", root, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const json document = run.json();
  EXPECT_EQ(document["summary"], json({{"passed", 0}, {"failed", 0}, {"unsupported", 1}}));
  const std::string reason = document["tests"][0]["reason"];
  EXPECT_NE(reason.find("a BMP picture of runs is not supported"), std::string::npos) << reason;
}

TEST(Conformance, AFolderWithoutTestsIsBadInput) {
  EXPECT_EQ(run_eddy({"conformance", fresh_folder("empty")}).exit_code, 3);
  EXPECT_EQ(run_eddy({"conformance", "/nonexistent"}).exit_code, 3);
}

}  // namespace
}  // namespace eddy::test
