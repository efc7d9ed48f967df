#include "examples/speech_to_text/timing.h"

#include <algorithm>
#include <cstdio>

namespace eddy::speech {

std::string describe(const Timing& timing, size_t num_steps, double sound_s) {
  const double whole_ms = std::ranges::min(timing.whole_ms);
  const auto [first_ms, slowest_first_ms] = std::ranges::minmax(timing.first_token_ms);
  char text[128];
  std::snprintf(text, sizeof text, "%zu decoding step%s, %.1f ms for %.1f s of sound", num_steps,
                num_steps == 1 ? "" : "s", whole_ms, sound_s);
  std::string line = text;
  if (num_steps > 1 && slowest_first_ms < whole_ms) {
    std::snprintf(text, sizeof text, ": %.1f ms to the first token, %.2f ms for each further token",
                  first_ms, (whole_ms - first_ms) / static_cast<double>(num_steps - 1));
    line += text;
  }
  return line;
}

}  // namespace eddy::speech
