// voice_activity --model silero_vad.onnx --wav FILE [--wav FILE ...]: prints where the recordings,
// joined with silence around each, hold speech.
//
// Exit codes: 0; 2 usage; 3 a file is bad; 4 the run failed.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "examples/report.h"
#include "examples/voice_activity/detector.h"
#include "examples/voice_activity/join.h"
#include "examples/voice_activity/segments.h"

namespace eddy::voice {
namespace {

constexpr int kRuns = 3;  // the fastest is reported

// The recording that the segment starts in or before.
const Part& part_of(const Joined& joined, const Segment& segment) {
  for (const Part& part : joined.parts) {
    if (segment.start_s < part.end_s) return part;
  }
  return joined.parts.back();
}

Status run(const std::string& model, const std::vector<std::string>& paths) {
  EDDY_ASSIGN_OR_RETURN(const Joined joined, join(paths));
  EDDY_ASSIGN_OR_RETURN(const auto detector, Detector::create(model, {.num_threads = 1}));
  std::vector<float> probabilities;
  double best_s = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EDDY_ASSIGN_OR_RETURN(probabilities, detector->detect(joined.samples));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i == 0 || took.count() < best_s) best_s = took.count();
  }

  const auto segments = find_segments(probabilities, kChunkSeconds);
  for (const Segment& segment : segments) {
    std::printf("%7.2f s to %6.2f s  %s\n", segment.start_s, segment.end_s,
                part_of(joined, segment).name.c_str());
  }
  const LoopReport loop = detector->loop_report();
  std::printf("%s\n", summary(segments, joined.seconds()).c_str());
  std::printf(
      "one loop of %lld iterations, driven by the %s: %.1f us per chunk of %.0f ms, "
      "%.0f times real time\n",
      static_cast<long long>(loop.iterations), loop.driven.c_str(),
      1e6 * best_s / static_cast<double>(probabilities.size()), 1e3 * kChunkSeconds,
      joined.seconds() / best_s);
  return Status::ok();
}

}  // namespace
}  // namespace eddy::voice

int main(int argc, char** argv) {
  std::string model;
  std::vector<std::string> wavs;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--model") == 0) model = argv[i + 1];
    if (std::strcmp(argv[i], "--wav") == 0) wavs.push_back(argv[i + 1]);
  }
  const bool is_understood =
      !model.empty() && !wavs.empty() && static_cast<size_t>(argc) == 3 + 2 * wavs.size();
  if (!is_understood) {
    std::fprintf(stderr,
                 "usage: voice_activity --model silero_vad.onnx --wav FILE [--wav FILE ...]\n");
    return 2;
  }
  return eddy::report(eddy::voice::run(model, wavs));
}
