// read_wav: a WAV file becomes mono samples between -1 and 1.
//
// Reads PCM of 8 and 16 bits and 32-bit floats, mono or stereo (averaged), 1 to 192 kHz, plain or
// WAVE_FORMAT_EXTENSIBLE. Chunks other than `fmt ` and `data` are passed over.
// Errors: kNotFound when the file cannot be read; kInvalidArgument for what is no WAV file, for
// sizes that the file does not hold and for samples that are not finite; kUnsupported for other
// formats; kResourceExhausted beyond 1 GiB. Messages name the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"

namespace eddy::voice {

struct Recording {
  int sample_rate = 0;
  std::vector<float> samples;
};

Result<Recording> read_wav(const std::string& path);
Result<Recording> decode_wav(std::span<const std::byte> bytes);

}  // namespace eddy::voice
