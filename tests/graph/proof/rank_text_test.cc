// Claim: a skeleton's text names each operation with what it moves and where it matches, under the
// loops and branches that it stands in, and how these are decided; of any skeleton that the proof
// takes, each operation stands in it once.
#include "graph/proof/rank_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/proof/rank_proof.h"
#include "tests/graph/proof/random_ranks.h"

namespace eddy {
namespace {

using Op = RankSkeleton::Op;

TEST(RankText, ALoopThatIsAgreedOnHoldsAMessage) {
  RankSkeleton skeleton;
  skeleton.channels = {{{0, 1, 4}, 2}, {{0, 1}, 3}};
  skeleton.posts = {
      {.channel = 0,
       .signature = {.kind = "AllReduce", .type = "float", .shape = "[4]", .reduction = "sum"},
       .path = "total"},
      {.channel = 1,
       .from = 0,
       .to = 1,
       .signature = {.kind = "message", .type = "float", .shape = "[2]"},
       .path = "halve/ask"}};
  skeleton.controls = {{.decision = RankSkeleton::Decision::kAgreeAny,
                        .agree_channel = 0,
                        .regions = {1, 2},
                        .path = "halve"}};
  skeleton.regions.resize(3);
  skeleton.regions[0].vertices = {
      {Op::kEnter, 0}, {Op::kLeave, 0, {0}}, {Op::kPost, 0, {1}}, {Op::kDone, 2, {2}}};
  skeleton.regions[2].vertices = {{Op::kPost, 1}, {Op::kDone, 0, {0}}};
  EXPECT_EQ(skeleton_text(skeleton),
            "loop halve: goes on while any rank would, agreed on by ranks 0, 1, 4\n"
            "  after:\n"
            "    halve/ask (message float[2]), on channel 3 of ranks 0, 1 from 0 to 1\n"
            "total (AllReduce sum float[4]), on channel 2 of ranks 0, 1, 4\n");
}

TEST(RankText, WithoutCommunicationThereIsNone) { EXPECT_EQ(skeleton_text(RankSkeleton{}), ""); }

TEST(RankText, EachOperationOfRandomRanksStandsInItOnce) {
  size_t num_controls = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (const RankSkeleton& skeleton : RandomRanks(3, seed).make(6, 2)) {
      const std::string text = skeleton_text(skeleton);
      const auto num_lines = static_cast<size_t>(std::ranges::count(text, '\n'));
      size_t num_titles = 0;
      for (const RankSkeleton::Region& region : skeleton.regions) {
        if (&region == skeleton.regions.data()) continue;
        num_titles += std::ranges::any_of(region.vertices, [](const auto& vertex) {
          return vertex.op == Op::kPost || vertex.op == Op::kEnter;
        });
      }
      ASSERT_EQ(num_lines, skeleton.posts.size() + skeleton.controls.size() + num_titles)
          << "seed " << seed << ":\n"
          << text;
      num_controls += skeleton.controls.size();
    }
  }
  EXPECT_GT(num_controls, 100u);
}

}  // namespace
}  // namespace eddy
