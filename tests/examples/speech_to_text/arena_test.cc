// Claim: with sizes fixed, nearly all values of the speech models live in an arena that is at most
// 1.10 of the least memory that any layout needs: one chunk of the voice detector's loop, the
// encoder over four seconds, and both branches of the decoder.
#include <gtest/gtest.h>

#include <filesystem>

#include "examples/voice_activity/detector.h"
#include "runtime/api/session.h"
#include "tests/examples/cached_model.h"

namespace eddy {
namespace {

// `path` is for the message alone.
void expect_tight(const Result<std::unique_ptr<Session>>& session, const std::string& path) {
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const MemoryPlan& memory = (*session)->plan().memory;
  ASSERT_EQ(memory.arenas.size(), 1u) << path;
  const MemoryArena& arena = memory.arenas[0];
  std::printf("%s: %llu bytes, bound %llu, %u blocks\n", path.c_str(),
              static_cast<unsigned long long>(arena.size_bytes),
              static_cast<unsigned long long>(arena.lower_bound_bytes), arena.num_blocks);
  EXPECT_GE(arena.size_bytes, arena.lower_bound_bytes);
  EXPECT_LE(static_cast<double>(arena.size_bytes),
            1.10 * static_cast<double>(arena.lower_bound_bytes));
  size_t num_changing = 0;
  for (const ValueMemory& value : memory.values) {
    num_changing += value.reason == NoBlock::kChangingShape ? 1 : 0;
  }
  EXPECT_LT(10 * num_changing, arena.num_blocks) << path;
}

class ArenaTest : public testing::TestWithParam<Assignment> {
 protected:
  void expect_tight_file(const std::string& name, SessionOptions options) {
    const std::string path = test::cached_model(name);
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << "; tools/demo fetches it";
    options.assignment = GetParam();
    expect_tight(Session::load(library_, path, options), path);
  }

  Library library_;
};

TEST_P(ArenaTest, VoiceDetector) {
  const std::string path = test::cached_model("silero_vad-1.9.0.onnx");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << "; tools/demo fetches it";
  auto graph = voice::build_detector(library_.ops(), path);
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  SessionOptions options;
  options.assignment = GetParam();
  options.input_dims = {{"chunks", {125, voice::kChunkSamples}}};
  expect_tight(Session::create(library_, std::move(*graph), options), path);
}

TEST_P(ArenaTest, SpeechEncoder) {
  expect_tight_file("moonshine_tiny_encoder-0.1.29.onnx",
                    {.input_dims = {{"input_values", {1, 64000}}}});
}

TEST_P(ArenaTest, SpeechDecoder) {
  expect_tight_file("moonshine_tiny_decoder-0.1.29.onnx",
                    {.dims = {{"batch_size", 1},
                              {"decoder_sequence_length", 1},
                              {"encoder_sequence_length", 165},
                              {"encoder_sequence_length_out", 165},
                              {"past_decoder_sequence_length", 10}}});
}

INSTANTIATE_TEST_SUITE_P(Policies, ArenaTest,
                         testing::Values(Assignment::kSerial, Assignment::kRank,
                                         Assignment::kMatching));

}  // namespace
}  // namespace eddy
