// Claim: an application may capture a stream of its own, in any mode, while Eddy makes sessions and
// runs them on the same GPU: neither side fails the other. Sessions go when it has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"

namespace eddy::testing {
namespace {

// The application: a stream that captures, on this thread, while this lives.
class OpenCapture {
 public:
  OpenCapture(std::shared_ptr<const CudaApi> api, CuCaptureMode mode) : api_(std::move(api)) {
    CuContext context = nullptr;
    EXPECT_EQ(api_->primary_context_retain(&context, 0), CuResult::kSuccess);
    api_->context_push(context);
    EXPECT_EQ(api_->stream_create(&stream_, kCuStreamNonBlocking, 0), CuResult::kSuccess);
    EXPECT_EQ(api_->graph_create(&graph_, 0), CuResult::kSuccess);
    EXPECT_EQ(api_->stream_begin_capture(stream_, graph_, nullptr, nullptr, 0, mode),
              CuResult::kSuccess);
  }
  ~OpenCapture() {
    api_->stream_destroy(stream_);
    if (graph_ != nullptr) api_->graph_destroy(graph_);
    CuContext ignored = nullptr;
    api_->context_pop(&ignored);
    api_->primary_context_release(0);
  }
  // The graph is gone where the capture is spoilt.
  CuResult end() { return api_->stream_end_capture(stream_, &graph_); }
  // A call that the capturing thread may not make meanwhile.
  CuResult synchronize() { return api_->stream_query(stream_); }

 private:
  const std::shared_ptr<const CudaApi> api_;
  CuStream stream_ = nullptr;
  CuGraph graph_ = nullptr;
};

// Six rounds of y += x.
Result<Graph> sums(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const auto results = b.while_loop(
      {.name = "sum", .initial = {x}},
      [&](Value, ValueSpan carried) {
        const Value low = b.op("ReduceMin", {carried[0]}, {{"keepdims", int64_t{0}}});
        return WhileTest{b.op("Less", {low, b.scalar(7.0f)}), {carried[0]}};
      },
      [&](Value, ValueSpan carried) {
        return std::vector<Value>{b.op("Add", {carried[0], x})};
      });
  b.output("y", results[0]);
  return b.finish();
}

class CudaForeignCaptureTest : public CudaSessionFixture {};

TEST_P(CudaForeignCaptureTest, SessionsAreMadeAndRunInIt) {
  for (const CuCaptureMode mode : {CuCaptureMode::kGlobal, CuCaptureMode::kRelaxed}) {
    for (const Loops loops : {Loops::kHost, Loops::kAuto}) {
      for (const bool has_words : {true, false}) {
        use_fake({.cuda = {.has_memory_words = has_words}});
        {
          OpenCapture theirs(fake_->cuda().api(), mode);
          auto session = make_or_null(std::move(*sums(library_)), {.loops = loops});
          ASSERT_NE(session, nullptr);
          for (int repeat = 0; repeat < 3; ++repeat) {
            const auto outputs =
                session->run({{"x", Tensor::of<float>({8}, {1, 1, 1, 1, 1, 1, 1, 1})}});
            ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
            EXPECT_EQ((*outputs)[0].second.values<float>()[7], 7.0f);
          }
          EXPECT_EQ(theirs.end(), CuResult::kSuccess) << "Eddy has spoilt it";
        }
        EXPECT_EQ(fake_->cuda().leaks(), "");
      }
    }
  }
}

TEST_P(CudaForeignCaptureTest, TheThreadsOwnModeIsPutBack) {
  use_fake({});
  OpenCapture theirs(fake_->cuda().api(), CuCaptureMode::kGlobal);
  const auto session = make_or_null(std::move(*sums(library_)), {});
  EXPECT_EQ(theirs.synchronize(), CuResult::kCaptureUnsupported);
  EXPECT_EQ(theirs.end(), CuResult::kCaptureInvalidated);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaForeignCaptureTest, ::testing::Range<uint64_t>(1, 5));

}  // namespace
}  // namespace eddy::testing
