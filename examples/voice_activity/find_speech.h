// find_speech: where recordings hold speech.
//
// The recordings are joined (JoinedSound) and go through the detector in blocks of two minutes,
// which are one sound to it; of each recording its own chunks are looked at, and its segments have
// its own times.
//
// Errors: those of JoinedSound and Detector; kInvalidArgument for no recording at all.
// Memory: that of a block, and four bytes for each chunk of 32 ms.
#pragma once

#include <string>
#include <vector>

#include "examples/voice_activity/detector.h"
#include "examples/voice_activity/segments.h"
#include "examples/voice_activity/sound.h"

namespace eddy::voice {

struct Speech {
  Part recording;
  std::vector<float> probabilities;  // of its chunks
  std::vector<Segment> segments;
};

struct FoundSpeech {
  std::vector<Speech> recordings;
  int64_t num_chunks = 0;                 // silence between recordings included
  int64_t num_runs = 0;                   // of the loop, one for each block
  double detection_s = 0;                 // the time that these runs took
  double seconds() const;                 // of the recordings
  std::vector<Segment> segments() const;  // of all, each in its recording's time
};

// Runs the first block `repeats` times, and counts the fastest.
Result<FoundSpeech> find_speech(Detector& detector, const std::vector<std::string>& paths,
                                int repeats = 1);

}  // namespace eddy::voice
