// Claim: WAV files of every format that is promised are read to the value, and no header, however
// wrong, gives more than an error.
#include "examples/voice_activity/wav.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "graph/base/random.h"

namespace eddy::voice {
namespace {

void put(std::string& bytes, uint32_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
}

struct Header {
  uint32_t kind = 1;
  uint32_t channels = 1;
  uint32_t sample_rate = 16000;
  uint32_t bits = 16;
};

std::string chunk(const std::string& tag, const std::string& content) {
  std::string bytes = tag;
  put(bytes, static_cast<uint32_t>(content.size()), 4);
  return bytes + content + std::string(content.size() % 2, '\0');
}

std::string format_chunk(const Header& header) {
  std::string content;
  const uint32_t frame_bytes = header.channels * header.bits / 8;
  put(content, header.kind, 2);
  put(content, header.channels, 2);
  put(content, header.sample_rate, 4);
  put(content, header.sample_rate * frame_bytes, 4);
  put(content, frame_bytes, 2);
  put(content, header.bits, 2);
  return chunk("fmt ", content);
}

std::string riff(const std::string& chunks) { return chunk("RIFF", "WAVE" + chunks); }

Result<Recording> decode(const std::string& bytes) {
  return decode_wav(std::as_bytes(std::span(bytes)));
}

std::vector<float> samples_of(const Header& header, const std::string& data) {
  const auto recording = decode(riff(format_chunk(header) + chunk("data", data)));
  EXPECT_TRUE(recording.is_ok()) << recording.status().to_string();
  return recording.is_ok() ? recording->samples : std::vector<float>();
}

TEST(Wav, SamplesOfEachFormatHaveTheirValues) {
  std::string pcm;
  for (int value : {0, 16384, -32768, 32767}) put(pcm, static_cast<uint16_t>(value), 2);
  EXPECT_EQ(samples_of({}, pcm), (std::vector<float>{0, 0.5f, -1, 32767 / 32768.0f}));
  EXPECT_EQ(samples_of({.channels = 2}, pcm),
            (std::vector<float>{0.25f, (-1 + 32767 / 32768.0f) / 2}));
  EXPECT_EQ(samples_of({.bits = 8}, {'\x80', '\xc0', '\0'}), (std::vector<float>{0, 0.5f, -1}));
  std::string floats;
  for (float value : {0.25f, -3.0f}) put(floats, std::bit_cast<uint32_t>(value), 4);
  EXPECT_EQ(samples_of({.kind = 3, .bits = 32}, floats), (std::vector<float>{0.25f, -3}));
}

TEST(Wav, OtherChunksArePassedOver) {
  const auto recording = decode(riff(chunk("LIST", "odd") + format_chunk({.sample_rate = 44100}) +
                                     chunk("fact", "1234") + chunk("data", {'\0', '\x40'})));
  ASSERT_TRUE(recording.is_ok()) << recording.status().to_string();
  EXPECT_EQ(recording->sample_rate, 44100);
  EXPECT_EQ(recording->samples, std::vector<float>{0.5f});
}

TEST(Wav, AnExtensibleFormatIsWhatItsSubformatSays) {
  std::string content = format_chunk({.kind = 0xfffe}).substr(8);
  put(content, 22, 2);  // size of what follows
  put(content, 16, 2);
  put(content, 0, 4);
  put(content, 1, 2);
  content += std::string(14, '\0');
  const auto recording = decode(riff(chunk("fmt ", content) + chunk("data", {'\0', '\x40'})));
  ASSERT_TRUE(recording.is_ok()) << recording.status().to_string();
  EXPECT_EQ(recording->samples, std::vector<float>{0.5f});
}

TEST(Wav, EachWrongHeaderHasItsMessage) {
  const auto message = [](const std::string& bytes) { return decode(bytes).status().message(); };
  const auto with = [](const Header& header) {
    return riff(format_chunk(header) + chunk("data", "12"));
  };
  EXPECT_NE(message("").find("no WAV file"), std::string::npos);
  EXPECT_NE(message("RIFF1234JUNK").find("no WAV file"), std::string::npos);
  EXPECT_NE(message(riff("")).find("no data chunk"), std::string::npos);
  EXPECT_NE(message(riff(chunk("data", "12"))).find("before any format"), std::string::npos);
  EXPECT_NE(message(riff(chunk("fmt ", "12"))).find("shorter than 16"), std::string::npos);
  EXPECT_NE(message(with({.kind = 85})).find("format 85"), std::string::npos);
  EXPECT_NE(message(with({.bits = 24})).find("24 bits"), std::string::npos);
  EXPECT_NE(message(with({.channels = 0})).find("0 channels"), std::string::npos);
  EXPECT_NE(message(with({.channels = 6})).find("6 channels"), std::string::npos);
  EXPECT_NE(message(with({.sample_rate = 0})).find("rate of 0 Hz"), std::string::npos);
  std::string frames = with({});
  frames[12 + 8 + 12] = 7;
  EXPECT_NE(message(frames).find("take 7 bytes"), std::string::npos);
  std::string size = with({});
  size[12 + 24 + 7] = '\xff';
  EXPECT_NE(message(size).find("but the file ends"), std::string::npos);
  std::string nan;
  put(nan, std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN()), 4);
  EXPECT_NE(message(riff(format_chunk({.kind = 3, .bits = 32}) + chunk("data", nan)))
                .find("sample 0 is not finite"),
            std::string::npos);
}

TEST(Wav, EveryTruncationIsAnError) {
  const std::string whole = riff(format_chunk({}) + chunk("data", "12345678"));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode(whole.substr(0, size)).is_ok()) << size;
  }
}

TEST(Wav, ChangedBytesGiveSamplesOrAnError) {
  const std::string whole =
      riff(format_chunk({.channels = 2}) + chunk("junk", "123") + chunk("data", "12345678"));
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    std::string bytes = whole;
    for (uint64_t i = 0; i <= random.below(4); ++i) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    const auto recording = decode(bytes);
    if (!recording.is_ok()) {
      EXPECT_FALSE(recording.status().message().empty()) << "seed " << seed;
      continue;
    }
    EXPECT_LE(recording->samples.size(), bytes.size()) << "seed " << seed;
    for (float sample : recording->samples) EXPECT_TRUE(std::isfinite(sample)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace eddy::voice
