#include "examples/voice_activity/segments.h"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace eddy::voice {
namespace {

void widen(std::vector<Segment>& segments, double end_s, double pad_s) {
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool is_last = i + 1 == segments.size();
    if (i == 0) segments[i].start_s = std::max(0.0, segments[i].start_s - pad_s);
    if (is_last) {
      segments[i].end_s = std::min(end_s, segments[i].end_s + pad_s);
    } else {
      const double pad = std::min(pad_s, (segments[i + 1].start_s - segments[i].end_s) / 2);
      segments[i].end_s += pad;
      segments[i + 1].start_s -= pad;
    }
  }
}

}  // namespace

std::vector<Segment> find_segments(std::span<const float> probabilities, double chunk_s,
                                   const SegmentOptions& options) {
  std::vector<Segment> segments;
  std::optional<double> speech_since;
  std::optional<double> quiet_since;  // while in speech
  const auto end_speech = [&](double end_s) {
    if (end_s - *speech_since >= options.min_speech_s) segments.push_back({*speech_since, end_s});
    speech_since.reset();
    quiet_since.reset();
  };
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double now_s = static_cast<double>(i) * chunk_s;
    if (probabilities[i] >= options.threshold) {
      quiet_since.reset();
      if (!speech_since) speech_since = now_s;
    } else if (speech_since && probabilities[i] < options.exit_threshold) {
      if (!quiet_since) quiet_since = now_s;
      if (now_s - *quiet_since >= options.min_silence_s) end_speech(*quiet_since);
    }
  }
  const double end_s = static_cast<double>(probabilities.size()) * chunk_s;
  if (speech_since) end_speech(quiet_since.value_or(end_s));
  widen(segments, end_s, options.pad_s);
  return segments;
}

std::string summary(std::span<const Segment> segments, double recording_s) {
  const size_t count = segments.size();
  char text[64];
  std::snprintf(text, sizeof text, "speech in %.1f s", recording_s);
  if (count == 0) return std::string("no ") + text;
  return std::to_string(count) + (count == 1 ? " segment of " : " segments of ") + text;
}

}  // namespace eddy::voice
