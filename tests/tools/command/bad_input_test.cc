// Each bad input ends with exit code 3 and one line that names the defect, its place and the
// remedy; bad usage with 2; what this build cannot do with 4. With --json a document holds the
// same.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "graph/io/tensor_file.h"
#include "tests/graph/io/model_writer.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

// Expects exit code 3 and one line on standard error with all of `words`.
void expect_refused(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& words, int exit_code = 3) {
  const Finished run = run_eddy(arguments);
  EXPECT_EQ(run.exit_code, exit_code) << run.err;
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
  EXPECT_TRUE(run.out.empty()) << run.out;
  for (const std::string& word : words) {
    EXPECT_NE(run.err.find(word), std::string::npos) << word << " in: " << run.err;
  }
}

void expect_model_refused(const std::string& bytes, const std::vector<std::string>& words) {
  const std::string path = write_test_file("bad.onnx", bytes);
  std::vector<std::string> all = words;
  all.push_back("bad.onnx");
  expect_refused({"run", path, "--random-inputs", "1"}, all);
  EXPECT_EQ(run_eddy({"plan", path}).exit_code, 3);
}

WireWriter loop_body(const Messages& outputs, const Messages& nodes) {
  return graph({
      .nodes = nodes,
      .inputs = {info("i", int64s({})), info("c", bools({})), info("x_in", floats({2}))},
      .outputs = outputs,
      .name = "body",
  });
}

std::string loop_model(const WireWriter& body) {
  return model(graph({
      .nodes = {node("Loop", {"", "go", "x"}, {"y"}, {graph_attribute("body", body)}, "my_loop")},
      .inputs = {info("x", floats({2})), info("go", bools({}))},
      .outputs = {info("y", floats({2}))},
  }));
}

TEST(BadInput, ALimitOfInstructionsThatIsNoneIsNamed) {
  const std::string model = write_test_file("counting.onnx", counting_model());
  ASSERT_EQ(setenv("EDDY_INSTRUCTIONS", "sse9", 1), 0);
  expect_refused({"run", model, "--random-inputs", "1"},
                 {"EDDY_INSTRUCTIONS is 'sse9'", "baseline, avx2, avx512, vnni and amx"}, 2);
  ASSERT_EQ(setenv("EDDY_INSTRUCTIONS", "", 1), 0);
  EXPECT_EQ(run_eddy({"plan", model}).exit_code, 0);
  ASSERT_EQ(unsetenv("EDDY_INSTRUCTIONS"), 0);
}

TEST(BadInput, NothingIsWrittenOverWhatIsRead) {
  const std::string bytes = loop_model(
      loop_body({info("c_out", bools({})), info("x_out", floats({2}))},
                {node("Identity", {"c"}, {"c_out"}), node("Identity", {"x_in"}, {"x_out"})}));
  const std::string model = write_test_file("kept.onnx", bytes);
  const std::string value = write_test_file("x.npy", "no array");
  const std::vector<std::string> words = {"is a file that this command reads", "write to another"};
  expect_refused({"measure", model, "--output", model}, words, 2);
  expect_refused({"measure", model, "--whole", "--input", "x=" + value, "--output", value}, words,
                 2);
  expect_refused({"run", model, "--random-inputs", "1", "--trace", model}, words, 2);
  const std::string folder = fresh_folder("kept_data_set");
  const std::string input = folder + "/input_0.pb";
  std::ofstream(input) << "no tensor";
  expect_refused({"run", model, "--inputs", folder, "--trace", input}, words, 2);
  expect_refused({"simulate", model, "--svg", model}, words, 2);
  expect_refused({"plan", model, "--dot", model}, words, 2);
  EXPECT_EQ(run_eddy({"plan", model}).exit_code, 0) << "it is still there";
}

TEST(BadInput, FilesToWriteHaveNamesAndFolders) {
  for (const char* name : {"", "-"}) {
    expect_refused({"plan", "m.onnx", "--svg", name}, {"give the name of a file to write"}, 2);
  }
  expect_refused({"measure", "m.onnx", "--output", "/nonexistent/costs.json"},
                 {"--output", "there is no folder /nonexistent"}, 2);
}

TEST(BadInput, AMissingFile) {
  expect_refused({"run", "/nonexistent/model.onnx"},
                 {"eddy run: ", "/nonexistent/model.onnx", "name a file that is there"});
}

TEST(BadInput, AFolderInsteadOfAFile) {
  expect_refused({"run", fresh_folder("folder")},
                 {"folder", "is not a regular file; name one that is"});
}

TEST(BadInput, AFileThatIsNoOnnx) {
  expect_model_refused("GIF89a, but no model at all\n", {"this is no ONNX file"});
}

TEST(BadInput, AnEmptyFile) { expect_model_refused("", {}); }

TEST(BadInput, ATruncatedFile) {
  const std::string whole = counting_model();
  for (const size_t length : {whole.size() / 3, whole.size() / 2, whole.size() - 3}) {
    expect_model_refused(whole.substr(0, length), {});
  }
}

TEST(BadInput, AnUnknownOperatorIsNamed) {
  expect_model_refused(model(graph({
                           .nodes = {node("Frobnicate", {"x"}, {"y"}, {}, "my_node")},
                           .inputs = {info("x", floats({2}))},
                           .outputs = {info("y", floats({2}))},
                       })),
                       {"Frobnicate", "my_node", "eddy info"});
}

// Four tebibytes, unknown before the run: refused, not left to the kernel's killer.
TEST(BadInput, ATensorBeyondTheMachinesMemory) {
  const std::string path = write_test_file(
      "large.onnx", model(graph({
                        .nodes = {node("ConstantOfShape", {"shape"}, {"y"}, {}, "my_node")},
                        .inputs = {info("shape", int64s({1}))},
                        .outputs = {info("y", floats({-7}))},
                    })));
  expect_refused({"run", path, "--set", "shape=1099511627776"},
                 {"my_node", "no memory for a tensor of 4398046511104 bytes", "of a limit of ",
                  "--memory raises it"},
                 4);
  EXPECT_EQ(run_eddy({"run", path, "--set", "shape=1000"}).exit_code, 0);
}

TEST(BadInput, ATensorBeyondTheMemoryThatIsAllowed) {
  const std::string path = write_test_file(
      "large.onnx", model(graph({
                        .nodes = {node("ConstantOfShape", {"shape"}, {"y"}, {}, "my_node")},
                        .inputs = {info("shape", int64s({1}))},
                        .outputs = {info("y", floats({-7}))},
                    })));
  const std::vector<std::string> run = {"run", path, "--set", "shape=3000000", "--memory"};
  const auto with = [&](const char* memory) {
    std::vector<std::string> arguments = run;
    arguments.push_back(memory);
    return arguments;
  };
  expect_refused(with("8MiB"),
                 {"no memory for a tensor of 12000000 bytes", "of a limit of 8388608"}, 4);
  EXPECT_EQ(run_eddy(with("64MiB")).exit_code, 0);
  std::vector<std::string> elsewhere = with("8MiB");
  elsewhere.insert(elsewhere.end(), {"--device", "virtual"});
  expect_refused(elsewhere, {"no memory for a tensor of 12000000 bytes"}, 4);
  expect_refused(with("0"), {"--memory"}, 2);
  expect_refused(with("many"), {"--memory"}, 2);
}

TEST(BadInput, Tf32WhereNothingIsRounded) {
  const std::string path =
      write_test_file("rounded.onnx", model(graph({
                                          .nodes = {node("Identity", {"x"}, {"y"})},
                                          .inputs = {info("x", floats({2}))},
                                          .outputs = {info("y", floats({2}))},
                                      })));
  expect_refused({"run", path, "--tf32"}, {"--tf32", "--device cuda"}, 2);
  expect_refused({"run", path, "--locate-faults"}, {"--locate-faults", "--device cuda"}, 2);
  expect_refused({"run", path, "--device", "cuda", "--exact", "--tf32"}, {"--tf32", "--exact"}, 2);
  for (const std::string option :
       {"--measure-convolutions", "--channels-last", "--channels-first"}) {
    expect_refused({"run", path, option}, {option, "--device cuda"}, 2);
    expect_refused({"run", path, "--device", "cuda", "--exact", option}, {option, "--exact"}, 2);
  }
}

TEST(BadInput, AnUnknownOpset) {
  const WireWriter identity = graph({
      .nodes = {node("Identity", {"x"}, {"y"})},
      .inputs = {info("x", floats({2}))},
      .outputs = {info("y", floats({2}))},
  });
  expect_model_refused(model(identity, 99), {"opset 99"});
}

TEST(BadInput, ACyclicGraph) {
  expect_model_refused(model(graph({
                           .nodes = {node("Add", {"x", "b"}, {"a"}, {}, "first"),
                                     node("Add", {"x", "a"}, {"b"}, {}, "second")},
                           .inputs = {info("x", floats({2}))},
                           .outputs = {info("b", floats({2}))},
                       })),
                       {"first", "write it as a Loop"});
}

TEST(BadInput, ABodyOfWrongArity) {
  expect_model_refused(loop_model(loop_body({info("c", bools({}))}, {})),
                       {"my_loop", "add what is missing"});
}

TEST(BadInput, APredicateThatIsNotOneBool) {
  const WireWriter body = loop_body({info("p", floats({})), info("x_out", floats({2}))},
                                    {node("ReduceSum", {"x_in"}, {"p"}, {attribute("keepdims", 0)}),
                                     node("Add", {"x_in", "x_in"}, {"x_out"})});
  expect_model_refused(
      loop_model(body),
      {"my_loop", "its body's condition, output 'p', must be one bool, not float"});
  const WireWriter branch =
      graph({.nodes = {node("Identity", {"x"}, {"z"})}, .outputs = {info("z", floats({2}))}});
  expect_model_refused(model(graph({
                           .nodes = {node("If", {"c"}, {"y"},
                                          {graph_attribute("then_branch", branch),
                                           graph_attribute("else_branch", branch)},
                                          "my_if")},
                           .inputs = {info("x", floats({2})), info("c", bools({2}))},
                           .outputs = {info("y", floats({2}))},
                       })),
                       {"my_if", "one bool", "bool[2]"});
}

// The file declares the predicate's shape open; the operator's rule knows it.
TEST(BadInput, APredicateWhoseShapeTurnsOutWrongNamesTheLoop) {
  const WireWriter body =
      loop_body({info("p", bools({-3})), info("x_out", floats({2}))},
                {node("Less", {"x_in", "x_in"}, {"p"}), node("Add", {"x_in", "x_in"}, {"x_out"})});
  const std::string path = write_test_file("late.onnx", loop_model(body));
  const Finished run = run_eddy({"run", path, "--random-inputs", "1"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
  EXPECT_NE(run.err.find("bool[2]"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("my_loop"), std::string::npos) << run.err;
}

TEST(BadInput, AMissingExternalFile) {
  WireWriter entry;
  entry.bytes(1, "location");
  entry.bytes(2, "weights.bin");
  WireWriter external;
  external.packed_integers(1, std::vector<int64_t>{2});
  external.integer(2, 1);
  external.bytes(8, "w");
  external.message(13, entry);
  external.integer(14, 1);
  expect_model_refused(model(graph({
                           .nodes = {node("Add", {"x", "w"}, {"y"})},
                           .inputs = {info("x", floats({2}))},
                           .outputs = {info("y", floats({2}))},
                           .initializers = {external},
                       })),
                       {"weights.bin", "looked for in folder"});
}

TEST(BadInput, AWrongInputNameListsTheRightOnes) {
  const std::string path = write_test_file("add.onnx", adding_model());
  expect_refused({"run", path, "--set", "c=1"}, {"--set c", "a, b"});
  expect_refused({"run", path, "--input", "c=x.npy"}, {"--input c", "a, b"});
  expect_refused({"run", path, "--set", "novalue"}, {"NAME=VALUE", "novalue"}, 2);
  expect_refused({"run", path, "--input", "=x.npy"}, {"NAME=FILE", "=x.npy"}, 2);
  expect_refused({"run", path, "--dim", "n"}, {"NAME=N", "'n'"}, 2);
}

TEST(BadInput, AnInputGivenTwice) {
  const std::string path = write_test_file("add.onnx", adding_model());
  expect_refused({"run", path, "--set", "a=1", "--set", "a=2", "--set", "b=1"},
                 {"--set a: this input is given twice"});
}

TEST(BadInput, AFileWithoutAnOpset) {
  const auto file_of = [](int64_t ir_version) {
    WireWriter file;
    file.integer(1, ir_version);
    file.message(7, graph({
                        .nodes = {node("Softmax", {"x"}, {"y"})},
                        .inputs = {info("x", floats({2}))},
                        .outputs = {info("y", floats({2}))},
                    }));
    return file.data();
  };
  expect_model_refused(file_of(8), {"no opset_import", "export it again"});
}

TEST(BadInput, OpenDimensionsThatWereMadeUpAreNamedWhenARunFails) {
  // Rows are made up as 1, but the other operand has 3 where only 2 fit.
  const std::string path = write_test_file(
      "open.onnx", model(graph({
                       .nodes = {node("MatMul", {"x", "w"}, {"y"})},
                       .inputs = {info("x", floats({-7, -8})), info("w", floats({3, 2}))},
                       .outputs = {info("y", floats({-7, 2}))},
                   })));
  expect_refused({"run", path, "--random-inputs", "1"},
                 {"--random-inputs counted the open dimensions of x", "--dim"}, 4);
  expect_refused({"run", path, "--set", "x=1", "--set", "w=1"},
                 {"--set counted the open dimensions of x", "--shape x="}, 4);
}

TEST(BadInput, AMissingInputSaysHowToGiveIt) {
  const std::string path = write_test_file("add.onnx", adding_model());
  expect_refused({"run", path, "--set", "a=1"}, {"input b", "--set b=VALUE"});
}

TEST(BadInput, AWrongShapeOrTypeSaysWhatWasExpectedAndFound) {
  const std::string path = write_test_file("add.onnx", adding_model());
  const std::string file = fresh_folder("values") + "/a.npy";
  ASSERT_TRUE(write_value(file, HostValue::tensor(ElementType::kFloat, {1, 3})).is_ok());
  expect_refused({"run", path, "--input", "a=" + file, "--set", "b=1"}, {"'a'", "2]", "[1,3]"});
  ASSERT_TRUE(write_value(file, HostValue::tensor(ElementType::kInt64, {1, 2})).is_ok());
  expect_refused({"run", path, "--input", "a=" + file, "--set", "b=1"}, {"'a'", "float", "int64"});
}

TEST(BadInput, ValuesThatAreNone) {
  const std::string path = write_test_file("count.onnx", counting_model());
  expect_refused({"run", path, "--set", "trip=1.5"}, {"'1.5'", "int64"});
  expect_refused({"run", path, "--set", "x=abc"}, {"'abc'", "float"});
  expect_refused({"run", path, "--set", "trip=99999999999999999999"}, {"int64"});
  expect_refused({"run", path, "--input", "x=/nonexistent.npy"}, {"/nonexistent.npy"});
}

TEST(BadInput, DimensionsThatAreNone) {
  const std::string path = write_test_file("add.onnx", adding_model());
  expect_refused({"run", path, "--random-inputs", "1", "--dim", "t=3"}, {"--dim t", "s7"});
  expect_refused({"run", path, "--random-inputs", "1", "--dim", "s7=-3"}, {"-3"});
  expect_refused({"run", path, "--random-inputs", "1", "--dim", "s7=9000000000000000000"},
                 {"input 'a'", "too large"});
}

TEST(BadInput, ShapesThatAreNone) {
  const std::string path = write_test_file("add.onnx", adding_model());
  const auto expect = [&](const std::string& shape, const std::vector<std::string>& words) {
    expect_refused({"plan", path, "--shape", shape}, words);
  };
  expect_refused({"plan", path, "--shape", "a"}, {"NAME=2x3", "'a'"}, 2);
  expect("a=2x", {"--shape a=2x", "missing"});
  expect("a=2x-1", {"'-1'"});
  expect("a=2xx3", {"''"});
  expect("a=1x1x1x1x1x1x1x1x1", {"at most 8"});
  expect("q=2x2", {"no input 'q'"});
  expect("a=3x5", {"input 'a'", "[3,5]"});
}

TEST(BadInput, AFolderThatIsNoDataSet) {
  const std::string path = write_test_file("add.onnx", adding_model());
  expect_refused({"run", path, "--inputs", "/nonexistent"}, {"/nonexistent"});
  expect_refused({"run", path, "--inputs", fresh_folder("empty")},
                 {"no value for inputs a", "empty has no input_0.pb"});
  const auto expect_unmeasured = [&](const char* option, const std::string& given,
                                     const std::vector<std::string>& words) {
    expect_refused({"measure", path, "--dim", "s7=1", "--repeat", "3", "--whole", option, given},
                   words);
  };
  expect_unmeasured("--inputs", "/nonexistent", {"/nonexistent is no folder"});
  expect_unmeasured("--inputs", fresh_folder("empty"), {"empty: the folder has no input_0.pb"});
  expect_unmeasured("--input", "a=/nonexistent.npy", {"/nonexistent.npy"});
  expect_refused({"measure", path, "--inputs", fresh_folder("empty")}, {"--whole"}, 2);
  // Before any operator is measured, or found to have no shape.
  const Finished refused = run_eddy({"measure", path, "--whole", "--inputs", "/nonexistent"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_EQ(refused.err.find("not measured"), std::string::npos) << refused.err;
}

TEST(BadInput, UnwritablePlaces) {
  const std::string path = write_test_file("add.onnx", adding_model());
  expect_refused({"run", path, "--random-inputs", "1", "--output-dir", "/proc/nothing"},
                 {"--output-dir /proc/nothing"});
  expect_refused({"run", path, "--random-inputs", "1", "--trace", "/nonexistent/t.json"},
                 {"--trace /nonexistent/t.json: there is no folder /nonexistent"}, 2);
}

// The input is not to blame.
TEST(BadInput, AFullDiskExits4) {
  const std::string path = write_test_file("add.onnx", adding_model());
  expect_refused({"plan", path, "--dot", "/dev/full"}, {"/dev/full", "No space left", "make room"},
                 4);
  expect_refused({"run", path, "--random-inputs", "1", "--trace", "/dev/full"},
                 {"/dev/full", "No space left", "make room"}, 4);
}

TEST(BadInput, DevicesThatThisBuildLacksExit4) {
  const std::string path = write_test_file("add.onnx", adding_model());
  // With or without a GPU: what is missing differs, the way out does not.
  expect_refused({"run", path, "--random-inputs", "1", "--device", "cuda"}, {"--device cuda: "}, 4);
  expect_refused({"run", path, "--random-inputs", "1", "--device", "cuda:999"},
                 {"--device cuda:999: "}, 4);
  for (const char* device : {"cuda:", "cuda:-1", "cuda:1x", "cuda:12345678901", "gpu"}) {
    expect_refused({"run", path, "--device", device},
                   {device, "is not cpu, cuda, cuda:N (the N-th GPU, from 0) or virtual"}, 2);
  }
}

TEST(BadInput, UsageErrorsExit2) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"frobnicate"},
                                             {"run"},
                                             {"run", "m", "--assign", "best"},
                                             {"run", "m", "--nope"},
                                             {"run", "m", "--set", "x=1", "y=2"},
                                             {"run", "m", "--streams", "0"},
                                             {"run", "m", "--seed", "3"},
                                             {"plan", "m", "--policy", "pct", "--device", "cpu"},
                                             {"run", "m", "--random-inputs", "x"},
                                             {"plan"},
                                             {"plan", "m", "--dag", "f"},
                                             {"conformance"},
                                             {"bench", "nothing"}}) {
    expect_refused(arguments, {"eddy"}, 2);
  }
}

TEST(BadInput, UsageErrorsSayWhatWouldBeRight) {
  expect_refused({"foo"}, {"'foo' is no subcommand; there are run, plan, "}, 2);
  expect_refused(
      {"--faults", "check"},
      {"options stand behind the subcommand: eddy check --faults; see eddy check --help"}, 2);
  for (const std::string timeout : {"0", "abc", "-1", "nan"}) {
    expect_refused({"run", "m", "--timeout=" + timeout}, {"give seconds above 0"}, 2);
  }
  for (const std::string tolerance : {"abc", "-1", "nan"}) {
    expect_refused({"run", "m", "--rtol=" + tolerance}, {"give a tolerance, 0 or more"}, 2);
    expect_refused({"conformance", "d", "--atol=" + tolerance}, {"give a tolerance, 0 or more"}, 2);
  }
  expect_refused({"bench", "--budget=nan"}, {"give seconds from 0 to 1e6"}, 2);
  for (const std::string minutes : {"0", "abc", "-1", "nan", "inf", "2e6"}) {
    expect_refused({"check", "--seeds=1", "--minutes=" + minutes}, {"give minutes from 0.001"}, 2);
  }
}

TEST(BadInput, ABenchmarkModelThatIsNotThere) {
  const std::vector<std::string> bench = {"bench",    "loops",
                                          "--filter", "Silero",
                                          "--models", fresh_folder("models"),
                                          "--silero", "/nonexistent.onnx"};
  const Finished run = run_eddy(bench);  // may also report that the rival is not installed
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("cannot open '/nonexistent.onnx'"), std::string::npos) << run.err;
}

// A run that finds no memory in its middle could be neither finished nor waited for.
TEST(BadInput, ASystemWithoutMemoryEndsTheCommandInOneLine) {
#ifdef EDDY_SANITIZER
  GTEST_SKIP() << "a sanitizer's own memory does not fit in a limited address space";
#endif
  size_t num_ended = 0;
  for (const size_t mib : {84, 90, 94, 96, 98, 100, 105, 110, 120, 150, 200, 220, 260}) {
    const Finished check = run_eddy({"check", "--seeds", "5"}, {}, {mib * 1024});
    if (check.exit_code == 127) continue;  // the system's loader had no room for the program
    EXPECT_TRUE(check.exit_code == 0 || check.exit_code == 4)
        << mib << " MiB: " << check.exit_code << ", " << check.err;
    if (check.exit_code != 4) continue;
    EXPECT_TRUE(is_one_line(check.err)) << mib << ": " << check.err;
    ++num_ended;
  }
  EXPECT_GT(num_ended, 0u);
}

TEST(BadInput, DocumentsNestedWithoutEnd) {
  const std::string path = write_test_file("deep.json", std::string(15'000'000, '['));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"simulate", path},
        {"plan", write_test_file("add.onnx", adding_model()), "--costs", path}}) {
    expect_refused(arguments, {"nested more than 1000 deep"});
  }
}

TEST(BadInput, HelpAndVersionExit0) {
  for (const std::string flag : {"--help", "--version"}) {
    EXPECT_EQ(run_eddy({flag}).exit_code, 0) << flag;
  }
  EXPECT_EQ(run_eddy({"run", "--help"}).exit_code, 0);
}

TEST(BadInput, WithJsonOneDocumentSaysTheSame) {
  const Finished missing = run_eddy({"run", "/nonexistent/model.onnx", "--json"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_EQ(missing.json()["error"]["exit"], 3);
  EXPECT_NE(missing.json()["error"]["message"].get<std::string>().find("/nonexistent"),
            std::string::npos);
  EXPECT_TRUE(is_one_line(missing.err));
  const Finished usage = run_eddy({"run", "--json"});
  EXPECT_EQ(usage.exit_code, 2);
  EXPECT_EQ(usage.json()["error"]["exit"], 2);
}

// Index 5 of a tensor of 3: known only while running.
TEST(BadInput, AKernelThatFailsIsNoBadInputAndNamesItsNode) {
  const std::string path =
      write_test_file("gather.onnx", model(graph({
                                         .nodes = {node("Gather", {"x", "i"}, {"y"}, {}, "pick")},
                                         .inputs = {info("x", floats({3})), info("i", int64s({}))},
                                         .outputs = {info("y", floats({}))},
                                     })));
  expect_refused({"run", path, "--set", "x=1", "--set", "i=5"}, {"pick", "5"}, 4);
}

}  // namespace
}  // namespace eddy::test
