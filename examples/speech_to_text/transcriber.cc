#include "examples/speech_to_text/transcriber.h"

#include <algorithm>
#include <cmath>

namespace eddy::speech {
namespace {

// What the encoder's convolutions need at least, rounded up.
constexpr size_t kMinSamples = kSampleRate / 10;
constexpr int64_t kTokensPerSecond = 6;
// Below this there is no speech to make louder: the last bit of 16-bit samples.
constexpr double kSilence = 1.0 / 32768;

}  // namespace

std::vector<float> prepare_sound(std::span<const float> samples) {
  double squares = 0;
  for (const float sample : samples) squares += static_cast<double>(sample) * sample;
  const double loudness = samples.empty() ? 0 : std::sqrt(squares / samples.size());
  // Without this gain, Front_Center.wav would be "Front center", without comma and period.
  const double gain = loudness <= kSilence ? 1 : kLoudness / loudness;
  std::vector<float> result(std::max(samples.size(), kMinSamples));
  std::ranges::transform(samples, result.begin(),
                         [&](float sample) { return static_cast<float>(gain * sample); });
  return result;
}

Result<std::unique_ptr<Transcriber>> Transcriber::create(const MoonshineFiles& files,
                                                         const std::string& vocabulary_path,
                                                         const SessionOptions& options) {
  auto transcriber = std::make_unique<Transcriber>();
  EDDY_ASSIGN_OR_RETURN(transcriber->vocabulary_, Vocabulary::read(vocabulary_path));
  EDDY_ASSIGN_OR_RETURN(Graph graph, build_moonshine(transcriber->library_.ops(), files));
  EDDY_ASSIGN_OR_RETURN(transcriber->session_,
                        Session::create(transcriber->library_, std::move(graph), options));
  return transcriber;
}

int64_t Transcriber::token_limit(size_t num_samples) {
  return static_cast<int64_t>(num_samples) * kTokensPerSecond / kSampleRate;
}

Result<Transcript> Transcriber::transcribe(std::span<const float> samples, int64_t token_limit) {
  if (samples.size() > size_t{kMaxSeconds} * kSampleRate) {
    return invalid_argument("the recording is longer than " + std::to_string(kMaxSeconds) +
                            " s; cut it into pieces");
  }
  const std::vector<float> sound = prepare_sound(samples);
  const NamedTensors inputs = {
      {"samples", Tensor::of<float>({1, static_cast<int64_t>(sound.size())}, sound)},
      {"token_limit", Tensor::scalar(token_limit)}};
  EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session_->run(inputs));
  const std::span<const int64_t> tokens = outputs[0].second.values<int64_t>();
  EDDY_ASSIGN_OR_RETURN(std::string text, vocabulary_.text(tokens));
  const bool has_ended = !tokens.empty() && tokens.back() == kEndOfText;
  return Transcript{std::move(text), {tokens.begin(), tokens.end()}, has_ended};
}

LoopReport Transcriber::loop_report() const {
  for (const LoopReport& loop : session_->loop_reports()) {
    if (loop.path == "decode") return loop;
  }
  return {};
}

}  // namespace eddy::speech
