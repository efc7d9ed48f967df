// Claim: the graph that is wired from the two Moonshine files gives the spoken words of the
// recordings of alsa-utils, stops by itself or at the limit, and gives the same tokens for every
// driver of the loop, run after run.
#include "examples/speech_to_text/transcriber.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "examples/speech_to_text/pieces.h"
#include "examples/voice_activity/find_speech.h"
#include "tests/examples/cached_model.h"
#include "tests/examples/voice_activity/wav_file.h"

namespace eddy::speech {
namespace {

const MoonshineFiles kFiles = {test::cached_model("moonshine_tiny_encoder-0.1.29.onnx"),
                               test::cached_model("moonshine_tiny_decoder-0.1.29.onnx")};
const std::string kDetector = test::cached_model("silero_vad-1.9.0.onnx");
const std::string kVocabulary = test::cached_model("llama_tokens-1.2.2.txt");

std::string wav_path(const std::string& name) { return "/usr/share/sounds/alsa/" + name + ".wav"; }

class TranscriberTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& file : {kFiles.encoder, kFiles.decoder, kVocabulary, kDetector}) {
      if (!std::filesystem::exists(file))
        GTEST_SKIP() << "no " << file << "; tools/demo fetches it";
    }
    for (const char* name : {"Front_Center", "Side_Right"}) {
      if (!std::filesystem::exists(wav_path(name))) {
        GTEST_SKIP() << "no " << wav_path(name) << "; install alsa-utils";
      }
    }
  }

  std::unique_ptr<Transcriber> transcriber(Loops loops = Loops::kAuto) {
    auto made = Transcriber::create(kFiles, kVocabulary, {.num_threads = 1, .loops = loops});
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return made.is_ok() ? std::move(*made) : nullptr;
  }

  static std::vector<float> samples(const std::string& name) {
    auto file = voice::SoundFile::open(wav_path(name));
    EXPECT_TRUE(file.is_ok()) << file.status().to_string();
    return file.is_ok() ? *file->read(int64_t{1} << 40) : std::vector<float>();
  }

  // The spoken words of each piece of a recording.
  static std::vector<std::string> texts(Transcriber& by, const std::string& path) {
    auto detector = voice::Detector::create(kDetector, {.num_threads = 1});
    auto found = voice::find_speech(**detector, {path});
    EXPECT_TRUE(found.is_ok()) << found.status().to_string();
    if (!found.is_ok()) return {};
    const voice::Speech& speech = found->recordings[0];
    auto file = voice::SoundFile::open(path);
    std::vector<std::string> texts;
    for (const Piece& piece : cut_pieces(speech.segments, speech.probabilities,
                                         voice::kChunkSeconds, speech.recording.seconds())) {
      const auto sound = file->read_between(piece.sound.start_s, piece.sound.end_s);
      EXPECT_TRUE(sound.is_ok()) << sound.status().to_string();
      texts.push_back(transcribe(by, *sound, Transcriber::token_limit(sound->size())).text);
    }
    return texts;
  }

  static Transcript transcribe(Transcriber& by, const std::vector<float>& samples, int64_t limit) {
    auto transcript = by.transcribe(samples, limit);
    EXPECT_TRUE(transcript.is_ok()) << transcript.status().to_string();
    if (!transcript.is_ok()) return {};
    EXPECT_EQ(by.loop_report().iterations, static_cast<int64_t>(transcript->tokens.size()));
    return std::move(*transcript);
  }
};

// One transcriber takes both, in turns: caches of one run must not reach into the next.
TEST_F(TranscriberTest, RecordingsBecomeTheWordsThatWereSaid) {
  const auto by = transcriber();
  ASSERT_NE(by, nullptr);
  for (int turn = 0; turn < 2; ++turn) {
    for (const auto& [name, text] :
         {std::pair<std::string, std::string>("Front_Center", "Front, center."),
          {"Side_Right", "Side, right."}}) {
      const auto sound = samples(name);
      const Transcript said = transcribe(*by, sound, Transcriber::token_limit(sound.size()));
      EXPECT_EQ(said.text, text);
      ASSERT_EQ(said.tokens.size(), 5u);
      EXPECT_EQ(said.tokens.back(), kEndOfText);
      EXPECT_TRUE(said.has_ended);
      EXPECT_EQ(texts(*by, wav_path(name)), std::vector<std::string>{text}) << "by its pieces";
    }
  }
}

// Longer than the transcriber takes at once.
TEST_F(TranscriberTest, ALongRecordingBecomesItsWordsPieceByPiece) {
  const auto by = transcriber();
  ASSERT_NE(by, nullptr);
  std::vector<float> sound;
  std::vector<std::string> expected;
  while (sound.size() <= size_t{kMaxSeconds} * kSampleRate) {
    sound.resize(sound.size() + size_t{3} * kSampleRate);
    const bool is_even = expected.size() % 2 == 0;
    const auto words = samples(is_even ? "Front_Center" : "Side_Right");
    sound.insert(sound.end(), words.begin(), words.end());
    expected.push_back(is_even ? "Front center" : "Side right");
  }
  const char* folder = std::getenv("TEST_TMPDIR");
  const auto path =
      test::write_wav(std::string(folder != nullptr ? folder : "/tmp") + "/long.wav",
                      test::riff(test::format_chunk({}) + test::chunk("data", test::pcm16(sound))));
  std::vector<std::string> found = texts(*by, path);
  // Where a chunk begins decides about commas.
  for (std::string& text : found) std::erase_if(text, [](char c) { return c == ',' || c == '.'; });
  EXPECT_EQ(found, expected);
}

TEST_F(TranscriberTest, TheLimitEndsTheTextEarly) {
  const auto by = transcriber();
  ASSERT_NE(by, nullptr);
  const auto sound = samples("Side_Right");
  const Transcript whole = transcribe(*by, sound, 100);
  for (const int64_t limit : {0, 1, 3, 5}) {
    const Transcript cut = transcribe(*by, sound, limit);
    EXPECT_EQ(cut.tokens, std::vector<int64_t>(whole.tokens.begin(), whole.tokens.begin() + limit));
    EXPECT_EQ(cut.has_ended, limit == 5);
  }
}

TEST_F(TranscriberTest, WhateverDrivesTheLoopTheTokensAreTheSame) {
  const auto sound = samples("Front_Center");
  const auto by_device = transcriber(Loops::kDevice);
  const auto by_host = transcriber(Loops::kHost);
  ASSERT_TRUE(by_device != nullptr && by_host != nullptr);
  const Transcript expected = transcribe(*by_device, sound, 8);
  EXPECT_EQ(transcribe(*by_host, sound, 8).tokens, expected.tokens);
}

TEST_F(TranscriberTest, ShortSoundAndSilenceEndAndLongSoundIsRefused) {
  const auto by = transcriber();
  ASSERT_NE(by, nullptr);
  EXPECT_TRUE(by->transcribe({}, 5).is_ok());
  EXPECT_TRUE(by->transcribe(std::vector<float>(100), 5).is_ok());
  EXPECT_TRUE(by->transcribe(std::vector<float>(2 * kSampleRate), 12).is_ok());
  const auto refused = by->transcribe(std::vector<float>(kMaxSeconds * kSampleRate + 1), 5);
  ASSERT_FALSE(refused.is_ok());
  EXPECT_NE(refused.status().message().find("longer than 60 s"), std::string::npos);
}

TEST_F(TranscriberTest, OtherModelsAreRefusedByNameAndWhatTheyLack) {
  const auto expect = [](const MoonshineFiles& files, const std::string& file,
                         const std::string& part) {
    const auto refused = Transcriber::create(files, kVocabulary, {});
    ASSERT_FALSE(refused.is_ok());
    const std::string text = refused.status().to_string();
    EXPECT_NE(text.find(file), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect({kFiles.decoder, kFiles.encoder}, kFiles.decoder, "has no input 'input_values'");
  expect({kFiles.encoder, kFiles.encoder}, kFiles.encoder, "has no input 'input_ids'");
  expect({kFiles.encoder, kDetector}, kDetector, "has no input 'input_ids'");
  const auto detector = voice::Detector::create(kFiles.encoder, {});
  ASSERT_FALSE(detector.is_ok());
  const std::string text = detector.status().to_string();
  EXPECT_NE(text.find(kFiles.encoder), std::string::npos) << text;
  EXPECT_NE(text.find("has no input 'input'"), std::string::npos) << text;
}

TEST_F(TranscriberTest, AMissingModelIsNamed) {
  const auto missing =
      Transcriber::create({"no/such/encoder.onnx", kFiles.decoder}, kVocabulary, {});
  ASSERT_FALSE(missing.is_ok());
  EXPECT_NE(missing.status().to_string().find("no/such/encoder.onnx"), std::string::npos)
      << missing.status().to_string();
}

TEST(Transcriber, TheLimitFollowsTheLength) {
  EXPECT_EQ(Transcriber::token_limit(0), 0);
  EXPECT_EQ(Transcriber::token_limit(kSampleRate), 6);
  EXPECT_EQ(Transcriber::token_limit(kSampleRate * 5 / 2), 15);
}

}  // namespace
}  // namespace eddy::speech
