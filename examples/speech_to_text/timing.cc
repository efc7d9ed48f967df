#include "examples/speech_to_text/timing.h"

#include <algorithm>
#include <cstdio>

namespace eddy::speech {

std::string describe(const Timing& timing, size_t num_steps, double sound_s) {
  const double whole_ms = std::ranges::min(timing.whole_ms);
  std::vector<double> firsts_ms = timing.first_token_ms;
  std::ranges::sort(firsts_ms);
  const double first_ms = firsts_ms.front();
  char text[128];
  std::snprintf(text, sizeof text, "%zu decoding step%s, %.1f ms for %.1f s of sound", num_steps,
                num_steps == 1 ? "" : "s", whole_ms, sound_s);
  std::string line = text;
  if (num_steps > 1 && firsts_ms[firsts_ms.size() / 2] < whole_ms) {
    std::snprintf(text, sizeof text, ": %.1f ms to the first token, %.2f ms for each further token",
                  first_ms, (whole_ms - first_ms) / static_cast<double>(num_steps - 1));
    line += text;
  }
  return line;
}

}  // namespace eddy::speech
