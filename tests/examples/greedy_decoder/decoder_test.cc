// Claim: the decoder's loop gives the tokens of plain loops, whether the stop token or the limit
// ends it, driven by the device and by the host.
#include "examples/greedy_decoder/decoder.h"

#include <gtest/gtest.h>

#include "runtime/api/session.h"

namespace eddy::decoder {
namespace {

class DecoderWays : public testing::TestWithParam<Loops> {
 protected:
  std::vector<int64_t> decode(Session& session, int64_t first, int64_t limit) {
    const auto outputs = session.run(
        {{"first", Tensor::of<int64_t>({1}, {first})}, {"limit", Tensor::scalar(limit)}});
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    if (!outputs.is_ok()) return {};
    const auto tokens = (*outputs)[0].second.values<int64_t>();
    return {tokens.begin(), tokens.end()};
  }
};

TEST_P(DecoderWays, TokensAreThoseOfPlainLoops) {
  int num_stopped = 0;
  int num_limited = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Weights weights = make_weights(seed, 32, 64);
    Library library;
    auto graph = build_decoder(library.ops(), weights);
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library, std::move(*graph), {.loops = GetParam()});
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    for (const int64_t limit : {0, 1, 40}) {
      const auto tokens = decode(**session, 1, limit);
      EXPECT_EQ(tokens, decode_plainly(weights, 1, limit)) << "seed " << seed;
      ++(static_cast<int64_t>(tokens.size()) < limit ? num_stopped : num_limited);
    }
  }
  EXPECT_GT(num_stopped, 5);
  EXPECT_GT(num_limited, 30);
}

INSTANTIATE_TEST_SUITE_P(All, DecoderWays, testing::Values(Loops::kDevice, Loops::kHost),
                         [](const auto& info) {
                           return info.param == Loops::kDevice ? "DeviceDriven" : "HostDriven";
                         });

}  // namespace
}  // namespace eddy::decoder
