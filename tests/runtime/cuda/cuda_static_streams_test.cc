// Claim: what stands between the copies of a graph without decisions is one launch on a device,
// once its addresses have been seen, on however many streams its nodes are, and gives the CPU's
// values.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "graph/ir/builder.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

class CudaStaticStreamsTest : public CudaSessionFixture {
 protected:
  void expect_one_launch(const Graph& graph, bool is_parallel) {
    const NamedTensors inputs = {{"x", Tensor::of<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8})}};
    auto expected = std::move(*Session::create(library_, graph.copy(), {}))->run(inputs);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    use_fake({});
    const auto session = make_or_null(graph.copy(), {.num_threads = 2});
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->plan().program.blocks[0].streams.size() > 1, is_parallel);
    constexpr int kRunsToRecord = 3;
    for (int repeat = 0; repeat < 2 * kRunsToRecord; ++repeat) {
      const uint64_t before = fake_->cuda().num_graph_launches();
      const auto outputs = session->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ(check::difference(*expected, *outputs), "");
      if (repeat < kRunsToRecord) continue;
      EXPECT_EQ(fake_->cuda().num_graph_launches() - before, 1u);
    }
  }
};

// Branches of 1, 2, … nodes, joined at each block's end, as Inception has them.
Result<Graph> blocks_of_branches(const Library& library, int num_branches) {
  GraphBuilder b(library.ops());
  Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  for (int block = 0; block < 3; ++block) {
    std::vector<Value> ends;
    for (int branch = 0; branch < num_branches; ++branch) {
      Value end = b.op("Mul", {x, b.scalar(1.0f + static_cast<float>(branch))});
      for (int i = 0; i <= branch; ++i) end = b.op(i % 2 == 0 ? "Tanh" : "Sigmoid", {end});
      ends.push_back(end);
    }
    x = b.op("Sum", ends);
  }
  b.output("y", x);
  return b.finish();
}

// Blocks whose input also goes another way, which ends before they do, as ResNet has them.
Result<Graph> residual_blocks(const Library& library) {
  GraphBuilder b(library.ops());
  Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  for (int block = 0; block < 4; ++block) {
    x = b.op("Tanh", {x});
    const Value shortcut = b.op("Sigmoid", {x});
    const Value main = b.op("Exp", {b.op("Tanh", {b.op("Tanh", {x})})});
    x = b.op("Mul", {main, shortcut});
  }
  b.output("y", x);
  return b.finish();
}

TEST_P(CudaStaticStreamsTest, BlocksOfBranchesAreOneLaunch) {
  for (const int num_branches : {1, 2, 4}) {
    SCOPED_TRACE(num_branches);
    const Result<Graph> graph = blocks_of_branches(library_, num_branches);
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    expect_one_launch(*graph, num_branches > 1);
  }
}

TEST_P(CudaStaticStreamsTest, ResidualBlocksAreOneLaunch) {
  const Result<Graph> graph = residual_blocks(library_);
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  expect_one_launch(*graph, true);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaStaticStreamsTest, ::testing::Range<uint64_t>(0, 5));

}  // namespace
}  // namespace eddy::testing
