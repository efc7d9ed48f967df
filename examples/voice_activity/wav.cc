#include "examples/voice_activity/wav.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

namespace eddy::voice {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kMaxFileBytes = size_t{1} << 30;
constexpr uint32_t kPcm = 1;
constexpr uint32_t kFloat = 3;
constexpr uint32_t kExtensible = 0xfffe;

// Little-endian; the caller has checked that the bytes are there.
uint32_t number(Bytes bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

bool has_tag(Bytes bytes, size_t at, std::string_view tag) {
  return bytes.size() >= at + 4 && std::memcmp(bytes.data() + at, tag.data(), 4) == 0;
}

struct Format {
  uint32_t kind = 0;
  uint32_t channels = 0;
  uint32_t sample_rate = 0;
  uint32_t bits = 0;
};

Result<Format> decode_format(Bytes chunk) {
  if (chunk.size() < 16) return invalid_argument("its format chunk is shorter than 16 bytes");
  Format format{number(chunk, 0, 2), number(chunk, 2, 2), number(chunk, 4, 4),
                number(chunk, 14, 2)};
  if (format.kind == kExtensible && chunk.size() >= 26) format.kind = number(chunk, 24, 2);
  const bool is_known = (format.kind == kPcm && (format.bits == 8 || format.bits == 16)) ||
                        (format.kind == kFloat && format.bits == 32);
  if (!is_known) {
    return unsupported("samples of format " + std::to_string(format.kind) + " with " +
                       std::to_string(format.bits) + " bits; convert it to 16-bit PCM (format 1)");
  }
  if (format.channels < 1 || format.channels > 2) {
    return unsupported(std::to_string(format.channels) + " channels; give one or two");
  }
  if (format.sample_rate < 1000 || format.sample_rate > 192000) {
    return unsupported("a sample rate of " + std::to_string(format.sample_rate) +
                       " Hz; give 1000 to 192000");
  }
  if (number(chunk, 12, 2) != format.channels * format.bits / 8) {
    return invalid_argument("its frames are said to take " + std::to_string(number(chunk, 12, 2)) +
                            " bytes, which does not fit " + std::to_string(format.channels) +
                            " channel(s) of " + std::to_string(format.bits) + " bits");
  }
  return format;
}

float decode_sample(Bytes data, size_t at, const Format& format) {
  const uint32_t bits = number(data, at, format.bits / 8);
  if (format.bits == 8) return (static_cast<float>(bits) - 128) / 128;
  if (format.bits == 16) return static_cast<float>(static_cast<int16_t>(bits)) / 32768;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

Result<Recording> decode_data(Bytes data, const Format& format) {
  const size_t sample_bytes = format.bits / 8;
  const size_t frame_bytes = format.channels * sample_bytes;
  Recording recording{static_cast<int>(format.sample_rate), {}};
  recording.samples.reserve(data.size() / frame_bytes);
  for (size_t at = 0; at + frame_bytes <= data.size(); at += frame_bytes) {
    float sum = 0;
    for (uint32_t c = 0; c < format.channels; ++c) {
      sum += decode_sample(data, at + c * sample_bytes, format);
    }
    if (!std::isfinite(sum)) {
      return invalid_argument("sample " + std::to_string(at / frame_bytes) + " is not finite");
    }
    recording.samples.push_back(sum / static_cast<float>(format.channels));
  }
  return recording;
}

}  // namespace

Result<Recording> decode_wav(Bytes bytes) {
  if (!has_tag(bytes, 0, "RIFF") || !has_tag(bytes, 8, "WAVE")) {
    return invalid_argument("it is no WAV file: it does not start with RIFF and WAVE");
  }
  std::optional<Format> format;
  size_t at = 12;
  while (bytes.size() - at >= 8) {
    const size_t size = number(bytes, at + 4, 4);
    if (size > bytes.size() - at - 8) {
      return invalid_argument("its chunk at byte " + std::to_string(at) + " says it has " +
                              std::to_string(size) + " bytes, but the file ends after " +
                              std::to_string(bytes.size() - at - 8));
    }
    const Bytes chunk = bytes.subspan(at + 8, size);
    if (has_tag(bytes, at, "fmt ")) {
      EDDY_ASSIGN_OR_RETURN(format, decode_format(chunk));
    } else if (has_tag(bytes, at, "data")) {
      if (!format) return invalid_argument("its data chunk comes before any format chunk");
      return decode_data(chunk, *format);
    }
    at = std::min(bytes.size(), at + 8 + size + size % 2);  // chunks start at even places
  }
  return invalid_argument("it has no data chunk");
}

Result<Recording> read_wav(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes;
  char block[1 << 16];
  while (file.read(block, sizeof block), file.gcount() > 0) {
    const auto* start = reinterpret_cast<const std::byte*>(block);
    bytes.insert(bytes.end(), start, start + file.gcount());
    if (bytes.size() > kMaxFileBytes) return resource_exhausted(path + ": it is over 1 GiB");
  }
  if (!file.eof()) return not_found(path + ": it cannot be read");
  Result<Recording> recording = decode_wav(bytes);
  if (!recording.is_ok()) return std::move(recording.take_status().prepend_message(path));
  return recording;
}

}  // namespace eddy::voice
