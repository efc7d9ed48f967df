// Claim: files are read at the detector's rate, the same in blocks as at once; joined, each begins
// with a chunk, has silence of at least the promised length behind it, and nothing is lost.
#include "examples/voice_activity/sound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "graph/base/random.h"
#include "tests/examples/voice_activity/wav_file.h"

namespace eddy::voice {
namespace {

std::string path_of(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return std::string(folder != nullptr ? folder : "/tmp") + "/" + name;
}

// Never zero, so that silence differs from sound.
std::string write_noise(const std::string& name, size_t num_samples, uint32_t rate) {
  Random random(num_samples + rate);
  std::vector<float> samples(num_samples);
  for (float& sample : samples) sample = random.uniform(0.1f, 0.9f);
  return test::write_wav(path_of(name), test::riff(test::format_chunk({.sample_rate = rate}) +
                                                   test::chunk("data", test::pcm16(samples))));
}

std::vector<float> read_all(const std::string& path) {
  auto file = SoundFile::open(path);
  EXPECT_TRUE(file.is_ok()) << file.status().to_string();
  return file.is_ok() ? *file->read(int64_t{1} << 40) : std::vector<float>();
}

TEST(SoundFile, BlocksGiveTheSameSamplesAsAllAtOnce) {
  const std::string path = write_noise("blocks.wav", 200001, 44100);
  const auto recording = read_wav(path);
  ASSERT_TRUE(recording.is_ok());
  const auto expected = resample(recording->samples, 44100, kSampleRate);
  EXPECT_EQ(read_all(path), expected);
  auto file = SoundFile::open(path);
  std::vector<float> samples;
  for (int64_t size = 1;; size = size * 2 + 1) {
    const auto next = file->read(size);
    ASSERT_TRUE(next.is_ok());
    samples.insert(samples.end(), next->begin(), next->end());
    EXPECT_EQ(file->num_read(), std::ssize(samples));
    if (std::ssize(*next) < size) break;
  }
  EXPECT_EQ(samples, expected);
}

TEST(SoundFile, WhatLiesBetweenTwoMomentsIsRead) {
  const std::string path = write_noise("between.wav", 10 * kSampleRate, kSampleRate);
  const auto all = read_all(path);
  auto file = SoundFile::open(path);
  const auto part = [&](double from_s, double to_s) { return *file->read_between(from_s, to_s); };
  const auto expected = [&](size_t from, size_t to) {
    return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(from),
                              all.begin() + static_cast<std::ptrdiff_t>(to));
  };
  EXPECT_EQ(part(0.5, 1.25), expected(8000, 20000));
  EXPECT_EQ(part(1.25, 1.25), std::vector<float>());
  EXPECT_EQ(part(9, 11), expected(144000, 160000));
  EXPECT_EQ(part(20, 21), std::vector<float>());
}

TEST(JoinedSound, EachRecordingHasChunksOfItsOwnAndSilenceBehind) {
  const std::vector<size_t> lengths = {5000, 0, 1, 512, 20000};
  std::vector<std::string> paths;
  for (const size_t length : lengths) {
    paths.push_back(write_noise("part" + std::to_string(length) + ".wav", length, kSampleRate));
  }
  for (const int64_t block : {512, 1024, 100000}) {
    JoinedSound sound(paths);
    std::vector<float> samples;
    for (;;) {
      const auto next = sound.read(block);
      ASSERT_TRUE(next.is_ok()) << next.status().to_string();
      if (next->empty()) break;
      samples.insert(samples.end(), next->begin(), next->end());
    }
    ASSERT_EQ(sound.parts().size(), lengths.size());
    for (size_t i = 0; i < lengths.size(); ++i) {
      const Part& part = sound.parts()[i];
      EXPECT_EQ(part.num_samples, static_cast<int64_t>(lengths[i]));
      const auto start = static_cast<size_t>(part.first_chunk * kChunkSamples);
      const bool is_last = i + 1 == lengths.size();
      const size_t next =
          is_last ? samples.size()
                  : static_cast<size_t>(sound.parts()[i + 1].first_chunk * kChunkSamples);
      ASSERT_LE(start + lengths[i], next);
      const auto own = std::span(samples).subspan(start, lengths[i]);
      EXPECT_TRUE(std::ranges::equal(own, read_all(paths[i]))) << part.name;
      const auto silence =
          std::span(samples).subspan(start + lengths[i], next - start - lengths[i]);
      EXPECT_EQ(std::ranges::count(silence, 0.0f), std::ssize(silence));
      const double silence_s = static_cast<double>(silence.size()) / kSampleRate;
      EXPECT_TRUE(is_last ? silence.empty() : silence_s >= kGapSeconds) << silence_s;
    }
  }
}

TEST(JoinedSound, ABadFileIsNamedWhenItIsReached) {
  JoinedSound sound({write_noise("good.wav", 100, kSampleRate), "no/such.wav"});
  EXPECT_TRUE(sound.read(100).is_ok());
  EXPECT_EQ(sound.read(100000).status().message(), "no/such.wav: it cannot be read");
}

}  // namespace
}  // namespace eddy::voice
