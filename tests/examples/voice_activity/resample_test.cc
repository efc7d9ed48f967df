// Claim: resampling keeps what both rates can hold, as a sine of known phase shows, takes away
// what the lower rate cannot, and gives the promised number of samples, in blocks as at once.
#include "examples/voice_activity/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

#include "graph/base/random.h"

namespace eddy::voice {
namespace {

std::vector<float> sine(double hertz, int rate, size_t size) {
  std::vector<float> samples(size);
  for (size_t i = 0; i < size; ++i) {
    samples[i] =
        static_cast<float>(std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
  }
  return samples;
}

// Away from the ends, where silence is mixed in.
double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = a.size() / 4; i < a.size() * 3 / 4; ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

TEST(Resample, ASineStaysWhereItIs) {
  for (const int from : {8000, 11025, 16000, 22050, 44100, 48000, 96000, 15999}) {
    const auto result = resample(sine(440, from, static_cast<size_t>(from) / 5), from, 16000);
    EXPECT_LT(largest_difference(result, sine(440, 16000, result.size())), 2e-3) << from;
  }
}

TEST(Resample, WhatTheLowerRateCannotHoldIsTakenAway) {
  for (const double hertz : {9500.0, 12000.0, 20000.0}) {
    const auto result = resample(sine(hertz, 48000, 9600), 48000, 16000);
    EXPECT_LT(largest_difference(result, std::vector<float>(result.size())), 1e-2) << hertz;
  }
}

TEST(Resample, TheLengthFollowsTheRates) {
  for (const auto& [from, to] : {std::pair(48000, 16000),
                                 {44100, 16000},
                                 {8000, 16000},
                                 {16000, 16000},
                                 {1000, 16000},
                                 {192000, 16000}}) {
    for (const size_t size : {0, 1, 2, 3, 100, 441}) {
      const size_t expected = (size * static_cast<size_t>(to) + static_cast<size_t>(from) - 1) /
                              static_cast<size_t>(from);
      EXPECT_EQ(resample(std::vector<float>(size), from, to).size(), expected)
          << size << " samples from " << from;
    }
  }
}

// 15,999 to 16,000 has too many places for a table; 192,001 needs long weights as well.
TEST(Resample, HoweverTheInputIsCutTheBitsAreTheSame) {
  for (const int from : {8000, 44100, 48000, 15999, 192001, 16000}) {
    Random random(static_cast<uint64_t>(from));
    std::vector<float> samples(2000);
    for (float& sample : samples) sample = random.uniform(-1, 1);
    const std::vector<float> whole = resample(samples, from, 16000);
    for (int turn = 0; turn < 4; ++turn) {
      Resampler resampler(from, 16000);
      std::vector<float> result;
      const auto take = [&](const std::vector<float>& next) {
        result.insert(result.end(), next.begin(), next.end());
      };
      for (size_t at = 0; at < samples.size();) {
        const size_t count =
            std::min<size_t>(random.below(turn == 0 ? 3 : 700), samples.size() - at);
        take(resampler.push(std::span(samples).subspan(at, count)));
        at += count;
      }
      take(resampler.finish());
      EXPECT_EQ(result, whole) << "from " << from << ", turn " << turn;
    }
  }
}

TEST(Resample, OneRateIsACopy) {
  const std::vector<float> samples = {1, -2, 3};
  EXPECT_EQ(resample(samples, 16000, 16000), samples);
}

}  // namespace
}  // namespace eddy::voice
