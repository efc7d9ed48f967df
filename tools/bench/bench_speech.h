// eddy bench speech: the models of tools/demo as ONNX Runtime's users run them, in the same run, on
// one thread each (--threads: so many): Moonshine from sound to tokens, what a further token takes,
// Silero over a recording, and loading in fresh processes, each with its peak memory.
//
// The sound is three recordings of alsa-utils, one after another: about 4 s that give 17 tokens.
// Models come from the cache folder; rows without a model or sound are left out, with the reason.
#pragma once

#include <string>

#include "tools/bench/bench_suite.h"

namespace eddy {

struct BenchSpeechArguments {
  BenchOptions common;
  std::string silero;  // model file; empty: where the demo keeps it
  // What this process loads and runs, to print how long loading took (ns) and its peak memory
  // (bytes): "moonshine", "decoder" (loads only) or "silero"; empty: measure everything.
  std::string fresh;
  std::string contender = "eddy";  // of `fresh`; or "onnxruntime"
};

// kDiffers when tokens or probabilities are not the rival's. A missed figure is no failure.
Outcome bench_speech(const BenchSpeechArguments& arguments, Console& console,
                     Interrupts& interrupts);

}  // namespace eddy
