// Claim: pieces hold all speech in order, none is longer than promised, near segments are one
// piece, and what is too long is cut where speech is least likely.
#include "examples/speech_to_text/pieces.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "graph/base/random.h"

namespace eddy::speech {
namespace {

using voice::Segment;

// A chunk lasts half a second here, so that times are small numbers.
constexpr double kChunkSeconds = 0.5;
const PieceOptions kPlain = {.longest_s = 8, .longest_pause_s = 1, .pad_s = 0};

std::string pieces(const std::vector<Segment>& segments, double sound_s,
                   const PieceOptions& options = kPlain, std::vector<float> probabilities = {}) {
  probabilities.resize(static_cast<size_t>(sound_s / kChunkSeconds), 1.0f);
  std::string text;
  for (const Piece& piece : cut_pieces(segments, probabilities, kChunkSeconds, sound_s, options)) {
    char line[64];
    std::snprintf(line, sizeof line, "%g-%g ", piece.sound.start_s, piece.sound.end_s);
    text += line;
  }
  return text;
}

TEST(Pieces, SilenceHasNone) { EXPECT_EQ(pieces({}, 10), ""); }

TEST(Pieces, SegmentsWithAShortPauseBetweenAreOne) {
  EXPECT_EQ(pieces({{1, 2}, {3, 4}, {5.5, 6}}, 10), "1-4 5.5-6 ");
}

TEST(Pieces, NoneIsMergedBeyondTheLongest) {
  EXPECT_EQ(pieces({{0, 4}, {5, 8}, {9, 10}}, 20), "0-8 9-10 ");
  EXPECT_EQ(pieces({{0, 4}, {5, 9}}, 20), "0-4 5-9 ");
}

TEST(Pieces, LongSpeechIsCutWhereItIsLeastLikely) {
  std::vector<float> probabilities(40, 1.0f);
  probabilities[3] = 0;      // too early
  probabilities[11] = 0.6f;  // 5.5 to 6 s
  probabilities[20] = 0.7f;  // 10 to 10.5 s
  EXPECT_EQ(pieces({{0, 16}}, 20, kPlain, probabilities), "0-5.75 5.75-10.25 10.25-16 ");
}

TEST(Pieces, SoundReachesIntoTheSilenceAroundAtMostHalfway) {
  PieceOptions options = kPlain;
  options.pad_s = 1;
  EXPECT_EQ(pieces({{0.5, 2}, {3.5, 5}, {9, 9.5}}, 10, options), "0-2.75 2.75-6 8-10 ");
}

TEST(Pieces, OfRandomSegmentsHoldAllSpeechInOrder) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    std::vector<Segment> segments;
    double now_s = random.uniform(0, 2);
    for (uint64_t i = 0; i < 1 + random.below(20); ++i) {
      const double end_s = now_s + random.uniform(0.25f, i % 5 == 0 ? 60 : 4);
      segments.push_back({now_s, end_s});
      now_s = end_s + random.uniform(0.1f, 3);
    }
    std::vector<float> probabilities(static_cast<size_t>(now_s / 0.032));
    for (float& p : probabilities) p = random.uniform(0, 1);
    const PieceOptions options;
    const auto all = cut_pieces(segments, probabilities, 0.032, now_s, options);
    double speech_s = 0, end_s = 0, sound_end_s = 0;
    for (const Piece& piece : all) {
      EXPECT_GE(piece.speech.start_s, end_s) << "seed " << seed;
      EXPECT_GE(piece.sound.start_s, sound_end_s - 1e-9) << "seed " << seed;
      EXPECT_LE(piece.sound.start_s, piece.speech.start_s) << "seed " << seed;
      EXPECT_GE(piece.sound.end_s, piece.speech.end_s) << "seed " << seed;
      EXPECT_LE(piece.speech.end_s - piece.speech.start_s, options.longest_s + 1e-9)
          << "seed " << seed;
      end_s = piece.speech.end_s;
      sound_end_s = piece.sound.end_s;
      for (const Segment& segment : segments) {
        speech_s += std::max(0.0, std::min(segment.end_s, piece.speech.end_s) -
                                      std::max(segment.start_s, piece.speech.start_s));
      }
    }
    EXPECT_LE(sound_end_s, now_s + 1e-9) << "seed " << seed;
    double expected_s = 0;
    for (const Segment& segment : segments) expected_s += segment.end_s - segment.start_s;
    EXPECT_NEAR(speech_s, expected_s, 1e-6) << "seed " << seed;
  }
}

}  // namespace
}  // namespace eddy::speech
