// Claim: the source of one launch of eddy_loop_copy does, bit for bit, what the launch does where
// its parameters are interpreted: sources of seeded random launches, compiled by the host's
// compiler, over memory that steps, maps, pieces and the loop's words share; called off and not,
// stopped and not. What shares memory in part has no source.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/cuda/images/copy_source.h"
#include "tests/ops/cuda/compiled/fused_sources.h"
#include "tests/ops/cuda/compiled/random_loop_copies.h"

namespace eddy::testing {
namespace {

struct Arena {
  alignas(64) unsigned char bytes[kCopyArenaBytes];
};

constexpr uint64_t kThreads = 4;

void interpret(const cuda::LoopCopyParams& params) {
  const auto set = [](uint64_t handle, uint32_t value) {
    *reinterpret_cast<uint32_t*>(handle) = value;
  };
  const auto do_step = [&](uint64_t thread) {
    cuda::loop_copy_step(params, thread, set, [] { return uint64_t{1} << 40; });
  };
  const bool waits = (params.flags & cuda::LoopStepParams::kBehindAll) != 0;
  bool is_on = true;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    is_on = cuda::loop_copy_parts(params, thread, kThreads);
    if (is_on && !waits) do_step(thread);
  }
  if (is_on && waits) do_step(0);
  if (params.told != nullptr) cuda::tell_end(params);
}

TEST(CopySources, SourcesOfRandomLaunchesDoWhatTheirParametersSay) {
  Random random(kCopySourcesSeed), again(kCopySourcesSeed);
  static Arena slow, fast;
  for (int i = 0; i < kNumCopyHostKernels; ++i) {
    const cuda::LoopCopyParams expected = RandomLoopCopy::make(random, slow.bytes);
    const cuda::LoopCopyParams actual = RandomLoopCopy::make(again, fast.bytes);
    if (kCopyHostKernels[i] == nullptr) continue;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      fill_copy_arena(seed, slow.bytes);
      fill_copy_arena(seed, fast.bytes);
      interpret(expected);
      for (uint64_t thread = 0; thread < kThreads; ++thread) {
        kCopyHostKernels[i](&actual, thread, kThreads);
      }
      ASSERT_EQ(std::memcmp(slow.bytes, fast.bytes, kCopyArenaBytes), 0)
          << "launch " << i << ", memory of seed " << seed << "\n"
          << cuda::loop_copy_source(actual)->text;
    }
  }
}

TEST(CopySources, MostRandomLaunchesHaveOne) {
  int num_made = 0;
  for (int i = 0; i < kNumCopyHostKernels; ++i) num_made += kCopyHostKernels[i] != nullptr ? 1 : 0;
  EXPECT_GT(num_made, kNumCopyHostKernels / 2);
}

TEST(CopySources, LaunchesThatDifferInAddressesAloneHaveOneSource) {
  Random random(5), again(5);
  static Arena one, other;
  for (int i = 0; i < 50; ++i) {
    const auto a = cuda::loop_copy_source(RandomLoopCopy::make(random, one.bytes));
    const auto b = cuda::loop_copy_source(RandomLoopCopy::make(again, other.bytes));
    ASSERT_EQ(a.is_ok(), b.is_ok());
    if (!a.is_ok()) continue;
    EXPECT_EQ(a->text, b->text);
  }
}

TEST(CopySources, AStepThatReadsAPartOfWhatAnotherOneWritesHasNone) {
  uint64_t words[2] = {};
  uint8_t bit = 0;
  cuda::LoopCopyParams params{};
  params.num_scalars = 2;
  params.scalars[0] = {cuda::ScalarOp::kAdd,    cuda::ScalarType::k_i64,
                       cuda::ScalarType::k_i64, {},
                       {words, words, nullptr}, words + 1};
  params.scalars[1] = {cuda::ScalarOp::kNot,          cuda::ScalarType::k_b8,
                       cuda::ScalarType::k_b8,        {},
                       {words + 1, nullptr, nullptr}, &bit};
  EXPECT_EQ(cuda::loop_copy_source(params).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace eddy::testing
