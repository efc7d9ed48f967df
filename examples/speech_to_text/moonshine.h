// build_moonshine: two ONNX files become one graph that turns sound into tokens.
//
//   samples -> encoder -> while (last token is not end-of-text, at most token_limit times)
//                           decoder step -> argmax
//
// The decoder's file holds an If: its first step also computes keys and values from the encoder's
// states, later steps are given them. The loop carries the last token and every cache. Those of
// the decoder itself grow by one position a step; the encoder's are taken from the first step and
// kept. The tokens, end-of-text included, are stacked.
//
// Inputs: `samples` float[1, n] at 16 kHz, `token_limit` int64. Output: `tokens` int64[steps].
// Errors: those of the import; kInvalidArgument when a file is another model, by what is missing.
// Source: Jeffries et al., "Moonshine: Speech Recognition for Live Transcription and Voice
// Commands" (2024).
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"

namespace eddy::speech {

inline constexpr int kSampleRate = 16000;
inline constexpr int64_t kStartOfText = 1;
inline constexpr int64_t kEndOfText = 2;

// The tiny model.
inline constexpr int64_t kHeads = 8;
inline constexpr int64_t kHeadSize = 36;
// "0.decoder.key", "0.decoder.value", "1.decoder.key" ...: the caches of `side` "decoder" or
// "encoder", which the file calls "past_key_values." and "present." before that.
std::vector<std::string> cache_names(const std::string& side);

struct MoonshineFiles {
  std::string encoder;
  std::string decoder;  // with both of its branches in one file
};

Result<Graph> build_moonshine(const OpTable& ops, const MoonshineFiles& files);

}  // namespace eddy::speech
