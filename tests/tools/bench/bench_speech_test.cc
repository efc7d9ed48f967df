// eddy bench speech names a missing file and how to get it, and refuses what is no choice; where
// the models are, it measures them without a rival too.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

TEST(BenchSpeech, WithoutModelsItNamesTheFileAndHowToGetIt) {
  ASSERT_EQ(setenv("XDG_CACHE_HOME", ::testing::TempDir().c_str(), 1), 0);
  const Finished bench = run_eddy({"bench", "speech"});
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(bench.exit_code, 3) << bench.err;
  const bool has_sound = std::filesystem::exists("/usr/share/sounds/alsa/Rear_Left.wav");
  const char* const hint = has_sound ? "silero_vad-1.9.0.onnx is missing; run tools/demo once"
                                     : "Rear_Left.wav is missing; install the package alsa-utils";
  EXPECT_NE(bench.err.find(hint), std::string::npos) << bench.err;
}

TEST(BenchSpeech, AChoiceThatIsNoneIsAUsageError) {
  EXPECT_EQ(run_eddy({"bench", "speech", "--fresh", "nothing"}).exit_code, 2);
  EXPECT_EQ(run_eddy({"bench", "speech", "--contender", "nobody"}).exit_code, 2);
  EXPECT_EQ(run_eddy({"bench", "speech", "--ort", "/nonexistent.so"}).exit_code, 3);
}

}  // namespace
}  // namespace eddy::test
