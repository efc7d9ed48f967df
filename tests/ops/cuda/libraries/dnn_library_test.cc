// Claim: the families of cuDNN's operators share one handle a stream; whichever call of the library
// fails, the run's error names the call and the next run is right; our own kernel computes what the
// library refuses, in every run; and the library itself, where it is installed, takes every
// descriptor and computes the sizes that we do.
#include "ops/cuda/libraries/dnn_library.h"

#include "tests/ops/cuda/libraries/dnn_fixture.h"
#include "tests/ops/cuda/libraries/shadowed_cudnn.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ElementType kFloat = ElementType::kFloat;

class DnnLibraryTest : public DnnFixture {
 protected:
  // One of each family.
  std::vector<OpCall> make_calls() {
    return {make_conv(kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1}),
            make_pool("MaxPool", kFloat, {1, 3, 9, 8}),
            make_pool("AveragePool", kFloat, {1, 2, 5, 6, 7}), make_norm(kFloat, {2, 3, 5, 4})};
  }
  int num_done() const { return fake_.num_convolutions() + fake_.num_pools() + fake_.num_norms(); }
};

TEST_F(DnnLibraryTest, FamiliesShareTheHandlesOfTheirStreams) {
  const int num_created = fake_.num_created();
  const std::vector<OpCall> calls = make_calls();
  for (int round = 0; round < 3; ++round) {
    for (const OpCall& call : calls) ASSERT_TRUE(run_op(call, registry_).is_ok()) << call.op;
    EXPECT_EQ(dnn_->num_handles(), 1u);
    launcher_.end_stream(nullptr);
  }
  EXPECT_EQ(num_done(), 3 * 4);
  EXPECT_EQ(fake_.num_created(), num_created);
}

TEST_F(DnnLibraryTest, ItsHandlesAreLeftForTheNextOneAndNeverDestroyed) {
  const OpCall call = make_calls()[0];
  ASSERT_TRUE(run_op(call, registry_).is_ok());
  const int num_created = fake_.num_created();
  for (int round = 0; round < 3; ++round) {
    use({.least_pool_elements = 0, .least_norm_elements = 0});
    ASSERT_TRUE(run_op(call, registry_).is_ok());
  }
  EXPECT_EQ(fake_.num_created(), num_created);
  EXPECT_EQ(fake_.num_destroyed(), 0);
}

TEST_F(DnnLibraryTest, AStreamOfRecordingsHasItsHandleFromTheBeginningWhereAnOperatorUsesIt) {
  int first = 0, second = 0;  // whose addresses stand for streams
  launcher_.make_recording_stream(&first);
  EXPECT_EQ(dnn_->num_handles(), 1u) << "the one that showed that the library works";
  ASSERT_TRUE(run_op(make_calls()[0], registry_).is_ok());
  launcher_.make_recording_stream(&first);
  launcher_.make_recording_stream(&second);
  EXPECT_EQ(dnn_->num_handles(), 3u);
  EXPECT_EQ(fake_.num_created(), 3);
}

TEST_F(DnnLibraryTest, WhicheverCallFailsIsNamedAndTheNextRunIsRight) {
  constexpr int kExecutionFailed = 5000;
  for (OpCall call : make_calls()) {
    call.known = Known::kRanks;  // else plans are made when a call is bound, which keeps no errors
    WatchedCalls& counted = watched();
    use({.least_pool_elements = 0, .least_norm_elements = 0}, watch_calls(*fake_.api(), counted));
    const size_t first = counted.names.size();
    ASSERT_TRUE(run_op(call, registry_).is_ok());
    const size_t num_calls = counted.names.size() - first;
    ASSERT_GE(num_calls, 5u);
    for (size_t k = 0; k < num_calls; ++k) {
      WatchedCalls& calls = watched();
      use({.least_pool_elements = 0, .least_norm_elements = 0}, watch_calls(*fake_.api(), calls));
      calls.fail_at = calls.names.size() + k;
      calls.answer = kExecutionFailed;
      const auto failed = run_op(call, registry_);
      ASSERT_FALSE(failed.is_ok()) << call.op << ", call " << k;
      EXPECT_THAT(failed.status().message(), HasSubstr(calls.names[calls.fail_at] + " answered"));
      const int before = num_done();
      compare_ranked(call, 1e-5, 1e-5);
      EXPECT_EQ(num_done(), before + 2);
    }
  }
}

TEST_F(DnnLibraryTest, WhicheverCallIsRefusedOurOwnKernelDoesTheShapeInEveryRun) {
  constexpr int kNotSupported = 3000;
  for (const OpCall& call : make_calls()) {
    WatchedCalls& counted = watched();
    use({.least_pool_elements = 0, .least_norm_elements = 0}, watch_calls(*fake_.api(), counted));
    const size_t first = counted.names.size();
    ASSERT_TRUE(run_op(call, registry_).is_ok());
    const size_t num_calls = counted.names.size() - first;
    for (size_t k = 0; k < num_calls; ++k) {
      // The handle's stream is no matter of shapes.
      if (counted.names[first + k] == "cudnnSetStream") continue;
      SCOPED_TRACE(call.op + ", " + counted.names[first + k]);
      WatchedCalls& calls = watched();
      use({.least_pool_elements = 0, .least_norm_elements = 0}, watch_calls(*fake_.api(), calls));
      calls.fail_at = calls.names.size() + k;
      calls.answer = kNotSupported;
      const int before = num_done();
      compare_ranked(call, 1e-5, 1e-5);  // twice
      // Where one call with the bias is refused, several of the library's do it.
      const bool is_one_call = counted.names[first + k] == "cudnnConvolutionBiasActivationForward";
      EXPECT_EQ(num_done() - before, is_one_call ? 2 : 0);
    }
  }
}

TEST_F(DnnLibraryTest, TheInstalledLibraryTakesWhatItsFakeTakes) {
  const auto real = load_cudnn();
  if (!real.is_ok()) GTEST_SKIP() << real.status().message();
  Result<std::unique_ptr<ShadowedCudnn>> shadowed = ShadowedCudnn::create(*real, fake_);
  ASSERT_TRUE(shadowed.is_ok()) << shadowed.status().to_string();
  use({.least_pool_elements = 0, .least_norm_elements = 0}, (*shadowed)->api());
  for (int64_t width = 1; width <= 12; ++width) {
    for (const ElementType element : kCudaFloats) {
      for (const Dims& x : {Dims{2, 3, width}, Dims{2, 3, 9, width}, Dims{1, 2, 5, width, 7}}) {
        ASSERT_TRUE(run_op(make_pool("MaxPool", element, x), registry_).is_ok());
        ASSERT_TRUE(run_op(make_pool("AveragePool", element, x), registry_).is_ok());
        ASSERT_TRUE(run_op(make_norm(element, x), registry_).is_ok());
        std::vector<int64_t> w = {4, x[1]}, pads;
        for (int i = 2; i < x.rank(); ++i) w.push_back(1 + x[i] % 3);
        for (int i = 0; i < 2 * (x.rank() - 2); ++i) pads.push_back(1);
        ASSERT_TRUE(run_op(make_conv(element, x, Dims(w), pads), registry_).is_ok());
      }
    }
  }
  EXPECT_GT(num_done(), 12 * 4 * 3 * 3);
  EXPECT_EQ((*shadowed)->num_compared(), num_done());
  EXPECT_THAT((*shadowed)->differences(), IsEmpty());
  registry_ = {};
  dnn_.reset();
  EXPECT_EQ((*shadowed)->num_alive(), 0);
}

}  // namespace
}  // namespace eddy::testing
