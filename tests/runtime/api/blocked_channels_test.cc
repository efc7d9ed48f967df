// Claim: a session that blocks the channels of images gives what one gives that does not, within
// rounding, on seeded random networks with branches, joins, normalizations, pools, loops and
// if-branches over them; and the same bits with any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tests/runtime/testing/random_networks.h"

namespace eddy {
namespace {

class BlockedChannelsTest : public ::testing::Test {
 protected:
  std::vector<std::vector<float>> run(uint64_t seed, const SessionOptions& options,
                                      const Dims& dims = {2, 3, 11, 13}) {
    GraphBuilder b(library_.ops());
    testing::build_random_network(b, seed, dims);
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library_, std::move(*graph), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    std::vector<std::vector<float>> found;
    if (!session.is_ok()) return found;
    Random random(seed + 1000);
    std::vector<float> x(static_cast<size_t>(*dims.count()));
    for (float& value : x) value = random.uniform(-1.0f, 1.0f);
    for (int i = 0; i < 2; ++i) {  // a second run finds what the first has left
      const auto outputs =
          (*session)->run({{"x", Tensor::of<float>(dims, std::span<const float>(x))}});
      EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      found.clear();
      if (!outputs.is_ok()) return found;
      for (const auto& [name, tensor] : *outputs) {
        const std::span<const float> values = tensor.values<float>();
        found.emplace_back(values.begin(), values.end());
      }
    }
    return found;
  }

  const Library library_;
};

TEST_F(BlockedChannelsTest, RandomNetworksGiveTheSameWithinRounding) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto expected = run(seed, {.num_threads = 1, .blocks_channels = false});
    for (const bool folds_norms : {false, true}) {
      const auto found = run(seed, {.num_threads = 1, .folds_norms = folds_norms});
      ASSERT_EQ(found.size(), expected.size());
      for (size_t o = 0; o < found.size(); ++o) {
        ASSERT_EQ(found[o].size(), expected[o].size());
        for (size_t i = 0; i < found[o].size(); ++i) {
          ASSERT_NEAR(found[o][i], expected[o][i], 2e-3 * (1 + std::fabs(expected[o][i])))
              << "output " << o << " element " << i;
        }
      }
    }
  }
}

TEST_F(BlockedChannelsTest, ThreadsChangeNoBit) {
  for (uint64_t seed = 61; seed <= 75; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Dims dims{1, 3, 48, 52};  // so that calls fall into several parts
    const auto expected = run(seed, {.num_threads = 1, .folds_norms = true}, dims);
    for (const int num_threads : {2, 3, 8}) {
      const auto found = run(seed, {.num_threads = num_threads, .folds_norms = true}, dims);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t o = 0; o < found.size(); ++o) {
        ASSERT_EQ(found[o].size(), expected[o].size());
        EXPECT_EQ(std::memcmp(found[o].data(), expected[o].data(), found[o].size() * sizeof(float)),
                  0)
            << num_threads << " threads, output " << o;
      }
    }
  }
}

}  // namespace
}  // namespace eddy
