#include "examples/voice_activity/find_speech.h"

#include <algorithm>
#include <chrono>

namespace eddy::voice {
namespace {

constexpr int64_t kBlockSamples = kChunkSamples * 3750;  // two minutes

using Clock = std::chrono::steady_clock;

// The probabilities of one block; `memory` goes on from it.
Result<std::vector<float>> detect_block(Detector& detector, std::span<const float> samples,
                                        int repeats, DetectorMemory& memory, double& best_s) {
  const DetectorMemory before = memory;
  std::vector<float> probabilities;
  for (int i = 0; i < repeats; ++i) {
    memory = before;
    const auto start = Clock::now();
    EDDY_ASSIGN_OR_RETURN(probabilities, detector.detect(samples, memory));
    const double took_s = std::chrono::duration<double>(Clock::now() - start).count();
    if (i == 0 || took_s < best_s) best_s = took_s;
  }
  return probabilities;
}

Speech speech_of(const Part& part, std::span<const float> probabilities) {
  const auto own = probabilities.subspan(static_cast<size_t>(part.first_chunk),
                                         static_cast<size_t>(part.num_chunks()));
  Speech speech{part, {own.begin(), own.end()}, find_segments(own, kChunkSeconds)};
  // The last chunk may be filled up with silence.
  for (Segment& segment : speech.segments) segment.end_s = std::min(segment.end_s, part.seconds());
  return speech;
}

}  // namespace

double FoundSpeech::seconds() const {
  double sum_s = 0;
  for (const Speech& speech : recordings) sum_s += speech.recording.seconds();
  return sum_s;
}

std::vector<Segment> FoundSpeech::segments() const {
  std::vector<Segment> all;
  for (const Speech& speech : recordings) {
    all.insert(all.end(), speech.segments.begin(), speech.segments.end());
  }
  return all;
}

Result<FoundSpeech> find_speech(Detector& detector, const std::vector<std::string>& paths,
                                int repeats) {
  if (paths.empty()) return invalid_argument("there is no recording; name at least one WAV file");
  JoinedSound sound(paths);
  DetectorMemory memory;
  FoundSpeech found;
  std::vector<float> probabilities;
  for (;;) {
    EDDY_ASSIGN_OR_RETURN(const std::vector<float> block, sound.read(kBlockSamples));
    if (block.empty()) break;
    double took_s = 0;
    EDDY_ASSIGN_OR_RETURN(
        const std::vector<float> next,
        detect_block(detector, block, found.num_runs == 0 ? repeats : 1, memory, took_s));
    probabilities.insert(probabilities.end(), next.begin(), next.end());
    found.detection_s += took_s;
    ++found.num_runs;
  }
  found.num_chunks = std::ssize(probabilities);
  for (const Part& part : sound.parts()) {
    found.recordings.push_back(speech_of(part, probabilities));
  }
  return found;
}

}  // namespace eddy::voice
