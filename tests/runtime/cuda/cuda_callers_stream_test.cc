// Claim: runs take their turns on streams of the application's although the GPU has few queues, so
// that what stands behind a stream that waits does not run: Eddy's own streams share no queue with
// those of default priority, and among themselves wait for nothing that was issued later. A run on
// such a stream uses memory again that it has released.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/loop_shapes.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

class CudaCallersStreamTest : public CudaSessionFixture {};

// The application's part: streams on the primary context.
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

// Rows are appended until there are `most`.
Build growing(int64_t width, float most) {
  return [=](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, width}));
    const Value limit = b.scalar(most * static_cast<float>(width));
    const auto results = b.while_loop(
        {.name = "grow", .initial = {x}},
        [&](Value, ValueSpan v) {
          const Value sum = b.op("ReduceSum", {v[0]}, {{"keepdims", int64_t{0}}});
          return WhileTest{b.op("Less", {sum, limit}), {v[0]}};
        },
        [&](Value, ValueSpan v) {
          return std::vector<Value>{b.op("Concat", {v[0], x}, {{"axis", int64_t{0}}})};
        });
    b.output("y", results[0]);
  };
}

// The values of 1000 steps are 32 MB, the largest of them 64 kB.
TEST_P(CudaCallersStreamTest, AThousandGrowingStepsTakeBoundedMemory) {
  constexpr int64_t kWidth = 16;
  const bool is_long = GetParam() == 1;
  const int64_t steps = is_long ? 1000 : 200;
  use_fake({.cuda = {.has_memory_words = GetParam() % 2 == 1,
                     .memory_bytes = size_t{is_long ? 2048u : 512u} << 10}});
  Application application(fake_->cuda().api(), 1);
  auto session =
      make_or_null(graph_of(growing(kWidth, static_cast<float>(steps))), {.loops = Loops::kHost});
  ASSERT_NE(session, nullptr);
  auto stream = std::move(*session->adopt_stream(application.streams()[0]));
  const Tensor x = Tensor::of<float>({1, kWidth}, std::vector<float>(kWidth, 1.0f));
  Result<NamedTensors> outputs = internal_error("not called");
  RunHandle handle = session->run_on(*stream, {{"x", x}},
                                     [&](Result<NamedTensors> made) { outputs = std::move(made); });
  ASSERT_TRUE(handle.wait().is_ok()) << handle.wait().to_string();
  EXPECT_EQ((*outputs)[0].second.dims(), (Dims{steps, kWidth}));
  outputs = internal_error("its tensors go before their device");
  stream.reset();
  session.reset();
}

// A mark among the nodes would be written whenever the application launches its graph.
TEST_P(CudaCallersStreamTest, ACaptureOfTheApplicationsHoldsNothingOfARunBeforeIt) {
  for (const bool has_words : {true, false}) {
    use_fake({.cuda = {.has_memory_words = has_words}});
    const std::shared_ptr<const CudaApi> api = fake_->cuda().api();
    Application application(api, 1);
    const CuStream theirs = application.streams()[0];
    auto session = make_or_null(graph_of(side_by_side(3)), {.num_threads = 2});
    ASSERT_NE(session, nullptr);
    auto stream = std::move(*session->adopt_stream(theirs));
    CuGraph graph = nullptr;
    ASSERT_EQ(api->graph_create(&graph, 0), CuResult::kSuccess);
    // Without words a second run's commands are kept behind the first one's gate, and would wait
    // for the capture's end.
    for (int turn = 0; turn < (has_words ? 3 : 1); ++turn) {
      RunHandle handle =
          session->run_on(*stream, {{"x", Tensor::scalar(0.0f)}}, [](Result<NamedTensors>) {});
      ASSERT_EQ(
          api->stream_begin_capture(theirs, graph, nullptr, nullptr, 0, CuCaptureMode::kRelaxed),
          CuResult::kSuccess);
      EXPECT_TRUE(handle.wait().is_ok()) << handle.wait().to_string();
      EXPECT_THAT(
          session->run_on(*stream, {{"x", Tensor::scalar(0.0f)}}, [](Result<NamedTensors>) {})
              .wait()
              .message(),
          HasSubstr("if it captures, end that first"));
      CuCaptureStatus status = CuCaptureStatus::kNone;
      uint64_t id = 0;
      CuGraph captured = nullptr;
      const CuGraphNode* last = nullptr;
      size_t num_last = 0;
      ASSERT_EQ(api->stream_capture_info(theirs, &status, &id, &captured, &last, &num_last),
                CuResult::kSuccess);
      EXPECT_EQ(status, CuCaptureStatus::kActive);
      EXPECT_EQ(num_last, 0u);
      EXPECT_EQ(api->stream_end_capture(theirs, &graph), CuResult::kSuccess);
    }
    stream.reset();
    session.reset();
    EXPECT_EQ(api->graph_destroy(graph), CuResult::kSuccess);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaCallersStreamTest, ::testing::Range(uint64_t{1}, uint64_t{5}));

}  // namespace
}  // namespace eddy::testing
