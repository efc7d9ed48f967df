#include "examples/voice_activity/sound.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace eddy::voice {
namespace {

constexpr size_t kBlockSamples = 1 << 16;
constexpr int64_t kGapChunks = static_cast<int64_t>(kGapSeconds / kChunkSeconds) + 1;

void append(std::vector<float>& to, std::span<const float> samples) {
  to.insert(to.end(), samples.begin(), samples.end());
}

}  // namespace

SoundFile::SoundFile(WavReader reader)
    : reader_(std::move(reader)), resampler_(reader_.sample_rate(), kSampleRate) {}

Result<SoundFile> SoundFile::open(const std::string& path) {
  EDDY_ASSIGN_OR_RETURN(WavReader reader, WavReader::open(path));
  return SoundFile(std::move(reader));
}

Status SoundFile::read_more() {
  EDDY_ASSIGN_OR_RETURN(const std::vector<float> samples, reader_.read(kBlockSamples));
  is_finished_ = samples.size() < kBlockSamples;
  ready_ = resampler_.push(samples);
  if (is_finished_) append(ready_, resampler_.finish());
  ready_from_ = 0;
  return Status::ok();
}

Result<std::vector<float>> SoundFile::read(int64_t max_samples) {
  const auto wanted = static_cast<size_t>(max_samples);
  std::vector<float> samples;
  while (samples.size() < wanted) {
    if (ready_from_ == ready_.size()) {
      if (is_finished_) break;
      EDDY_RETURN_IF_ERROR(read_more());
    }
    const size_t count = std::min(wanted - samples.size(), ready_.size() - ready_from_);
    append(samples, std::span(ready_).subspan(ready_from_, count));
    ready_from_ += count;
  }
  num_read_ += std::ssize(samples);
  return samples;
}

Result<std::vector<float>> SoundFile::read_between(double start_s, double end_s) {
  const int64_t start = std::llround(start_s * kSampleRate);
  const int64_t end = std::llround(end_s * kSampleRate);
  while (num_read_ < start) {
    const int64_t count = std::min<int64_t>(start - num_read_, kBlockSamples);
    EDDY_ASSIGN_OR_RETURN(const std::vector<float> passed, read(count));
    if (std::ssize(passed) < count) break;
  }
  return read(std::max<int64_t>(0, end - num_read_));
}

Status JoinedSound::begin_part() {
  Part part;
  part.path = paths_[parts_.size()];
  part.name = std::filesystem::path(part.path).filename().string();
  part.first_chunk = num_read_ / kChunkSamples;
  EDDY_ASSIGN_OR_RETURN(file_, SoundFile::open(part.path));
  parts_.push_back(std::move(part));
  return Status::ok();
}

void JoinedSound::end_part() {
  file_.reset();
  if (parts_.size() == paths_.size()) return;
  const Part& part = parts_.back();
  silence_left_ = (part.num_chunks() + kGapChunks) * kChunkSamples - part.num_samples;
}

Result<std::vector<float>> JoinedSound::read(int64_t max_samples) {
  std::vector<float> samples;
  while (std::ssize(samples) < max_samples) {
    const int64_t room = max_samples - std::ssize(samples);
    if (file_) {
      EDDY_ASSIGN_OR_RETURN(const std::vector<float> next, file_->read(room));
      append(samples, next);
      num_read_ += std::ssize(next);
      parts_.back().num_samples += std::ssize(next);
      if (std::ssize(next) < room) end_part();
    } else if (silence_left_ > 0) {
      const int64_t silence = std::min(room, silence_left_);
      samples.resize(samples.size() + static_cast<size_t>(silence));
      num_read_ += silence;
      silence_left_ -= silence;
    } else if (parts_.size() < paths_.size()) {
      EDDY_RETURN_IF_ERROR(begin_part());
    } else {
      break;
    }
  }
  return samples;
}

}  // namespace eddy::voice
