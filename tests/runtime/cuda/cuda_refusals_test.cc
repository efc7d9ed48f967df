// Claim: where the driver refuses to record a loop's body, the loop runs all the same, node by
// node, and its report and the log name the refusal and its reason, once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/runtime/cuda/cuda_session_fixture.h"
#include "tests/runtime/cuda/loop_shapes.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CudaRefusalsTest : public CudaSessionFixture {};

TEST_P(CudaRefusalsTest, ALoopOfTheHostSaysWhyItsBodyIsNotRecorded) {
  for (const bool refuses : {false, true}) {
    use_fake();
    std::mutex mutex;
    std::vector<std::string> lines;  // under the mutex
    SessionOptions options;
    options.loops = Loops::kHost;
    options.merges_loops = false;
    options.make_devices = {fake_->maker()};
    options.log = [&](std::string_view line) {
      std::lock_guard lock(mutex);
      if (line.find("not recorded") != line.npos) lines.emplace_back(line);
    };
    const NamedTensors inputs = {{"x", Tensor::scalar(0.0f)}};
    auto cpu = std::move(*Session::create(library(), graph_of(side_by_side(1)), {}));
    auto session = std::move(*Session::create(library(), graph_of(side_by_side(1)), options));
    if (refuses) fake_->cuda().fail_next("graph_instantiate", CuResult::kNotSupported);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto outputs = session->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ(check::difference(*cpu->run(inputs), *outputs), "");
    }
    const std::string reason = session->loop_reports()[0].reason;
    session.reset();
    if (!refuses) {
      EXPECT_GT(fake_->cuda().num_graph_launches(), 0u);
      EXPECT_THAT(reason, Not(HasSubstr("not recorded")));
      EXPECT_TRUE(lines.empty());
      continue;
    }
    EXPECT_EQ(fake_->cuda().failed_call(), "graph_instantiate");
    EXPECT_THAT(reason, HasSubstr("forced by the session's options; issued node by node, not "
                                  "recorded: CUDA device 0: cuGraphInstantiate answered"));
    EXPECT_EQ(reason.find("not recorded"), reason.rfind("not recorded")) << "said once";
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_THAT(lines[0], HasSubstr("cuGraphInstantiate answered"));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaRefusalsTest, ::testing::Range(uint64_t{1}, uint64_t{4}));

}  // namespace
}  // namespace eddy::testing
