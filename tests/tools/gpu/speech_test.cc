// Claim: the part `speech` runs a model of Silero's form over a recording, on a fake driver as on
// the CPU, reports the times of both, and what is missing; the table takes the CPU as its rival.
// Silero and Moonshine themselves pass where tools/demo has fetched them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "graph/io/export.h"
#include "graph/ir/builder.h"
#include "tests/examples/cached_model.h"
#include "tests/examples/voice_activity/wav_file.h"
#include "tests/runtime/cuda/fake_accelerator.h"
#include "tools/gpu/speech_part.h"
#include "tools/gpu/table_part.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class GpuSpeechTest : public ::testing::Test {
 protected:
  GpuSpeechTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    what_.make_device = fake_.maker();
    what_.make_tf32_device = fake_.maker();
    what_.num_warm_runs = 1;
    what_.num_runs = 3;
  }
  ~GpuSpeechTest() override {
    fs::remove_all(folder_);
    EXPECT_THAT(fake_.problems(), IsEmpty());
    EXPECT_EQ(fake_.cuda().leaks(), "");
  }

  // Inputs and outputs as Silero's, and a state that every chunk changes.
  void write_silero() {
    GraphBuilder b(library_.ops(), "stand_in");
    const Value input = b.input("input", tensor_type(ElementType::kFloat, {1, 576}));
    const Value state = b.input("state", tensor_type(ElementType::kFloat, {2, 1, 128}));
    b.input("sr", tensor_type(ElementType::kInt64, Dims()));
    const Value loudness = b.op("ReduceMean", {b.op("Abs", {input}), b.int64s({1})});
    const Value next = b.op("Tanh", {b.op("Add", {state, loudness})});
    const Value sum = b.op("Reshape", {b.op("ReduceMean", {next}), b.int64s({1, 1})});
    b.output("output", b.op("Sigmoid", {sum}));
    b.output("stateN", next);
    ASSERT_TRUE(export_onnx(*b.finish(), (folder_ / "silero_vad-0.onnx").string()).is_ok());
  }

  void write_recording(const std::string& name, int num_samples) {
    std::vector<float> samples;
    for (int i = 0; i < num_samples; ++i) samples.push_back(0.3f * std::sin(0.05f * i));
    test::write_wav((folder_ / name).string(),
                    test::riff(test::format_chunk({}) + test::chunk("data", test::pcm16(samples))));
  }

  Json report() const { return report_speech(what_, folder_.string()); }

  const Library library_;
  FakeAccelerator fake_{library_, {.seed = 5}};
  SessionsUnderReport what_;
  const fs::path folder_ = fs::path(::testing::TempDir()) / "gpu_speech_test";
};

TEST_F(GpuSpeechTest, SileroPassesInEveryWayBesideTheCpu) {
  write_silero();
  write_recording("a.wav", 4 * 512);
  write_recording("b.wav", 512 + 1);
  const Json found = report();
  EXPECT_EQ(found["failed"], 0) << found.dump(1);
  EXPECT_FALSE(found.contains("error")) << found["error"];
  ASSERT_EQ(found["rows"].size(), 4u) << found.dump(1);
  for (size_t i = 1; i < 4; ++i) {
    const Json& row = found["rows"][i];
    EXPECT_EQ(row["case"], "Silero");
    EXPECT_EQ(row["status"], "passed") << row;
    EXPECT_EQ(row["trips"], 6) << "both recordings, the last chunk filled up";
    EXPECT_FALSE(row["first_loop"].get<std::string>().empty());
    EXPECT_GT(row["cpu_ms"], 0);
    EXPECT_DOUBLE_EQ(row["ratio_to_cpu"].get<double>() * row["cpu_ms"].get<double>(), row["ms"]);
    EXPECT_DOUBLE_EQ(row["ms_per_second_of_sound"].get<double>() * (5 * 512 + 1) / 16000,
                     row["ms"]);
  }
  EXPECT_EQ(found["rows"][0]["case"], "Moonshine tiny");
  EXPECT_EQ(found["rows"][0]["status"], "left out");
}

TEST_F(GpuSpeechTest, TheModelsThemselvesPass) {
  for (const std::string name : {"silero_vad-1.9.0.onnx", "moonshine_tiny_encoder-0.1.29.onnx",
                                 "moonshine_tiny_decoder-0.1.29.onnx"}) {
    const std::string path = test::cached_model(name);
    if (!fs::exists(path)) GTEST_SKIP() << "no " << path << "; tools/demo fetches it";
    fs::create_symlink(path, folder_ / name);
  }
  write_recording("hum.wav", 16000);
  what_.num_runs = 1;
  const Json found = report();
  EXPECT_EQ(found["failed"], 0) << found.dump(1);
  size_t num_moonshine = 0;
  for (const Json& row : found["rows"]) {
    EXPECT_EQ(row["status"], "passed") << row;
    EXPECT_GT(row["trips"], 0) << row;
    num_moonshine += row["case"] == "Moonshine tiny" ? 1 : 0;
  }
  EXPECT_EQ(num_moonshine, 2u);
}

TEST_F(GpuSpeechTest, TheTableShowsItWithTheCpuAsRival) {
  write_silero();
  write_recording("a.wav", 512);
  const Json found = report();
  std::ofstream(folder_ / "speech.json") << found.dump();
  const Json table = report_table(folder_.string());
  int num_found = 0;
  for (const Json& row : table["rows"]) {
    if (row["row"] != "Silero") continue;
    ++num_found;
    EXPECT_EQ(row["verdict"], "shown") << row;
    ASSERT_EQ(row["rivals"].size(), 1u) << row;
    EXPECT_EQ(row["rivals"][0]["name"], "CPU");
    EXPECT_EQ(row["rivals"][0]["figure"], found["rows"][3]["cpu_ms"]);
    EXPECT_EQ(row["ratio"], found["rows"][3]["ratio_to_cpu"]);
  }
  EXPECT_EQ(num_found, 1);
}

TEST_F(GpuSpeechTest, WithoutModelsOrSoundThereIsNothingToReport) {
  EXPECT_THAT(report()["error"].get<std::string>(), HasSubstr("no speech models in "));
  write_silero();
  EXPECT_THAT(report()["error"].get<std::string>(), HasSubstr("no recordings (.wav) in "));
}

TEST_F(GpuSpeechTest, AModelOfAnotherFormFailsItsRows) {
  write_recording("a.wav", 512);
  std::ofstream(folder_ / "silero_vad.onnx") << "no model";
  const Json found = report();
  EXPECT_EQ(found["failed"], 3) << found.dump(1);
  EXPECT_THAT(found["rows"][1]["reason"].get<std::string>(), HasSubstr("silero_vad.onnx"));
}

}  // namespace
}  // namespace eddy::testing
