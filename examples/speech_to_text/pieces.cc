#include "examples/speech_to_text/pieces.h"

#include <algorithm>

namespace eddy::speech {
namespace {

using voice::Segment;

double length_s(const Segment& segment) { return segment.end_s - segment.start_s; }

// The middle of the least likely chunk between two moments.
double quietest_s(std::span<const float> probabilities, double chunk_s, double from_s,
                  double to_s) {
  const auto chunk_at = [&](double s) {
    return std::min(static_cast<size_t>(s / chunk_s), probabilities.size());
  };
  const auto first = probabilities.begin() + static_cast<std::ptrdiff_t>(chunk_at(from_s));
  const auto last = probabilities.begin() + static_cast<std::ptrdiff_t>(chunk_at(to_s));
  if (first == last) return to_s;
  const auto least = std::min_element(first, last) - probabilities.begin();
  return std::clamp((static_cast<double>(least) + 0.5) * chunk_s, from_s, to_s);
}

// No part is longer than `longest_s`, and none shorter than a quarter of it.
void append_parts(Segment segment, std::span<const float> probabilities, double chunk_s,
                  double longest_s, std::vector<Segment>& parts) {
  while (length_s(segment) > longest_s) {
    const double last_s = std::min(segment.start_s + longest_s, segment.end_s - longest_s / 4);
    const double cut_s =
        quietest_s(probabilities, chunk_s, segment.start_s + longest_s / 2, last_s);
    parts.push_back({segment.start_s, cut_s});
    segment.start_s = cut_s;
  }
  parts.push_back(segment);
}

std::vector<Segment> merge(std::span<const Segment> parts, const PieceOptions& options) {
  std::vector<Segment> merged;
  for (const Segment& part : parts) {
    const bool is_near = !merged.empty() &&
                         part.start_s - merged.back().end_s <= options.longest_pause_s &&
                         part.end_s - merged.back().start_s <= options.longest_s;
    if (is_near) {
      merged.back().end_s = part.end_s;
    } else {
      merged.push_back(part);
    }
  }
  return merged;
}

}  // namespace

std::vector<Piece> cut_pieces(std::span<const Segment> segments,
                              std::span<const float> probabilities, double chunk_s, double sound_s,
                              const PieceOptions& options) {
  std::vector<Segment> parts;
  for (const Segment& segment : segments) {
    append_parts(segment, probabilities, chunk_s, options.longest_s, parts);
  }
  const std::vector<Segment> merged = merge(parts, options);
  std::vector<Piece> pieces;
  for (size_t i = 0; i < merged.size(); ++i) {
    const Segment& speech = merged[i];
    const double before_s = i == 0 ? speech.start_s : (speech.start_s - merged[i - 1].end_s) / 2;
    const double after_s = i + 1 == merged.size() ? sound_s - speech.end_s
                                                  : (merged[i + 1].start_s - speech.end_s) / 2;
    pieces.push_back({speech,
                      {speech.start_s - std::min(options.pad_s, before_s),
                       speech.end_s + std::min(options.pad_s, after_s)}});
  }
  return pieces;
}

}  // namespace eddy::speech
