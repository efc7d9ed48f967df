// speech_part: Silero and Moonshine tiny on the device, and the CPU as their rival.
#pragma once

#include "tools/gpu/report_part.h"

namespace eddy {

// The models of tools/demo, from `folder`, by how their files' names begin: silero_vad,
// moonshine_tiny_encoder and moonshine_tiny_decoder (.onnx); and its recordings (.wav, in order of
// their names, one after another, at most kMaxSeconds of them). A model is one graph with a loop,
// as the examples have it; both sides get the same sound.
//
// Rows have milliseconds a run and a second of sound, those of the CPU ("cpu_ms", all its threads),
// their ratio, and how the loop was driven; Silero's also microseconds a chunk. Tokens must be the
// CPU's; Silero's probabilities and state may be off by a hundredth of their size and a thousandth
// of the largest, or as far as TF32 rounds. A model without its files has status "left out".
// Errors: neither model, or no sound: "error" says so.
nlohmann::json report_speech(const SessionsUnderReport& what, const std::string& folder);

}  // namespace eddy
