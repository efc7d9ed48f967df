// The models of tools/demo, run by Eddy and by ONNX Runtime, on so many threads each.
//
// Eddy runs one graph with a loop in it (examples/speech_to_text, examples/voice_activity). ONNX
// Runtime is driven from outside, step after step, as its users do: Moonshine's encoder once, then
// its merged decoder for every token, greedily, caches handed from one run to the next without a
// copy; Silero's model for every chunk.
//
// Errors: those of the models and of the library. Threads: one at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "examples/speech_to_text/moonshine.h"
#include "runtime/api/session.h"
#include "tools/bench/ort_rival.h"

namespace eddy {

class Moonshine {
 public:
  virtual ~Moonshine() = default;
  // Tokens of `sound` (at 16 kHz, one loudness), end-of-text included, at most `limit`.
  virtual Result<std::vector<int64_t>> transcribe(std::span<const float> sound, int64_t limit) = 0;
  virtual Session* session_or_null() { return nullptr; }
};
Result<std::unique_ptr<Moonshine>> load_moonshine(const Library& library,
                                                  const speech::MoonshineFiles& files,
                                                  int num_threads = 1);
Result<std::unique_ptr<Moonshine>> load_moonshine(const OrtLibrary& library,
                                                  const speech::MoonshineFiles& files,
                                                  int num_threads = 1);

class Silero {
 public:
  virtual ~Silero() = default;
  // The probability of speech in each chunk of 512 samples; `sound` is whole chunks.
  virtual Result<std::vector<float>> detect(std::span<const float> sound) = 0;
  virtual Session* session_or_null() { return nullptr; }
};
Result<std::unique_ptr<Silero>> load_silero(const Library& library, const std::string& path,
                                            int num_threads = 1);
Result<std::unique_ptr<Silero>> load_silero(const OrtLibrary& library, const std::string& path,
                                            int num_threads = 1);

}  // namespace eddy
