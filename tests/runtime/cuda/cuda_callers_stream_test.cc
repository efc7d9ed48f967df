// Claim: runs take their turns on streams of the application's although the GPU has few queues, so
// that what stands behind a stream that waits does not run: Eddy's own streams share no queue with
// those of default priority, and among themselves wait for nothing that was issued later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/loop_shapes.h"

namespace eddy::testing {
namespace {

class CudaCallersStreamTest : public CudaSessionFixture {};

// What the application has: streams on the primary context.
class Application {
 public:
  Application(std::shared_ptr<const CudaApi> api, int num_streams) : api_(std::move(api)) {
    CuContext context = nullptr;
    EXPECT_EQ(api_->primary_context_retain(&context, 0), CuResult::kSuccess);
    api_->context_push(context);
    for (int i = 0; i < num_streams; ++i) {
      streams_.emplace_back();
      EXPECT_EQ(api_->stream_create(&streams_.back(), kCuStreamNonBlocking, 0), CuResult::kSuccess);
    }
  }
  ~Application() {
    for (CuStream stream : streams_) api_->stream_destroy(stream);
    CuContext ignored = nullptr;
    api_->context_pop(&ignored);
    api_->primary_context_release(0);
  }
  const std::vector<CuStream>& streams() const { return streams_; }

 private:
  const std::shared_ptr<const CudaApi> api_;
  std::vector<CuStream> streams_;
};

TEST_P(CudaCallersStreamTest, RunsOnThemEndThoughQueuesAreFew) {
  for (const int num_queues : {1, 2}) {
    for (const Loops loops : {Loops::kHost, Loops::kAuto}) {
      use_fake({.cuda = {.num_queues = num_queues}});
      {
        Application application(fake_->cuda().api(), 3);
        auto session = make_or_null(graph_of(side_by_side(3)), {.num_threads = 2, .loops = loops});
        ASSERT_NE(session, nullptr);
        std::vector<std::unique_ptr<Stream>> streams;
        std::vector<RunHandle> handles;
        for (CuStream theirs : application.streams()) {
          streams.push_back(std::move(*session->adopt_stream(theirs)));
        }
        for (int turn = 0; turn < 3; ++turn) {
          for (const auto& stream : streams) {
            handles.push_back(session->run_on(*stream, {{"x", Tensor::scalar(0.0f)}},
                                              [](Result<NamedTensors>) {},
                                              {.timeout = std::chrono::seconds(10)}));
          }
        }
        for (RunHandle& handle : handles) {
          const Status status = handle.wait();
          EXPECT_TRUE(status.is_ok()) << num_queues << " queues: " << status.to_string();
        }
        streams.clear();
        session.reset();
      }
      EXPECT_EQ(fake_->cuda().leaks(), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaCallersStreamTest, ::testing::Range(uint64_t{1}, uint64_t{5}));

}  // namespace
}  // namespace eddy::testing
