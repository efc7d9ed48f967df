// Claim: ranks whose communication is right are proved, without a false alarm; and whatever a slow
// machine that runs spoilt ranks in random orders finds, the proof finds, too.
#include "graph/proof/rank_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "tests/graph/proof/random_ranks.h"
#include "tests/graph/proof/rank_simulator.h"

namespace eddy {
namespace {

using Op = RankSkeleton::Op;
using Skeletons = std::vector<RankSkeleton>;

std::string first(const Skeletons& skeletons) {
  const RankProof proof = prove_ranks(skeletons);
  return proof.is_safe() ? "" : proof.violations[0];
}

Skeletons random_ranks(uint64_t seed) {
  return RandomRanks(2 + static_cast<uint32_t>(seed % 3), seed).make(6, 2);
}

// One that finds a deadlock or mismatch is enough.
std::string simulate(const Skeletons& skeletons, int orders) {
  for (int i = 0; i < orders; ++i) {
    const std::string wrong = RankSimulator(skeletons, static_cast<uint64_t>(i) + 1).run();
    if (!wrong.empty()) return wrong;
  }
  return "";
}

// One region: operations by name, "+a" starts and "-a" completes; each waits for the one in front.
// The first letter names the channel over all ranks.
RankSkeleton chain(uint32_t num_ranks, const std::vector<std::string>& steps) {
  RankSkeleton skeleton;
  skeleton.regions.resize(1);
  std::vector<std::string> posted;
  auto& vertices = skeleton.regions[0].vertices;
  for (const std::string& step : steps) {
    RankSkeleton::Vertex vertex;
    const auto at = static_cast<uint32_t>(vertices.size());
    if (at > 0) vertex.after = {at - 1};
    posted.push_back(step.substr(1));
    if (step[0] == '+') {
      RankSkeleton::Channel channel{{}, static_cast<uint32_t>(step[1])};
      for (uint32_t r = 0; r < num_ranks; ++r) channel.group.push_back(r);
      vertex.op = Op::kPost;
      vertex.operand = static_cast<uint32_t>(skeleton.posts.size());
      RankSkeleton::Post post;
      post.channel = static_cast<uint32_t>(skeleton.channels.size());
      post.signature = {.kind = "AllReduce", .type = "float", .shape = "[4]", .tag = posted.back()};
      post.path = posted.back();
      skeleton.posts.push_back(post);
      skeleton.channels.push_back(channel);
    } else {
      vertex.op = Op::kDone;
      while (posted[vertex.operand] != posted.back()) ++vertex.operand;
    }
    skeleton.regions[0].end = {at};
    vertices.push_back(vertex);
  }
  return skeleton;
}

TEST(RankProofTest, OneOrderOnAllRanksIsSafe) {
  EXPECT_EQ(first({chain(2, {"+a", "-a", "+b", "-b"}), chain(2, {"+a", "+b", "-b", "-a"})}), "");
  EXPECT_EQ(first({}), "");
}

TEST(RankProofTest, ChannelsInOppositeOrderDeadlockUnlessBothAreStartedFirst) {
  EXPECT_EQ(first({chain(2, {"+a", "-a", "+b", "-b"}), chain(2, {"+b", "-b", "+a", "-a"})}),
            "rank 0 waits in a for rank 1, which waits in b for rank 0");
  EXPECT_EQ(first({chain(2, {"+a", "+b", "-a", "-b"}), chain(2, {"+b", "+a", "-b", "-a"})}), "");
}

TEST(RankProofTest, OneChannelInOppositeOrderIsAMismatch) {
  EXPECT_EQ(
      first({chain(2, {"+a1", "+a2", "-a1", "-a2"}), chain(2, {"+a2", "+a1", "-a1", "-a2"})}),
      "rank 0 has a1 (AllReduce float[4]) where rank 1 has a2 (AllReduce float[4]), operation "
      "1 on channel 97 of ranks 0, 1");
}

TEST(RankProofTest, AnOperationThatARankLacksIsNamed) {
  EXPECT_EQ(first({chain(2, {"+a", "-a"}), chain(2, {})}),
            "rank 1 has nothing where rank 0 has a (AllReduce float[4]), on channel 97 of ranks 0, "
            "1");
}

TEST(RankProofTest, RightRanksRaiseNoAlarm) {
  constexpr uint64_t kSeeds = 10000;
  size_t num_controls = 0, num_pipelined = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Skeletons skeletons = random_ranks(seed);
    ASSERT_EQ(first(skeletons), "") << "seed " << seed;
    if (seed % 50 == 0) {
      ASSERT_EQ(simulate(skeletons, 5), "") << "seed " << seed;
    }
    for (const auto& control : skeletons[0].controls) {
      ++num_controls;
      num_pipelined += control.is_pipelined;
    }
  }
  std::cout << num_controls << " loops and cases, " << num_pipelined << " pipelined\n";
  EXPECT_GT(num_pipelined, 1000u);
}

TEST(RankProofTest, EverySwapOnAChannelIsFlagged) {
  size_t num_swaps = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Skeletons skeletons = random_ranks(seed);
    for (RankSkeleton& skeleton : skeletons) {
      for (RankSkeleton::Region& region : skeleton.regions) {
        auto& v = region.vertices;
        for (size_t i = 0; i < v.size(); ++i) {
          for (size_t j = i + 1; j < v.size(); ++j) {
            if (v[i].op != Op::kPost || v[j].op != Op::kPost) continue;
            const auto& a = skeleton.posts[v[i].operand];
            const auto& b = skeleton.posts[v[j].operand];
            if (a.channel != b.channel || a.from != b.from || a.to != b.to) continue;
            std::swap(v[i].operand, v[j].operand);
            ++num_swaps;
            EXPECT_NE(first(skeletons), "") << "seed " << seed;
            std::swap(v[i].operand, v[j].operand);
          }
        }
      }
    }
  }
  EXPECT_GT(num_swaps, 300u);
}

// Each order edge of a right program is taken away, in turn; and edges are added that delay.
TEST(RankProofTest, WhatRandomOrdersFindTheProofFinds) {
  size_t num_spoilt = 0, num_found = 0, num_flagged = 0;
  const auto compare = [&](const Skeletons& skeletons, uint64_t seed) {
    ++num_spoilt;
    const bool is_safe = first(skeletons).empty();
    num_flagged += !is_safe;
    const std::string found = simulate(skeletons, 6);
    num_found += !found.empty();
    EXPECT_FALSE(is_safe && !found.empty()) << found << ", seed " << seed;
  };
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Skeletons skeletons = random_ranks(seed);
    Random random(seed);
    for (RankSkeleton& skeleton : skeletons) {
      for (RankSkeleton::Region& region : skeleton.regions) {
        for (RankSkeleton::Vertex& vertex : region.vertices) {
          if (vertex.after.empty() || random.below(3) > 0) continue;
          const RankSkeleton::Vertex kept = vertex;
          vertex.after.erase(vertex.after.begin() +
                             static_cast<long>(random.below(vertex.after.size())));
          compare(skeletons, seed);
          vertex = kept;
          vertex.previous.clear();
          if (!kept.previous.empty()) compare(skeletons, seed);
          vertex = kept;
        }
      }
      for (RankSkeleton::Control& control : skeleton.controls) {
        const RankSkeleton::Control kept = control;
        control.decision = RankSkeleton::Decision::kVarying;
        control.agree_channel = control.root = RankSkeleton::kNone;
        compare(skeletons, seed);
        control = kept;
      }
    }
  }
  std::cout << num_spoilt << " spoilt, " << num_flagged << " flagged, " << num_found
            << " found by running\n";
  EXPECT_GT(num_found, 100u);
}

// All orders of small ranks without control: what has fired, and what was posted in which order.
bool may_go_wrong(const Skeletons& skeletons) {
  using State = std::vector<std::vector<uint32_t>>;  // by rank: vertices in the order of firing
  std::set<State> seen;
  std::vector<State> left = {State(skeletons.size())};
  while (!left.empty()) {
    const State state = left.back();
    left.pop_back();
    const auto count = [&](uint32_t rank, const RankSkeleton::Channel& channel, uint32_t until) {
      std::vector<std::string> tags;
      for (uint32_t v : state[rank]) {
        const auto& vertex = skeletons[rank].regions[0].vertices[v];
        if (vertex.op != Op::kPost) continue;
        const auto& post = skeletons[rank].posts[vertex.operand];
        if (skeletons[rank].channels[post.channel] != channel) continue;
        tags.push_back(post.signature.tag);
        if (v == until) break;
      }
      return tags;
    };
    bool has_moved = false, is_finished = true;
    for (uint32_t r = 0; r < skeletons.size(); ++r) {
      const auto& vertices = skeletons[r].regions[0].vertices;
      is_finished = is_finished && state[r].size() == vertices.size();
      const std::set<uint32_t> fired(state[r].begin(), state[r].end());
      for (uint32_t v = 0; v < vertices.size(); ++v) {
        bool ready = !fired.count(v);
        for (uint32_t before : vertices[v].after) ready = ready && fired.count(before);
        if (ready && vertices[v].op == Op::kDone) {
          const uint32_t p = vertices[v].operand;
          if (!fired.count(p)) continue;
          const auto& channel =
              skeletons[r].channels[skeletons[r].posts[vertices[p].operand].channel];
          const auto own = count(r, channel, p);
          for (uint32_t other : channel.group) {
            const auto theirs = count(other, channel, RankSkeleton::kNone);
            if (theirs.size() < own.size())
              ready = false;
            else if (theirs[own.size() - 1] != own.back())
              return true;
          }
        }
        if (!ready) continue;
        has_moved = true;
        State next = state;
        next[r].push_back(v);
        // Only the order on a channel matters.
        std::stable_sort(next[r].begin(), next[r].end(), [&](uint32_t a, uint32_t b) {
          const auto place = [&](uint32_t id) {
            return vertices[id].op == Op::kPost ? skeletons[r].channels[id / 2].number : 1000 + id;
          };
          return place(a) < place(b);
        });
        if (seen.insert(next).second) left.push_back(next);
      }
    }
    if (!has_moved && !is_finished) return true;
  }
  return false;
}

TEST(RankProofTest, OnSmallRanksTheProofIsExact) {
  size_t num_safe = 0;
  constexpr uint64_t kSeeds = 1000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random(seed);
    Skeletons skeletons;
    for (int r = 0; r < 2; ++r) {
      std::vector<std::string> names = {"a1", "b1", random.below(2) == 0 ? "a1" : "c1"};
      if (names[2] == "a1") names[2] = "c2";
      for (size_t i = 2; i > 0; --i) std::swap(names[i], names[random.below(i + 1)]);
      if (random.below(6) == 0) names[0] = "b2";
      std::vector<std::string> steps;
      for (const std::string& name : names) {
        steps.push_back("+" + name);
        steps.push_back("-" + name);
      }
      RankSkeleton skeleton = chain(2, steps);
      auto& vertices = skeleton.regions[0].vertices;
      skeleton.regions[0].end = {1, 3, 5};
      for (uint32_t v = 0; v < vertices.size(); ++v) {
        vertices[v].after.clear();
        for (uint32_t before = 0; before < v; ++before) {
          const bool are_posts = v % 2 == 0 && before % 2 == 0;
          const bool is_tie =
              are_posts && skeleton.channels[before / 2] == skeleton.channels[v / 2];
          if (is_tie || random.below(4) == 0) vertices[v].after.push_back(before);
        }
      }
      skeletons.push_back(skeleton);
    }
    const bool is_safe = first(skeletons).empty();
    num_safe += is_safe;
    ASSERT_EQ(is_safe, !may_go_wrong(skeletons)) << "seed " << seed << ": " << first(skeletons);
  }
  std::cout << num_safe << " of " << kSeeds << " are safe\n";
  EXPECT_GT(num_safe, 100u);
  EXPECT_LT(num_safe, kSeeds - 100);
}

TEST(RankProofTest, SpoiltIdsAreUnsafeOrHarmless) {
  size_t num_unsafe = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Skeletons skeletons = random_ranks(seed % 100);
    Random random(seed);
    RankSkeleton& skeleton = skeletons[random.below(skeletons.size())];
    const auto id = [&] { return static_cast<uint32_t>(random.below(4) ? random.below(9) : ~0u); };
    auto& region = skeleton.regions[random.below(skeleton.regions.size())];
    if (!region.vertices.empty()) {
      auto& vertex = region.vertices[random.below(region.vertices.size())];
      switch (random.below(4)) {
        case 0:
          vertex.operand = id();
          break;
        case 1:
          vertex.after.push_back(id());
          break;
        case 2:
          vertex.previous.push_back(id());
          break;
        case 3:
          vertex.op = static_cast<Op>(random.below(8));
          break;
      }
    }
    if (!skeleton.posts.empty() && random.below(3) == 0) skeleton.posts[0].channel = id();
    if (!skeleton.posts.empty() && random.below(3) == 0) skeleton.posts[0].from = id();
    if (!skeleton.channels.empty() && random.below(3) == 0) skeleton.channels[0].group = {id()};
    if (!skeleton.controls.empty() && random.below(3) == 0) skeleton.controls[0].regions = {id()};
    if (random.below(3) == 0) region.end = {id()};
    num_unsafe += !first(skeletons).empty();
  }
  EXPECT_GT(num_unsafe, 1000u);
}

// A loop that only some ranks meet in is theirs alone; what they decide must be decided alike.
TEST(RankProofTest, ALoopThatRanksMeetInNeedsOneDecision) {
  const auto rank = [](RankSkeleton::Decision decision) {
    RankSkeleton skeleton = chain(2, {"+a", "-a"});
    skeleton.regions.resize(3);
    std::swap(skeleton.regions[0], skeleton.regions[2]);
    RankSkeleton::Control control;
    control.decision = decision;
    control.regions = {1, 2};
    control.path = "decode";
    skeleton.controls = {control};
    skeleton.regions[0].vertices = {{Op::kEnter, 0, {}, {}}, {Op::kLeave, 0, {0}, {}}};
    skeleton.regions[0].end = {1};
    return skeleton;
  };
  EXPECT_EQ(first({rank(RankSkeleton::Decision::kUniform), rank(RankSkeleton::Decision::kUniform)}),
            "");
  EXPECT_EQ(first({rank(RankSkeleton::Decision::kUniform), rank(RankSkeleton::Decision::kVarying)}),
            "rank 1 meets rank 0 in the loop decode, whose decision may differ; let it agree: all, "
            "any or root");
}

}  // namespace
}  // namespace eddy
