// Claim: graphs built with the builder run through a session with the values that their meaning
// gives, on the calling thread, on workers and driven by the host alike.
#include "runtime/api/session.h"

#include <gtest/gtest.h>

#include "graph/ir/builder.h"

namespace eddy {
namespace {

const ValueType kScalar = tensor_type(ElementType::kFloat, {});

std::unique_ptr<Session> make_session(const Library& library, GraphBuilder& builder,
                                      SessionOptions options = {}) {
  Result<Graph> graph = builder.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto session = Session::create(library, std::move(*graph), options);
  EXPECT_TRUE(session.is_ok()) << session.status().to_string();
  return std::move(*session);
}

// x := x + 1 while x < limit.
void build_counter(GraphBuilder& b) {
  const Value x = b.input("x", kScalar);
  const Value limit = b.input("limit", kScalar);
  const auto results = b.while_loop(
      {.name = "count", .initial = {x}},
      [&](Value, std::span<const Value> carried) {
        return WhileTest{b.op("Less", {carried[0], limit}), {carried[0]}};
      },
      [&](Value, std::span<const Value> forwarded) {
        return std::vector<Value>{b.op("Add", {forwarded[0], b.scalar(1.0f)})};
      });
  b.output("y", results[0]);
}

class SessionWays : public testing::TestWithParam<Loops> {
 protected:
  SessionOptions options() const {
    SessionOptions result;
    result.loops = GetParam();
    return result;
  }
  Library library_;
};

TEST_P(SessionWays, AWhileCountsUpToItsLimit) {
  GraphBuilder b(library_.ops());
  build_counter(b);
  auto session = make_session(library_, b, options());
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto outputs = session->run({{"x", Tensor::scalar(0.0f)}, {"limit", Tensor::scalar(1000.0f)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ((*outputs)[0].second.values<float>()[0], 1000.0f);
    EXPECT_EQ(session->loop_reports()[0].iterations, 1000);
  }
}

TEST_P(SessionWays, ACallWritesIntoTheCallersMemory) {
  GraphBuilder b(library_.ops());
  b.output("y", b.op("Add", {b.input("x", kScalar), b.scalar(1.0f)}));
  auto session = make_session(library_, b, options());
  auto call = session->prepare();
  ASSERT_TRUE(call.is_ok());
  float x = 1;
  float y = 0;
  ASSERT_TRUE((*call)->bind_input(0, {&x, nullptr, 0, ElementType::kFloat}).is_ok());
  ASSERT_TRUE((*call)->bind_output(0, {&y, nullptr, 0, ElementType::kFloat}).is_ok());
  for (int i = 0; i < 5; ++i) {
    x = static_cast<float>(i);
    ASSERT_TRUE((*call)->run().is_ok());
    EXPECT_EQ(y, x + 1);
  }
}

TEST_P(SessionWays, AnEndlessLoopIsCancelledByItsDeadline) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", kScalar);
  b.output("y", b.while_loop(
                    {.initial = {x}},
                    [&](Value, std::span<const Value> carried) {
                      return WhileTest{b.op("Less", {carried[0], b.scalar(2.0f)}), {carried[0]}};
                    },
                    [&](Value, std::span<const Value> forwarded) {
                      return std::vector<Value>{b.op("Mul", {forwarded[0], b.scalar(1.0f)})};
                    })[0]);
  auto session = make_session(library_, b, options());
  RunOptions run_options;
  run_options.timeout = std::chrono::milliseconds(20);
  const auto outputs = session->run({{"x", Tensor::scalar(1.0f)}}, run_options);
  EXPECT_EQ(outputs.status().code(), StatusCode::kDeadlineExceeded);
}

INSTANTIATE_TEST_SUITE_P(All, SessionWays, testing::Values(Loops::kDevice, Loops::kHost),
                         [](const auto& info) {
                           return info.param == Loops::kDevice ? "DeviceDriven" : "HostDriven";
                         });

}  // namespace
}  // namespace eddy
