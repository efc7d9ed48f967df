#include "examples/voice_activity/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

namespace eddy::voice {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kPcm = 1;
constexpr uint32_t kFloat = 3;
constexpr uint32_t kExtensible = 0xfffe;
constexpr size_t kFormatBytes = 16;
constexpr size_t kExtensibleBytes = 40;
constexpr uint32_t kStreamedSize = 0x7ffff000;  // and up: what programs write that cannot seek
constexpr uint32_t kLowestRate = 1000;          // below it there is nothing of a voice
constexpr uint32_t kHighestRate = 1'000'000;
constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr size_t kAllSamples = std::numeric_limits<size_t>::max();

// What follows the format's number in the 16 bytes that name a subformat.
constexpr unsigned char kSubformatTail[] = {0, 0, 0,    0, 0x10, 0,    0x80,
                                            0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};

// Little-endian; the caller has checked that the bytes are there.
uint64_t number(Bytes bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[at + i]);
  return value;
}

uint32_t number32(Bytes bytes, size_t at, size_t size) {
  return static_cast<uint32_t>(number(bytes, at, size));
}

std::string_view tag_of(Bytes bytes, size_t at = 0) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, 4};
}

std::string format_name(uint32_t kind) {
  const char* name = kind == 2      ? " (ADPCM)"
                     : kind == 6    ? " (A-law)"
                     : kind == 7    ? " (mu-law)"
                     : kind == 0x11 ? " (IMA ADPCM)"
                     : kind == 0x55 ? " (MP3)"
                                    : "";
  return "format " + std::to_string(kind) + name;
}

// The format's number, which an extensible format keeps elsewhere.
Result<uint32_t> decode_kind(Bytes chunk) {
  const uint32_t kind = number32(chunk, 0, 2);
  if (kind != kExtensible) return kind;
  if (chunk.size() < kExtensibleBytes) {
    return invalid_argument("its extensible format chunk has " + std::to_string(chunk.size()) +
                            " bytes, and needs " + std::to_string(kExtensibleBytes));
  }
  if (std::memcmp(chunk.data() + 26, kSubformatTail, sizeof kSubformatTail) != 0) {
    return unsupported("its extensible format names a subformat of its own; convert it to PCM");
  }
  const uint32_t bits = number32(chunk, 14, 2), valid_bits = number32(chunk, 18, 2);
  if (valid_bits > bits) {
    return invalid_argument("it says that " + std::to_string(valid_bits) + " bits of its " +
                            std::to_string(bits) + "-bit samples are valid");
  }
  return number32(chunk, 24, 2);
}

Status check_samples(const WavFormat& format) {
  const uint32_t bits = format.bits;
  if (format.kind == kPcm) {
    if (bits == 8 || bits == 16 || bits == 24 || bits == 32) return Status::ok();
    return unsupported("PCM samples of " + std::to_string(bits) +
                       " bits; convert it to 8, 16, 24 or 32");
  }
  if (format.kind == kFloat) {
    if (bits == 32 || bits == 64) return Status::ok();
    return unsupported("float samples of " + std::to_string(bits) +
                       " bits; convert it to 32 or 64");
  }
  return unsupported("samples of " + format_name(format.kind) +
                     "; convert it to PCM (format 1) or float (format 3)");
}

Result<WavFormat> decode_format(Bytes chunk) {
  if (chunk.size() < kFormatBytes) {
    return invalid_argument("its format chunk has " + std::to_string(chunk.size()) +
                            " bytes, and needs " + std::to_string(kFormatBytes));
  }
  WavFormat format{0, number32(chunk, 2, 2), number32(chunk, 4, 4), number32(chunk, 14, 2)};
  EDDY_ASSIGN_OR_RETURN(format.kind, decode_kind(chunk));
  EDDY_RETURN_IF_ERROR(check_samples(format));
  if (format.channels == 0) return invalid_argument("it has 0 channels, and needs one or more");
  if (format.sample_rate < kLowestRate || format.sample_rate > kHighestRate) {
    return unsupported("a sample rate of " + std::to_string(format.sample_rate) + " Hz; give " +
                       std::to_string(kLowestRate) + " to " + std::to_string(kHighestRate));
  }
  if (const uint32_t frame_bytes = number32(chunk, 12, 2); frame_bytes != format.frame_bytes()) {
    return invalid_argument("its frames are said to take " + std::to_string(frame_bytes) +
                            " bytes, which does not fit " + std::to_string(format.channels) +
                            " channel(s) of " + std::to_string(format.bits) + " bits");
  }
  return format;
}

double decode_sample(Bytes bytes, size_t at, const WavFormat& format) {
  const uint64_t raw = number(bytes, at, format.sample_bytes());
  if (format.kind == kFloat) {
    if (format.bits == 64) return std::bit_cast<double>(raw);
    return std::bit_cast<float>(static_cast<uint32_t>(raw));
  }
  if (format.bits == 8) return (static_cast<double>(raw) - 128) / 128;
  // The sign bit of the sample becomes that of the number.
  const auto value = static_cast<int32_t>(static_cast<uint32_t>(raw << (32 - format.bits)));
  return value / 2147483648.0;
}

Result<Recording> read_all(Result<WavReader> reader) {
  if (!reader.is_ok()) return reader.take_status();
  EDDY_ASSIGN_OR_RETURN(std::vector<float> samples, reader->read(kAllSamples));
  return Recording{reader->sample_rate(), std::move(samples)};
}

}  // namespace

WavReader::WavReader(std::unique_ptr<std::istream> bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)) {}

Result<WavReader> WavReader::open(const std::string& path) {
  WavReader reader(std::make_unique<std::ifstream>(path, std::ios::binary), path);
  EDDY_RETURN_IF_ERROR(reader.named(reader.read_headers()));
  return reader;
}

Result<WavReader> WavReader::over(std::unique_ptr<std::istream> bytes) {
  WavReader reader(std::move(bytes), "");
  EDDY_RETURN_IF_ERROR(reader.read_headers());
  return reader;
}

Status WavReader::read_headers() {
  std::byte head[12];
  const size_t size = take(head, sizeof head);
  if (bytes_->bad() || !(bytes_->good() || bytes_->eof())) return not_found("it cannot be read");
  if (size == 0) return invalid_argument("it is empty");
  const std::string_view tag = tag_of(head);
  if (size == sizeof head && (tag == "RIFX" || tag == "RF64" || tag == "BW64")) {
    return unsupported("a file of kind " + std::string(tag) + "; convert it to RIFF");
  }
  if (size < sizeof head || tag != "RIFF" || tag_of(head, 8) != "WAVE") {
    return invalid_argument("it is no WAV file: it does not start with RIFF and WAVE");
  }
  std::byte chunk[8];
  while (take(chunk, sizeof chunk) == sizeof chunk) {
    const uint32_t chunk_bytes = number32(chunk, 4, 4);
    if (tag_of(chunk) == "data") return begin_data(chunk_bytes);
    if (tag_of(chunk) == "fmt ") {
      EDDY_RETURN_IF_ERROR(read_format(chunk_bytes));
    } else {
      EDDY_RETURN_IF_ERROR(skip(chunk_bytes));
    }
    bytes_->ignore(chunk_bytes % 2);  // chunks start at even places
    at_ += static_cast<uint64_t>(bytes_->gcount());
  }
  return invalid_argument("it has no data chunk");
}

Status WavReader::read_format(uint64_t size_bytes) {
  std::byte chunk[kExtensibleBytes];
  const uint64_t at = at_;
  const size_t wanted = std::min<uint64_t>(size_bytes, sizeof chunk);
  const size_t size = take(chunk, wanted);
  if (size < wanted) return ends_early(at, size_bytes, size);
  EDDY_ASSIGN_OR_RETURN(format_, decode_format(Bytes(chunk, size)));
  return skip(size_bytes - size);
}

// Where the file's length can be known, a data chunk beyond it is noticed before any sample.
Status WavReader::begin_data(uint64_t size_bytes) {
  if (format_.channels == 0)
    return invalid_argument("its data chunk comes before any format chunk");
  data_at_ = at_;
  data_bytes_ = size_bytes;
  has_data_size_ = size_bytes != 0 && size_bytes < kStreamedSize;
  const auto here = bytes_->tellg();
  bytes_->seekg(0, std::ios::end);
  const auto end = bytes_->tellg();
  bytes_->clear();
  if (here < 0 || end < here) return Status::ok();
  bytes_->seekg(here);
  const auto left_bytes = static_cast<uint64_t>(end - here);
  has_data_size_ |= size_bytes >= kStreamedSize && size_bytes <= left_bytes;
  return has_data_size_ && size_bytes > left_bytes ? ends_early(at_, size_bytes, left_bytes)
                                                   : Status::ok();
}

Status WavReader::skip(uint64_t size_bytes) {
  if (size_bytes == 0) return Status::ok();
  const uint64_t at = at_;
  bytes_->ignore(static_cast<std::streamsize>(size_bytes));
  const auto size = static_cast<uint64_t>(bytes_->gcount());
  at_ += size;
  return size < size_bytes ? ends_early(at, size_bytes, size) : Status::ok();
}

size_t WavReader::take(std::byte* to, size_t size) {
  bytes_->read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(size));
  const auto taken = static_cast<size_t>(bytes_->gcount());
  at_ += taken;
  return taken;
}

Result<std::vector<float>> WavReader::read(size_t max_samples) {
  const size_t frame_bytes = format_.frame_bytes();
  const size_t block_frames = std::max<size_t>(1, kBlockBytes / frame_bytes);
  std::vector<std::byte> block;
  std::vector<float> samples;
  while (samples.size() < max_samples) {
    uint64_t frames = std::min(block_frames, max_samples - samples.size());
    const uint64_t data_left = data_bytes_ - (at_ - data_at_);
    if (has_data_size_) frames = std::min<uint64_t>(frames, data_left / frame_bytes);
    if (frames == 0) break;
    block.resize(frames * frame_bytes);
    const size_t size = take(block.data(), block.size());
    if (bytes_->bad()) return named(not_found("it can be read no further"));
    EDDY_RETURN_IF_ERROR(named(decode(Bytes(block.data(), size), samples)));
    if (size == block.size()) continue;
    if (has_data_size_) return named(ends_early(data_at_, data_bytes_, at_ - data_at_));
    break;
  }
  return samples;
}

Status WavReader::decode(Bytes frames, std::vector<float>& samples) {
  const size_t frame_bytes = format_.frame_bytes();
  for (size_t at = 0; at + frame_bytes <= frames.size(); at += frame_bytes) {
    double sum = 0;
    for (uint32_t c = 0; c < format_.channels; ++c) {
      sum += decode_sample(frames, at + c * format_.sample_bytes(), format_);
    }
    const double mean = sum / format_.channels;
    if (!(std::abs(mean) <= std::numeric_limits<float>::max())) {  // what is no number, too
      return invalid_argument("sample " + std::to_string(num_read_) + " is no finite float");
    }
    samples.push_back(static_cast<float>(mean));
    ++num_read_;
  }
  return Status::ok();
}

Status WavReader::ends_early(uint64_t at, uint64_t size_bytes, uint64_t left_bytes) const {
  return invalid_argument("its chunk at byte " + std::to_string(at - 8) + " says it has " +
                          std::to_string(size_bytes) + " bytes, but the file ends after " +
                          std::to_string(left_bytes));
}

Status WavReader::named(Status status) const {
  return name_.empty() ? std::move(status) : std::move(status.prepend_message(name_));
}

Result<Recording> decode_wav(Bytes bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return read_all(WavReader::over(std::make_unique<std::istringstream>(text)));
}

Result<Recording> read_wav(const std::string& path) { return read_all(WavReader::open(path)); }

Status check_wavs(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    EDDY_RETURN_IF_ERROR(WavReader::open(path).take_status());
    if (std::filesystem::is_regular_file(path)) continue;
    return invalid_argument(path + ": is no regular file, and is read more than once");
  }
  return Status::ok();
}

}  // namespace eddy::voice
