// Claim: scratch memory that kernels are known to need is there before the first run, one slab
// for each stream, and a kernel whose shapes are known takes no more.
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

constexpr int64_t kHidden = 32, kSteps = 8;

class WorkspaceTest : public testing::Test {
 protected:
  Value ones(GraphBuilder& b, const Dims& dims) {
    return b.tensor<float>(dims, std::vector<float>(static_cast<size_t>(*dims.count()), 0.01f));
  }
  // An LSTM needs room for its gates.
  Value lstm(GraphBuilder& b, int64_t steps) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {steps, 1, kHidden}));
    return b.op("LSTM", {x, ones(b, {1, 4 * kHidden, kHidden}), ones(b, {1, 4 * kHidden, kHidden})},
                {{"hidden_size", kHidden}});
  }
  std::unique_ptr<Session> make(GraphBuilder& b, const SessionOptions& options = {}) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library_, std::move(*graph), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  static Tensor input() {
    return Tensor::of<float>({kSteps, 1, kHidden},
                             std::vector<float>(static_cast<size_t>(kSteps * kHidden), 0.5f));
  }
  Library library_;
};

TEST_F(WorkspaceTest, KnownShapesAreReportedBeforeTheFirstRunAndUnknownOnesAreNot) {
  GraphBuilder known(library_.ops());
  known.output("y", lstm(known, kSteps));
  EXPECT_GE(make(known)->workspace_bytes(), size_t{4 * kHidden * sizeof(float)});
  GraphBuilder unknown(library_.ops());
  unknown.output("y", lstm(unknown, unknown.symbol("steps")));
  EXPECT_EQ(make(unknown)->workspace_bytes(), 0u);
}

TEST_F(WorkspaceTest, NodesOfOneStreamShareTheLargestSlab) {
  GraphBuilder one(library_.ops());
  one.output("y", lstm(one, kSteps));
  const size_t bytes = make(one)->workspace_bytes();
  GraphBuilder two(library_.ops());
  const Value first = lstm(two, kSteps);
  const Value again = two.op("Reshape", {first, two.int64s({kSteps, 1, kHidden})});
  two.output("y", two.op("LSTM",
                         {again, ones(two, {1, 4 * kHidden, kHidden}),
                          ones(two, {1, 4 * kHidden, kHidden})},
                         {{"hidden_size", kHidden}}));
  EXPECT_EQ(make(two, {.assignment = Assignment::kSerial})->workspace_bytes(), bytes);
}

TEST_F(WorkspaceTest, ARunAsksForNoMoreThanWasKnown) {
  GraphBuilder b(library_.ops());
  b.output("y", lstm(b, kSteps));
  auto session = make(b, {.num_threads = 1});
  auto call = std::move(*session->prepare());
  const size_t prepared = session->memory().used_bytes;
  EXPECT_GE(prepared, session->workspace_bytes());
  const Tensor x = input();
  ASSERT_TRUE(call->bind_input(0, x.view()).is_ok());
  ASSERT_TRUE(call->run().is_ok());
  const size_t output_bytes = call->output(0).size_bytes();
  EXPECT_LE(session->memory().used_bytes, prepared + 2 * output_bytes);
}

}  // namespace
}  // namespace eddy
