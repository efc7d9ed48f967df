// WavReader: a WAV file as mono samples between -1 and 1, block by block.
//
// Reads PCM of 8, 16, 24 and 32 bits and floats of 32 and 64, any number of channels (averaged),
// 1 kHz to 1 MHz, plain or WAVE_FORMAT_EXTENSIBLE. Chunks other than `fmt ` and `data` are passed
// over. A data chunk of no bytes, or of 2 GiB (0x7ffff000 and up) that the file does not have, is
// one of a program that could not seek back and ends with the file; an incomplete last frame is
// dropped.
//
// Errors: kNotFound when the file cannot be read; kInvalidArgument for what is no WAV file, for
// sizes that the file does not hold and for samples that are not finite; kUnsupported for other
// formats. Messages name the file. Memory: a block, whatever the file's length.
//
// Source: Microsoft, "Multiple Channel Audio Data and WAVE Files" (2007).
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"

namespace eddy::voice {

struct WavFormat {
  uint32_t kind = 0;  // 1 PCM, 3 float
  uint32_t channels = 0;
  uint32_t sample_rate = 0;
  uint32_t bits = 0;  // of a sample in the file

  size_t sample_bytes() const { return bits / 8; }
  size_t frame_bytes() const { return channels * sample_bytes(); }
};

class WavReader {
 public:
  // Reads what stands before the first sample.
  static Result<WavReader> open(const std::string& path);
  static Result<WavReader> over(std::unique_ptr<std::istream> bytes);  // without a name

  int sample_rate() const { return static_cast<int>(format_.sample_rate); }
  // The next samples, at most `max_samples` of them; fewer only at the end.
  Result<std::vector<float>> read(size_t max_samples);

 private:
  WavReader(std::unique_ptr<std::istream> bytes, std::string name);
  Status read_headers();
  Status read_format(uint64_t size_bytes);
  Status begin_data(uint64_t size_bytes);
  Status skip(uint64_t size_bytes);
  size_t take(std::byte* to, size_t size);
  Status decode(std::span<const std::byte> frames, std::vector<float>& samples);
  Status ends_early(uint64_t at, uint64_t size_bytes, uint64_t left_bytes) const;
  Status named(Status status) const;

  std::unique_ptr<std::istream> bytes_;
  std::string name_;
  uint64_t at_ = 0;  // bytes read
  WavFormat format_;
  uint64_t data_at_ = 0;
  uint64_t data_bytes_ = 0;
  bool has_data_size_ = true;
  uint64_t num_read_ = 0;  // samples
};

struct Recording {
  int sample_rate = 0;
  std::vector<float> samples;
};

// Whole files.
Result<Recording> read_wav(const std::string& path);
Result<Recording> decode_wav(std::span<const std::byte> bytes);

// Whether all of these can be opened, also more than once, so that a bad one is named before the
// work begins.
Status check_wavs(const std::vector<std::string>& paths);

}  // namespace eddy::voice
