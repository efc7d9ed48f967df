// wav_file: the bytes of WAV files, right and wrong ones, chunk by chunk.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace eddy::test {

// Little-endian.
inline void put(std::string& bytes, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
}

struct WavHeader {
  uint32_t kind = 1;  // 1 PCM, 3 float
  uint32_t channels = 1;
  uint32_t sample_rate = 16000;
  uint32_t bits = 16;
};

inline std::string chunk(const std::string& tag, const std::string& content) {
  std::string bytes = tag;
  put(bytes, content.size(), 4);
  return bytes + content + std::string(content.size() % 2, '\0');
}

inline std::string format_content(const WavHeader& header) {
  std::string content;
  const uint32_t frame_bytes = header.channels * header.bits / 8;
  put(content, header.kind, 2);
  put(content, header.channels, 2);
  put(content, header.sample_rate, 4);
  put(content, uint64_t{header.sample_rate} * frame_bytes, 4);
  put(content, frame_bytes, 2);
  put(content, header.bits, 2);
  return content;
}

inline std::string format_chunk(const WavHeader& header) {
  return chunk("fmt ", format_content(header));
}

// As format_content, in an extensible format's 40 bytes.
inline std::string extensible_content(WavHeader header, uint32_t valid_bits) {
  const uint32_t kind = header.kind;
  header.kind = 0xfffe;
  std::string content = format_content(header);
  put(content, 22, 2);  // size of what follows
  put(content, valid_bits, 2);
  put(content, 0, 4);  // which channel is which
  put(content, kind, 2);
  return content + std::string("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
}

inline std::string riff(const std::string& chunks) { return chunk("RIFF", "WAVE" + chunks); }

inline std::string pcm16(std::span<const float> samples) {
  std::string data;
  for (const float sample : samples) {
    put(data, static_cast<uint16_t>(static_cast<int16_t>(sample * 32767)), 2);
  }
  return data;
}

inline std::string write_wav(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace eddy::test
