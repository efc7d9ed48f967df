// find_segments: where speech starts and ends, from the probability of each chunk.
//
// Speech starts with a chunk at or above `threshold`. It ends where the probability falls below
// `exit_threshold` and does not come back to `threshold` within `min_silence`. What is shorter
// than `min_speech` is dropped; the rest is widened by `pad` on both sides, at most to the middle
// of the gap. These are the rules and the usual settings of the authors of Silero VAD.
// summary: "3 segments of speech in 9.5 s", or "no speech in 9.5 s".
// Threads: pure. Cost: O(chunks).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace eddy::voice {

struct Segment {
  double start_s = 0;
  double end_s = 0;
};

struct SegmentOptions {
  double threshold = 0.5;
  double exit_threshold = 0.35;
  double min_silence_s = 0.1;
  double min_speech_s = 0.25;
  double pad_s = 0.03;
};

std::vector<Segment> find_segments(std::span<const float> probabilities, double chunk_s,
                                   const SegmentOptions& options = {});

std::string summary(std::span<const Segment> segments, double recording_s);

}  // namespace eddy::voice
