// Claim: skeletons of planned programs hold each communication once and what the plan orders; ranks
// with one plan are safe, also as a slow machine runs them; and bytes of any kind are read or
// refused.
#include "graph/ranks/skeleton.h"

#include <gtest/gtest.h>

#include <iostream>

#include "graph/base/random.h"
#include "graph/proof/rank_proof.h"
#include "tests/graph/proof/rank_simulator.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

constexpr uint64_t kSeeds = 400;

// Each second node communicates, on a channel of its own.
RankRules some_rules() {
  RankRules rules;
  rules.communication = [](const Node& node) -> std::optional<Communication> {
    if (node.outputs.empty() || node.outputs[0].index() % 2 == 0) return std::nullopt;
    return Communication{
        .kind = "AllReduce", .channel = {{0, 1}, node.outputs[0].index()}, .makes_equal = true};
  };
  rules.is_varying = [](const Node&) { return false; };
  rules.is_replicated = [](size_t) { return true; };
  rules.agreement = [](const Node&) { return Agreement{}; };
  return rules;
}

Result<RankSkeleton> skeleton_of(const Graph& graph, const Program& program) {
  const RankRules rules = some_rules();
  Result<Decisions> decisions = find_decisions(graph, rules);
  if (!decisions.is_ok()) return decisions.take_status();
  return extract_skeleton(graph, program, rules, *decisions);
}

TEST(SkeletonTest, RanksWithOnePlanAreSafe) {
  size_t num_posts = 0, num_controls = 0, num_pipelined = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph graph = nested_graph(seed);
    const Program program = plan_graph(graph, nested_options(seed)).program;
    Result<RankSkeleton> skeleton = skeleton_of(graph, program);
    ASSERT_TRUE(skeleton.is_ok()) << skeleton.status().to_string();
    const std::vector<RankSkeleton> ranks = {*skeleton, *skeleton};
    const RankProof proof = prove_ranks(ranks);
    ASSERT_TRUE(proof.is_safe()) << "seed " << seed << ": " << proof.violations[0];
    if (seed % 10 == 0) {
      ASSERT_EQ(RankSimulator(ranks, seed + 1).run(), "") << "seed " << seed;
    }
    size_t num_expected = 0;
    for (const Program::Launch& launch : program.launches) {
      const Node& node = graph.node(NodeId(launch.node));
      if (node.kind != NodeKind::kExec || node.outputs.empty()) continue;
      num_expected += node.outputs[0].index() % 2;
    }
    ASSERT_EQ(skeleton->posts.size(), num_expected) << "seed " << seed;
    num_posts += skeleton->posts.size();
    num_controls += skeleton->controls.size();
    for (const auto& control : skeleton->controls) num_pipelined += control.is_pipelined;
  }
  std::cout << num_posts << " posts, " << num_controls << " loops and cases, " << num_pipelined
            << " pipelined\n";
  EXPECT_GT(num_posts, 1000u);
  EXPECT_GT(num_controls, 100u);
}

// x -> first -> second, and beside: x -> third.
TEST(SkeletonTest, ARecordAndAWaitOrderACompletionBeforeAStart) {
  GraphBuilder b(nested_ops(), "two");
  b.set_opset("nested", 1);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const Value first = b.op("Keep", {x}, {}, {.name = "first", .domain = "nested"});
  const Value second = b.op("Keep", {first}, {}, {.name = "second", .domain = "nested"});
  b.output("y", second);
  Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  RankRules rules = some_rules();
  rules.communication = [](const Node& node) -> std::optional<Communication> {
    return Communication{
        .kind = "AllReduce", .channel = {{0, 1}, node.name == "first"}, .moved = node.inputs[0]};
  };
  using Op = Program::Op;
  Program program;
  program.launches = {{.node = 0}, {.node = 1}};
  program.blocks = {{.streams = {0, 1, 2},
                     .num_events = 5,
                     .steps = {{Op::kBegin, 0, 0},
                               {Op::kLaunch, 1, 0},
                               {Op::kRecord, 1, 0},
                               {Op::kWait, 2, 0},
                               {Op::kLaunch, 2, 1},
                               {Op::kRecord, 2, 1},
                               {Op::kWait, 0, 1},
                               {Op::kEnd, 0, 0}}}};
  Result<Decisions> decisions = find_decisions(*graph, rules);
  ASSERT_TRUE(decisions.is_ok());
  const auto extract = [&] { return *extract_skeleton(*graph, program, rules, *decisions); };
  const RankSkeleton ordered = extract();
  ASSERT_EQ(ordered.regions[0].vertices.size(), 4u);
  EXPECT_EQ(ordered.regions[0].vertices[2].after, std::vector<uint32_t>{1});
  EXPECT_EQ(ordered.regions[0].end, std::vector<uint32_t>{3});
  EXPECT_EQ(ordered.posts[0].signature.type + ordered.posts[0].signature.shape, "float[8]");
  program.blocks[0].steps.erase(program.blocks[0].steps.begin() + 3);
  const RankSkeleton loose = extract();
  EXPECT_TRUE(loose.regions[0].vertices[2].after.empty());
  const RankProof proof = prove_ranks(std::vector{loose, loose});
  ASSERT_FALSE(proof.is_safe());
  EXPECT_EQ(proof.violations[0], "rank 0: a region may end before first does");
}

TEST(SkeletonTest, BytesComeBackOrAreRefused) {
  size_t num_read = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Graph graph = nested_graph(seed);
    const Program program = plan_graph(graph, nested_options(seed)).program;
    const RankSkeleton skeleton = *skeleton_of(graph, program);
    const std::vector<std::byte> bytes = write_skeleton(skeleton);
    Result<RankSkeleton> back = read_skeleton(bytes);
    ASSERT_TRUE(back.is_ok()) << back.status().to_string();
    ASSERT_TRUE(*back == skeleton) << "seed " << seed;
    for (size_t cut = 0; cut < bytes.size(); cut += 1 + bytes.size() / 50) {
      EXPECT_FALSE(read_skeleton(std::span(bytes).first(cut)).is_ok()) << cut;
    }
    Random random(seed);
    for (int i = 0; i < 50; ++i) {
      std::vector<std::byte> spoilt = bytes;
      spoilt[random.below(spoilt.size())] = static_cast<std::byte>(random.below(256));
      Result<RankSkeleton> read = read_skeleton(spoilt);
      if (!read.is_ok()) continue;
      ++num_read;
      const RankProof proof = prove_ranks(std::vector{skeleton, *read});
      EXPECT_LE(proof.violations.size(), RankProof::kMaxViolations);
    }
  }
  EXPECT_GT(num_read, 100u);
}

}  // namespace
}  // namespace eddy
