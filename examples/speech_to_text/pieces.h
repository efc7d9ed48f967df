// cut_pieces: segments of speech become pieces of a length that the transcriber does well.
//
// The model was made for utterances: of one word it knows too little, and of long sound it gives
// the same words again and again. So segments with a short pause between become one piece, and what
// is longer than `longest_s` is cut where speech is least likely, between half of that and its end.
// A piece's sound has a little of the silence around it, at most half of what lies between two.
//
// Segments are in order and do not overlap; so are the pieces, and each segment lies in pieces.
// Memory of a transcription is bounded by longest_s + 2 pad_s of sound.
// Threads: pure. Cost: O(segments + chunks).
#pragma once

#include <span>
#include <vector>

#include "examples/voice_activity/segments.h"

namespace eddy::speech {

struct PieceOptions {
  double longest_s = 9;
  double longest_pause_s = 2;
  double pad_s = 0.15;  // where silence is longer, the model may end before it has begun
};

struct Piece {
  voice::Segment speech;
  voice::Segment sound;  // what to transcribe
};

// `probabilities` of speech, one for each `chunk_s`; times lie in 0 .. sound_s.
std::vector<Piece> cut_pieces(std::span<const voice::Segment> segments,
                              std::span<const float> probabilities, double chunk_s, double sound_s,
                              const PieceOptions& options = {});

}  // namespace eddy::speech
