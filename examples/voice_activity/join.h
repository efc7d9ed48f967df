// join: recordings one after another at the detector's rate, with silence around each.
//
// Errors: those of read_wav; kInvalidArgument for no recording at all.
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"

namespace eddy::voice {

inline constexpr double kGapSeconds = 0.7;

struct Part {
  std::string name;  // the file's, without its folder
  double start_s = 0;
  double end_s = 0;
};

struct Joined {
  std::vector<float> samples;  // at kSampleRate
  std::vector<Part> parts;
  double seconds() const;
};

Result<Joined> join(const std::vector<std::string>& paths);

}  // namespace eddy::voice
