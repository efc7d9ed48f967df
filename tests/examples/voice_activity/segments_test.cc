// Claim: segments follow the rules of segments.h: hysteresis, shortest silence, shortest speech,
// padding to the middle of a gap. A chunk lasts a second here, so that times are small numbers.
#include "examples/voice_activity/segments.h"

#include <gtest/gtest.h>

#include <string>

namespace eddy::voice {
namespace {

std::string segments(const std::vector<float>& probabilities, SegmentOptions options) {
  std::string text;
  for (const Segment& segment : find_segments(probabilities, 1.0, options)) {
    text += std::to_string(segment.start_s).substr(0, 4) + "-" +
            std::to_string(segment.end_s).substr(0, 4) + " ";
  }
  return text;
}

const SegmentOptions kPlain = {.min_silence_s = 2, .min_speech_s = 2, .pad_s = 0};

TEST(Segments, SilenceHasNone) {
  EXPECT_EQ(segments({}, kPlain), "");
  EXPECT_EQ(segments({0, 0.49f, 0.1f}, kPlain), "");
}

TEST(Segments, SpeechGoesFromTheThresholdToTheExitThreshold) {
  EXPECT_EQ(segments({0, 0.4f, 0.5f, 0.6f, 0.36f, 0.3f, 0, 0, 0}, kPlain), "2.00-5.00 ");
}

TEST(Segments, SpeechMayLastToTheEnd) {
  EXPECT_EQ(segments({0, 1, 1, 1}, kPlain), "1.00-4.00 ");
  EXPECT_EQ(segments({0, 1, 1, 0}, kPlain), "1.00-3.00 ");
}

TEST(Segments, AShortPauseIsPartOfTheSpeech) {
  EXPECT_EQ(segments({1, 1, 0, 0, 1, 1, 0, 0, 0}, kPlain), "0.00-6.00 ");
  EXPECT_EQ(segments({1, 1, 0, 0, 0, 1, 1, 0, 0, 0}, kPlain), "0.00-2.00 5.00-7.00 ");
}

// Only `threshold` ends a pause: what lies between the two thresholds leaves it running.
TEST(Segments, BetweenTheThresholdsAPauseGoesOn) {
  EXPECT_EQ(segments({1, 1, 0, 0.4f, 0, 1, 1, 0, 0, 0}, kPlain), "0.00-2.00 5.00-7.00 ");
}

TEST(Segments, ShortSpeechIsDropped) {
  EXPECT_EQ(segments({0, 1, 0, 0, 0, 1, 1, 0, 0, 0}, kPlain), "5.00-7.00 ");
}

TEST(Segments, PaddingStopsAtTheEndsAndInTheMiddleOfAGap) {
  SegmentOptions options = kPlain;
  options.pad_s = 1.5;
  EXPECT_EQ(segments({0, 1, 1, 0, 0, 1, 1, 0}, {0.5, 0.35, 1, 2, 1.5}), "0.00-4.00 4.00-8.00 ");
  EXPECT_EQ(segments({0, 0, 0, 1, 1, 0, 0, 0, 0}, options), "1.50-6.50 ");
}

TEST(Segments, TheSummaryCountsThem) {
  EXPECT_EQ(summary({}, 1.42), "no speech in 1.4 s");
  EXPECT_EQ(summary(std::vector<Segment>(1), 9), "1 segment of speech in 9.0 s");
  EXPECT_EQ(summary(std::vector<Segment>(8), 19.25), "8 segments of speech in 19.2 s");
}

}  // namespace
}  // namespace eddy::voice
