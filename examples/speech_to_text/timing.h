// Timing: how long a recording takes, as a line of text.
//
//   "5 decoding steps, 61.2 ms for 1.4 s of sound: 46.0 ms to the first token, 3.80 ms for each
//   further token"
//
// Fastest runs count. What a further token takes is the time of whole runs less that of runs that
// stop after the first token; where that difference drowns in the machine's noise (the middle one
// of the latter took as long as the fastest whole one) the line ends before the colon.
#pragma once

#include <string>
#include <vector>

namespace eddy::speech {

struct Timing {
  std::vector<double> whole_ms;  // one for each run; at least one
  std::vector<double> first_token_ms;
};

std::string describe(const Timing& timing, size_t num_steps, double sound_s);

}  // namespace eddy::speech
