// SoundFile: a WAV file at the detector's rate, block by block.
// JoinedSound: recordings one after another, with silence between, block by block.
//
// Each recording begins with a chunk of the detector, so that its chunks are its own; there is no
// silence before the first and after the last, so that one recording is what its file holds.
//
// Errors: those of WavReader; JoinedSound opens a file when it comes to it.
// Memory: that of a block, whatever the length.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "examples/voice_activity/resample.h"
#include "examples/voice_activity/wav.h"

namespace eddy::voice {

inline constexpr int kSampleRate = 16000;
inline constexpr int64_t kChunkSamples = 512;
inline constexpr double kChunkSeconds = static_cast<double>(kChunkSamples) / kSampleRate;

inline constexpr double kGapSeconds = 0.7;  // at least

class SoundFile {
 public:
  static Result<SoundFile> open(const std::string& path);
  // The next samples, at most `max_samples` of them; fewer only at the end.
  Result<std::vector<float>> read(int64_t max_samples);
  // The samples from the moment `start_s` on. Moments before the last sample read are gone.
  Result<std::vector<float>> read_between(double start_s, double end_s);
  int64_t num_read() const { return num_read_; }

 private:
  explicit SoundFile(WavReader reader);
  Status read_more();

  WavReader reader_;
  Resampler resampler_;
  std::vector<float> ready_;
  size_t ready_from_ = 0;
  bool is_finished_ = false;
  int64_t num_read_ = 0;
};

struct Part {
  std::string path;
  std::string name;         // the file's, without its folder
  int64_t first_chunk = 0;  // of the joined sound
  int64_t num_samples = 0;  // those read so far
  double seconds() const { return static_cast<double>(num_samples) / kSampleRate; }
  int64_t num_chunks() const { return (num_samples + kChunkSamples - 1) / kChunkSamples; }
};

class JoinedSound {
 public:
  explicit JoinedSound(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  // As SoundFile::read.
  Result<std::vector<float>> read(int64_t max_samples);
  const std::vector<Part>& parts() const { return parts_; }  // those begun

 private:
  Status begin_part();
  void end_part();

  std::vector<std::string> paths_;
  std::vector<Part> parts_;
  std::optional<SoundFile> file_;  // of the last part
  int64_t silence_left_ = 0;
  int64_t num_read_ = 0;
};

}  // namespace eddy::voice
