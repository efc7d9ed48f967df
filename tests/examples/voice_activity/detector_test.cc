// Claim: in the recordings of alsa-utils, each one utterance, the model inside our loop finds the
// speech where the sound is, and nothing in the silence between, whoever drives the loop.
#include "examples/voice_activity/detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "examples/voice_activity/join.h"
#include "examples/voice_activity/segments.h"
#include "tests/examples/cached_model.h"

namespace eddy::voice {
namespace {

const std::string kModel = test::cached_model("silero_vad-1.9.0.onnx");

// Spoken words only: Noise.wav is not speech.
std::vector<std::string> speech_files() {
  std::vector<std::string> files;
  for (const char* name : {"Front_Center", "Front_Left", "Front_Right", "Rear_Center", "Rear_Left",
                           "Rear_Right", "Side_Left", "Side_Right"}) {
    files.push_back("/usr/share/sounds/alsa/" + std::string(name) + ".wav");
  }
  return files;
}

// From the first to the last 10 ms that are louder than a fiftieth of the loudest.
Segment loud_part(const Joined& joined, const Part& part) {
  constexpr size_t kFrame = kSampleRate / 100;
  std::vector<double> loudness;
  const size_t first = static_cast<size_t>(part.start_s * kSampleRate);
  const size_t last = static_cast<size_t>(part.end_s * kSampleRate);
  for (size_t at = first; at + kFrame <= last; at += kFrame) {
    double sum = 0;
    for (size_t i = at; i < at + kFrame; ++i) sum += joined.samples[i] * joined.samples[i];
    loudness.push_back(std::sqrt(sum));
  }
  const double limit = *std::ranges::max_element(loudness) / 50;
  const auto is_loud = [&](double frame) { return frame > limit; };
  const auto from = std::ranges::find_if(loudness, is_loud) - loudness.begin();
  const auto to = loudness.rend() - std::find_if(loudness.rbegin(), loudness.rend(), is_loud);
  return {part.start_s + 0.01 * static_cast<double>(from),
          part.start_s + 0.01 * static_cast<double>(to)};
}

class DetectorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModel)) {
      GTEST_SKIP() << "no model at " << kModel << "; tools/demo fetches it";
    }
    for (const std::string& file : speech_files()) {
      if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file << "; install alsa-utils";
    }
    auto joined = join(speech_files());
    ASSERT_TRUE(joined.is_ok()) << joined.status().to_string();
    joined_ = std::move(*joined);
  }

  std::vector<float> detect(Loops loops) {
    auto detector = Detector::create(kModel, {.num_threads = 1, .loops = loops});
    EXPECT_TRUE(detector.is_ok()) << detector.status().to_string();
    if (!detector.is_ok()) return {};
    auto probabilities = (*detector)->detect(joined_.samples);
    EXPECT_TRUE(probabilities.is_ok()) << probabilities.status().to_string();
    if (!probabilities.is_ok()) return {};
    EXPECT_EQ((*detector)->loop_report().iterations,
              static_cast<int64_t>((joined_.samples.size() + kChunkSamples - 1) / kChunkSamples));
    return std::move(*probabilities);
  }

  Joined joined_;
};

TEST_F(DetectorTest, SpeechIsFoundWhereTheSoundIs) {
  const auto segments = find_segments(detect(Loops::kAuto), kChunkSeconds);
  size_t num_used = 0;
  for (const Part& part : joined_.parts) {
    std::vector<Segment> inside;
    for (const Segment& segment : segments) {
      if (segment.start_s > part.start_s - 0.1 && segment.end_s < part.end_s + 0.1) {
        inside.push_back(segment);
      }
    }
    num_used += inside.size();
    ASSERT_FALSE(inside.empty()) << part.name;
    const Segment loud = loud_part(joined_, part);
    EXPECT_NEAR(inside.front().start_s, loud.start_s, 0.15) << part.name;
    EXPECT_NEAR(inside.back().end_s, loud.end_s, 0.25) << part.name;
    EXPECT_LE(inside.size(), 2u) << part.name << ": two words";
  }
  EXPECT_EQ(num_used, segments.size()) << "speech was found in the silence";
}

TEST_F(DetectorTest, WhoeverDrivesTheLoopTheBitsAreTheSame) {
  const auto by_device = detect(Loops::kDevice);
  EXPECT_EQ(by_device, detect(Loops::kDevice));
  EXPECT_EQ(by_device, detect(Loops::kHost));
}

TEST_F(DetectorTest, SilenceIsNoSpeech) {
  joined_.samples.assign(3 * kSampleRate + 1, 0.0f);
  EXPECT_TRUE(find_segments(detect(Loops::kAuto), kChunkSeconds).empty());
}

TEST(Detector, AMissingModelIsNamed) {
  const auto detector = Detector::create("no/such/model.onnx", {});
  ASSERT_FALSE(detector.is_ok());
  EXPECT_NE(detector.status().to_string().find("no/such/model.onnx"), std::string::npos);
}

}  // namespace
}  // namespace eddy::voice
