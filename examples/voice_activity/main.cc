// voice_activity --model silero_vad.onnx --wav FILE [--wav FILE ...]: prints where each recording
// holds speech, in its own time.
//
// Exit codes: 0; 2 usage; 3 a file is bad; 4 the run failed.
#include <cstdio>
#include <cstring>

#include "examples/report.h"
#include "examples/voice_activity/find_speech.h"

namespace eddy::voice {
namespace {

constexpr int kRepeats = 3;

void print_speed(const FoundSpeech& found, const LoopReport& loop) {
  const auto chunks = static_cast<double>(found.num_chunks);
  std::printf("%s of %lld iterations, driven by the %s: %.1f us per chunk of %.0f ms, ",
              found.num_runs == 1 ? "one loop" : "a loop", static_cast<long long>(found.num_chunks),
              loop.driven.c_str(), 1e6 * found.detection_s / chunks, 1e3 * kChunkSeconds);
  std::printf("%.0f times real time\n", chunks * kChunkSeconds / found.detection_s);
}

Status run(const std::string& model, const std::vector<std::string>& paths) {
  EDDY_RETURN_IF_ERROR(check_wavs(paths));
  EDDY_ASSIGN_OR_RETURN(const auto detector, Detector::create(model, {.num_threads = 1}));
  EDDY_ASSIGN_OR_RETURN(const FoundSpeech found, find_speech(*detector, paths, kRepeats));
  for (const Speech& speech : found.recordings) {
    for (const Segment& segment : speech.segments) {
      std::printf("%7.2f s to %6.2f s  %s\n", segment.start_s, segment.end_s,
                  speech.recording.name.c_str());
    }
  }
  std::printf("%s\n", summary(found.segments(), found.seconds()).c_str());
  if (found.num_chunks > 0) print_speed(found, detector->loop_report());
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
