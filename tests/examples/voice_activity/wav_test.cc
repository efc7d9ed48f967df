// Claim: WAV files of every format that is promised are read to the value, and no header, however
// wrong, gives more than an error.
#include "examples/voice_activity/wav.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "graph/base/random.h"
#include "tests/examples/voice_activity/wav_file.h"

namespace eddy::voice {
namespace {

using test::chunk;
using test::extensible_content;
using test::format_chunk;
using test::format_content;
using test::put;
using test::riff;
using Header = test::WavHeader;

Result<Recording> decode(const std::string& bytes) {
  return decode_wav(std::as_bytes(std::span(bytes)));
}

std::vector<float> samples_of(const Header& header, const std::string& data) {
  const auto recording = decode(riff(format_chunk(header) + chunk("data", data)));
  EXPECT_TRUE(recording.is_ok()) << recording.status().to_string();
  return recording.is_ok() ? recording->samples : std::vector<float>();
}

// The bytes of `value`, between -1 and 1, in the format.
std::string encode(const Header& header, double value) {
  std::string bytes;
  if (header.kind == 3 && header.bits == 64) {
    put(bytes, std::bit_cast<uint64_t>(value), 8);
  } else if (header.kind == 3) {
    put(bytes, std::bit_cast<uint32_t>(static_cast<float>(value)), 4);
  } else {
    const auto scaled = static_cast<int64_t>(value * std::pow(2.0, header.bits - 1));
    put(bytes, static_cast<uint64_t>(header.bits == 8 ? scaled + 128 : scaled), header.bits / 8);
  }
  return bytes;
}

const Header kFormats[] = {{.bits = 8},
                           {.bits = 16},
                           {.bits = 24},
                           {.bits = 32},
                           {.kind = 3, .bits = 32},
                           {.kind = 3, .bits = 64}};

// Values that 8 bits hold, so every format gives the very same ones.
TEST(Wav, SamplesOfEachFormatAndNumberOfChannelsHaveTheirValues) {
  for (Header header : kFormats) {
    for (const uint32_t channels : {1, 2, 3, 6, 64, 255}) {
      header.channels = channels;
      std::string data;
      std::vector<float> expected;
      for (const double value : {0.0, 0.5, -1.0, -0.0078125, 0.9921875}) {
        // The first channel holds what the others leave to the mean.
        for (uint32_t c = 0; c < channels; ++c) data += encode(header, c == 0 ? value : 0);
        expected.push_back(static_cast<float>(value / channels));
      }
      const std::string text = "format " + std::to_string(header.kind) + ", " +
                               std::to_string(header.bits) + " bits, " + std::to_string(channels) +
                               " channels";
      EXPECT_EQ(samples_of(header, data), expected) << text;
      const auto extensible = decode(
          riff(chunk("fmt ", extensible_content(header, header.bits)) + chunk("data", data)));
      ASSERT_TRUE(extensible.is_ok()) << text << ": " << extensible.status().to_string();
      EXPECT_EQ(extensible->samples, expected) << text << ", extensible";
    }
  }
}

TEST(Wav, TheLastBitOfEachWidthCounts) {
  EXPECT_EQ(samples_of({.bits = 24}, {'\1', '\0', '\0'}), std::vector<float>{1 / 8388608.0f});
  EXPECT_EQ(samples_of({.bits = 24}, {'\xff', '\xff', '\xff'}),
            std::vector<float>{-1 / 8388608.0f});
  EXPECT_EQ(samples_of({.bits = 32}, {'\1', '\0', '\0', '\0'}),
            std::vector<float>{1 / 2147483648.0f});
  EXPECT_EQ(samples_of({.bits = 16}, {'\xff', '\x7f'}), std::vector<float>{32767 / 32768.0f});
}

TEST(Wav, EveryRateFromAThousandToAMillionIsRead) {
  for (const uint32_t rate : {1000u, 8000u, 11025u, 44100u, 48000u, 96001u, 192000u, 1000000u}) {
    const auto recording = decode(riff(format_chunk({.sample_rate = rate}) + chunk("data", "12")));
    ASSERT_TRUE(recording.is_ok()) << recording.status().to_string();
    EXPECT_EQ(recording->sample_rate, static_cast<int>(rate));
  }
}

// Larger than a block, with more channels than one would think of.
TEST(Wav, ReadingInBlocksGivesTheSameSamples) {
  for (const uint32_t channels : {1u, 3u, 4095u}) {
    const Header header{.channels = channels};
    std::string data;
    for (uint32_t i = 0; i < 1200000 / channels * channels; ++i) put(data, i * 7919 & 0xffff, 2);
    const std::string bytes = riff(format_chunk(header) + chunk("data", data));
    const auto whole = decode(bytes);
    ASSERT_TRUE(whole.is_ok()) << whole.status().to_string();
    EXPECT_EQ(whole->samples.size(), 1200000 / channels);
    auto reader = WavReader::over(std::make_unique<std::istringstream>(bytes));
    ASSERT_TRUE(reader.is_ok());
    std::vector<float> samples;
    for (size_t size = 1;; size = size * 3 + 1) {
      const auto next = reader->read(size);
      ASSERT_TRUE(next.is_ok());
      samples.insert(samples.end(), next->begin(), next->end());
      if (next->size() < size) break;
    }
    EXPECT_EQ(samples, whole->samples);
  }
}

TEST(Wav, DataOfUnknownSizeEndWithTheFile) {
  const std::string whole =
      riff(format_chunk({}) + chunk("data", {'\0', '\x40', '\0', '\xc0', '\1'}));
  for (const uint32_t size : {0u, 0x7ffff000u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    std::string bytes = whole.substr(0, whole.size() - 1);  // the fill byte
    for (size_t i = 0; i < 4; ++i) bytes[12 + 24 + 4 + i] = static_cast<char>(size >> 8 * i);
    const auto recording = decode(bytes);
    ASSERT_TRUE(recording.is_ok()) << size << ": " << recording.status().to_string();
    EXPECT_EQ(recording->samples, (std::vector<float>{0.5f, -0.5f})) << size;
  }
}

TEST(Wav, OtherChunksArePassedOver) {
  const auto recording = decode(riff(chunk("LIST", "odd") + format_chunk({.sample_rate = 44100}) +
                                     chunk("fact", "1234") + chunk("data", {'\0', '\x40'})));
  ASSERT_TRUE(recording.is_ok()) << recording.status().to_string();
  EXPECT_EQ(recording->sample_rate, 44100);
  EXPECT_EQ(recording->samples, std::vector<float>{0.5f});
}

TEST(Wav, EachWrongHeaderHasItsMessage) {
  const auto expect = [](const std::string& bytes, const std::string& part) {
    const std::string message = decode(bytes).status().message();
    EXPECT_NE(message.find(part), std::string::npos) << "'" << message << "' lacks: " << part;
  };
  const auto with = [](const std::string& format) {
    return riff(chunk("fmt ", format) + chunk("data", "12"));
  };
  const auto of = [&](const Header& header) { return with(format_content(header)); };
  expect("", "it is empty");
  expect("RIFF", "no WAV file");
  expect("RIFF1234JUNK", "no WAV file");
  expect("RIFX1234WAVE", "kind RIFX");
  expect("RF641234WAVE", "kind RF64");
  expect(riff(""), "no data chunk");
  expect(riff(format_chunk({})), "no data chunk");
  expect(riff(chunk("data", "12")), "before any format");
  expect(with("12"), "format chunk has 2 bytes, and needs 16");
  expect(of({.kind = 85}), "format 85 (MP3); convert");
  expect(of({.kind = 7, .bits = 8}), "format 7 (mu-law)");
  expect(of({.kind = 1234}), "format 1234;");
  expect(of({.bits = 12}), "PCM samples of 12 bits");
  expect(of({.bits = 64}), "PCM samples of 64 bits");
  expect(of({.bits = 0}), "PCM samples of 0 bits");
  expect(of({.kind = 3, .bits = 16}), "float samples of 16 bits");
  expect(of({.channels = 0}), "0 channels");
  expect(of({.sample_rate = 0}), "rate of 0 Hz");
  expect(of({.sample_rate = 999}), "rate of 999 Hz");
  expect(of({.sample_rate = 4294967295}), "rate of 4294967295 Hz");
  expect(with(extensible_content({}, 16).substr(0, 26)), "has 26 bytes, and needs 40");
  expect(with(extensible_content({}, 17)), "17 bits of its 16-bit samples are valid");
  expect(with(extensible_content({.kind = 85}, 16)), "format 85 (MP3)");
  std::string subformat = extensible_content({}, 16);
  subformat.back() = '\0';
  expect(with(subformat), "subformat of its own");
  std::string frames = of({});
  frames[12 + 8 + 12] = 7;
  expect(frames, "take 7 bytes, which does not fit 1 channel(s) of 16 bits");
  std::string format_size = of({});
  format_size[12 + 5] = '\x7f';
  expect(format_size, "chunk at byte 12 says it has 32528 bytes, but the file ends after 26");
  std::string data_size = of({});
  data_size[12 + 24 + 7] = '\x7f';
  expect(data_size, "chunk at byte 36 says it has 2130706434 bytes, but the file ends after 2");
  const Header float32{.kind = 3, .bits = 32}, float64{.kind = 3, .bits = 64};
  for (const double value : {std::nan(""), HUGE_VAL}) {
    expect(riff(format_chunk(float32) + chunk("data", encode(float32, value))), "sample 0 is no");
  }
  expect(riff(format_chunk(float64) + chunk("data", encode(float64, 0) + encode(float64, 1e300))),
         "sample 1 is no finite float");
}

TEST(Wav, FilesThatCannotBeReadAreNamed) {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string here = folder != nullptr ? folder : "/tmp";
  const auto missing = read_wav("no/such.wav").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), "no/such.wav: it cannot be read");
  EXPECT_EQ(read_wav(here).status().message(), here + ": it cannot be read");
  const std::string empty = test::write_wav(here + "/empty.wav", "");
  EXPECT_EQ(read_wav(empty).status().message(), empty + ": it is empty");
  const auto good = test::write_wav(here + "/good.wav", riff(format_chunk({}) + chunk("data", "")));
  EXPECT_TRUE(check_wavs({good}).is_ok());
  EXPECT_EQ(check_wavs({good, empty}).message(), empty + ": it is empty");
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
