// Claim: in the recordings of alsa-utils, each one utterance, the model inside our loop finds the
// speech where the sound is, in the recording's own time, and nothing in silence, for every driver
// of the loop and every cut of the sound into blocks.
#include "examples/voice_activity/detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "examples/voice_activity/find_speech.h"
#include "graph/base/random.h"
#include "tests/examples/cached_model.h"
#include "tests/examples/voice_activity/wav_file.h"

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

std::vector<float> samples_of(const std::string& path) {
  auto file = SoundFile::open(path);
  EXPECT_TRUE(file.is_ok()) << file.status().to_string();
  return file.is_ok() ? *file->read(int64_t{1} << 40) : std::vector<float>();
}

// From the first to the last 10 ms that are louder than a fiftieth of the loudest.
Segment loud_part(std::span<const float> samples) {
  constexpr size_t kFrame = kSampleRate / 100;
  std::vector<double> loudness;
  for (size_t at = 0; at + kFrame <= samples.size(); at += kFrame) {
    double sum = 0;
    for (size_t i = at; i < at + kFrame; ++i) sum += samples[i] * samples[i];
    loudness.push_back(std::sqrt(sum));
  }
  const double limit = *std::ranges::max_element(loudness) / 50;
  const auto is_loud = [&](double frame) { return frame > limit; };
  const auto from = std::ranges::find_if(loudness, is_loud) - loudness.begin();
  const auto to = loudness.rend() - std::find_if(loudness.rbegin(), loudness.rend(), is_loud);
  return {0.01 * static_cast<double>(from), 0.01 * static_cast<double>(to)};
}

std::string write_samples(const std::string& name, std::span<const float> samples) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return test::write_wav(
      std::string(folder != nullptr ? folder : "/tmp") + "/" + name,
      test::riff(test::format_chunk({}) + test::chunk("data", test::pcm16(samples))));
}

// The segments lie where the sound is, which begins at `offset_s`.
void expect_near(std::span<const Segment> segments, Segment loud, double offset_s,
                 const std::string& name) {
  ASSERT_FALSE(segments.empty()) << name;
  EXPECT_NEAR(segments.front().start_s, offset_s + loud.start_s, 0.15) << name;
  EXPECT_NEAR(segments.back().end_s, offset_s + loud.end_s, 0.25) << name;
  EXPECT_LE(segments.size(), 2u) << name << ": two words";
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
  }

  static std::unique_ptr<Detector> detector(Loops loops = Loops::kAuto) {
    auto made = Detector::create(kModel, {.num_threads = 1, .loops = loops});
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return made.is_ok() ? std::move(*made) : nullptr;
  }

  static std::vector<float> detect(std::span<const float> samples, Loops loops = Loops::kAuto) {
    const auto by = detector(loops);
    auto probabilities = by->detect(samples);
    EXPECT_TRUE(probabilities.is_ok()) << probabilities.status().to_string();
    if (!probabilities.is_ok()) return {};
    EXPECT_EQ(by->loop_report().iterations,
              (std::ssize(samples) + kChunkSamples - 1) / kChunkSamples);
    return std::move(*probabilities);
  }

  static FoundSpeech find(const std::vector<std::string>& paths) {
    auto found = find_speech(*detector(), paths);
    EXPECT_TRUE(found.is_ok()) << found.status().to_string();
    return found.is_ok() ? std::move(*found) : FoundSpeech();
  }
};

TEST_F(DetectorTest, SpeechIsFoundWhereTheSoundIsInEachOfManyRecordings) {
  const auto files = speech_files();
  const FoundSpeech found = find(files);
  EXPECT_EQ(found.num_runs, 1);
  ASSERT_EQ(found.recordings.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const auto samples = samples_of(files[i]);
    const Speech& speech = found.recordings[i];
    EXPECT_EQ(speech.recording.num_samples, std::ssize(samples));
    EXPECT_EQ(std::ssize(speech.probabilities), speech.recording.num_chunks());
    expect_near(speech.segments, loud_part(samples), 0, files[i]);
    EXPECT_LE(speech.segments.back().end_s, speech.recording.seconds());
  }
}

// Long enough for several blocks; the pauses are never the same.
TEST_F(DetectorTest, SpeechInALongRecordingIsFoundAtItsTimes) {
  const auto files = speech_files();
  std::vector<float> samples;
  std::vector<std::pair<size_t, std::string>> said;  // from which sample on
  Random random(1);
  while (samples.size() < 260u * kSampleRate) {
    samples.resize(samples.size() + kSampleRate + random.below(4 * kSampleRate));
    said.emplace_back(samples.size(), files[random.below(files.size())]);
    const auto words = samples_of(said.back().second);
    samples.insert(samples.end(), words.begin(), words.end());
  }
  const FoundSpeech found = find({write_samples("long.wav", samples)});
  EXPECT_EQ(found.num_runs, 3);
  auto segments = std::span<const Segment>(found.recordings.at(0).segments);
  for (const auto& [start, path] : said) {
    const auto words = samples_of(path);
    const double start_s = static_cast<double>(start) / kSampleRate;
    const double end_s = start_s + static_cast<double>(words.size()) / kSampleRate;
    size_t count = 0;
    while (count < segments.size() && segments[count].start_s < end_s) ++count;
    expect_near(segments.first(count), loud_part(words), start_s, path);
    segments = segments.subspan(count);
  }
  EXPECT_TRUE(segments.empty()) << "speech was found in the silence at its end";
}

TEST_F(DetectorTest, ASoundInBlocksGivesTheBitsOfTheSoundAtOnce) {
  const auto samples = samples_of(speech_files().front());
  const auto by = detector();
  const auto whole = by->detect(samples);
  DetectorMemory memory;
  std::vector<float> probabilities;
  for (size_t at = 0; at < samples.size();) {
    const size_t size = std::min<size_t>(samples.size() - at, 512 * (1 + at / 512 % 7));
    const auto next = by->detect(std::span(samples).subspan(at, size), memory);
    ASSERT_TRUE(next.is_ok()) << next.status().to_string();
    probabilities.insert(probabilities.end(), next->begin(), next->end());
    at += size;
  }
  EXPECT_EQ(probabilities, *whole);
}

TEST_F(DetectorTest, WhateverDrivesTheLoopTheBitsAreTheSame) {
  const auto samples = samples_of(speech_files().front());
  const auto by_device = detect(samples, Loops::kDevice);
  EXPECT_EQ(by_device, detect(samples, Loops::kDevice));
  EXPECT_EQ(by_device, detect(samples, Loops::kHost));
}

TEST_F(DetectorTest, SilenceIsNoSpeechHoweverShort) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{511}, size_t{3 * kSampleRate + 1}}) {
    const std::vector<float> silence(size);
    const FoundSpeech found = find({write_samples("silence.wav", silence)});
    EXPECT_TRUE(found.segments().empty()) << size << " samples";
    EXPECT_EQ(found.num_chunks, (std::ssize(silence) + kChunkSamples - 1) / kChunkSamples);
    EXPECT_EQ(detect(silence).size(), static_cast<size_t>(found.num_chunks));
  }
  EXPECT_EQ(find_speech(*detector(), {}).status().code(), StatusCode::kInvalidArgument);
}

TEST(Detector, AMissingModelIsNamed) {
  const auto detector = Detector::create("no/such/model.onnx", {});
  ASSERT_FALSE(detector.is_ok());
  EXPECT_NE(detector.status().to_string().find("no/such/model.onnx"), std::string::npos);
}

}  // namespace
}  // namespace eddy::voice
