#include "examples/speech_to_text/timing.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace eddy::speech {
namespace {

std::string counted(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

size_t count_words(std::string_view text) {
  size_t count = 0;
  bool in_word = false;
  for (const unsigned char c : text) {
    const bool is_space = std::isspace(c) != 0;
    count += !is_space && !in_word ? 1 : 0;
    in_word = !is_space;
  }
  return count;
}

void Totals::add(const Timing& timing, size_t num_words, size_t num_steps, double sound_s) {
  const double whole_ms = std::ranges::min(timing.whole_ms);
  num_words_ += num_words;
  num_steps_ += num_steps;
  sound_s_ += sound_s;
  whole_ms_ += whole_ms;
  std::vector<double> firsts_ms = timing.first_token_ms;
  std::ranges::sort(firsts_ms);
  if (num_steps < 2 || firsts_ms.empty() || firsts_ms[firsts_ms.size() / 2] >= whole_ms) return;
  ++num_clear_;
  num_further_ += num_steps - 1;
  first_ms_ += firsts_ms.front();
  further_ms_ += whole_ms - firsts_ms.front();
}

std::string Totals::describe() const {
  char text[128];
  std::snprintf(text, sizeof text, ", %.1f ms for %.1f s of speech", whole_ms_, sound_s_);
  std::string line =
      counted(num_words_, "word") + ", " + counted(num_steps_, "decoding step") + text;
  if (num_steps_ == 0) return line;
  std::snprintf(text, sizeof text, ": %.2f ms per token",
                whole_ms_ / static_cast<double>(num_steps_));
  line += text;
  if (num_clear_ == 0) return line;
  std::snprintf(text, sizeof text, " (%.1f ms to the first, %.2f ms for each further one)",
                first_ms_ / static_cast<double>(num_clear_),
                further_ms_ / static_cast<double>(num_further_));
  return line + text;
}

}  // namespace eddy::speech
